//===- SelectKvLayout.cpp - the cache's element and layout -----------------------===//

#include "compiler/passes/Passes.h"

namespace llmc {
#define GEN_PASS_DEF_SELECTKVLAYOUTPASS
#include "compiler/passes/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

namespace {
struct SelectKvLayoutPass : llmc::impl::SelectKvLayoutPassBase<SelectKvLayoutPass> {
  using Base::Base;

  void runOnOperation() override {
    std::optional<Element> chosen = symbolizeElement(element);
    if (!chosen || *chosen == Element::I4 || *chosen == Element::E2M1 || *chosen == Element::E8M0) {
      emitError(getOperation().getLoc())
          << "KV cache element '" << element << "' is not supported; supported: f32, f16, bf16, i8";
      return signalPassFailure();
    }
    bool isRefused = false;
    getOperation().walk([&](Operation *op) {
      for (Value result : op->getResults())
        if (auto kv = dyn_cast<KvType>(result.getType())) {
          if (kv.getLatent() && *chosen == Element::I8) {
            if (!std::exchange(isRefused, true))
              op->emitError() << "a latent cache of i8 is not supported; supported: f32, f16, bf16";
            continue;
          }
          result.setType(KvType::get(&getContext(), kv.getHeads(), kv.getKeySize(),
                                     kv.getValueSize(), *chosen, /*paged=*/true, kv.getLatent()));
        }
    });
    if (isRefused)
      signalPassFailure();
  }
};
} // namespace
