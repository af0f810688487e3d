#include "codegen/cuda/CudaCodegen.h"

#include "codegen/cuda/EmitFamilies.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/MapVector.h"

using namespace llmc;
using namespace llmc::cuda;

namespace {

struct Kind {
  llvm::StringLiteral name, family, header, what;
  llvm::LogicalResult (*emit)(KernelWriter &);
};

/// Which family, and so which file, a kind is part of.
constexpr Kind kKinds[] = {
    {"embed", "embed", "embed.cuh", "rows of tables", emitEmbed},
    {"gather_rows", "embed", "embed.cuh", "rows of tables", emitGatherRows},
    {"norm", "norm", "norm.cuh", "normalisations", emitNorm},
    {"quantize", "norm", "norm.cuh", "normalisations", emitQuantize},
    {"gemm", "gemm", "gemm_tiled.cuh", "matrix products", emitGemm},
    {"rope_angles", "rope", "rope.cuh", "positions, keys and values", emitRopeAngles},
    {"rope_gather", "rope", "rope.cuh", "positions, keys and values", emitRopeGather},
    {"rope_append", "rope", "rope.cuh", "positions, keys and values", emitRopeAppend},
    {"attention", "attention", "attention.cuh", "attention", emitAttention},
    {"elementwise", "elementwise", "elementwise.cuh", "element-wise operations", emitElementwise},
};

} // namespace

llvm::FailureOr<std::vector<CudaUnit>>
llmc::emitCudaUnits(mlir::Location loc, llvm::ArrayRef<KernelSpec> specs, const CudaModel &model) {
  llvm::MapVector<llvm::StringRef, CudaUnit> units;
  for (size_t i = 0; i < specs.size(); ++i) {
    const Kind *kind = llvm::find_if(
        kKinds, [&](const Kind &k) { return llvm::StringRef(k.name) == specs[i].kind; });
    if (kind == std::end(kKinds))
      return mlir::emitError(loc) << "kernel '" << specs[i].symbol << "': the kind '"
                                  << specs[i].kind << "' does not exist for CUDA";
    CudaUnit &unit = units[kind->family];
    if (unit.family.empty()) {
      unit.family = kind->family.str();
      unit.text = "//===- " + unit.family + ".cu - " + kind->what.str() + " of " + model.name +
                  " -===//\n// Written by " + model.compiler +
                  ". M: T tokens, or R rows that need logits.\n#include \"" + kind->header.str() +
                  "\"\n";
    }
    KernelWriter writer(loc, specs[i], i, model, unit);
    if (failed(kind->emit(writer)))
      return mlir::failure();
  }
  std::vector<CudaUnit> result;
  for (auto &[family, unit] : units)
    result.push_back(std::move(unit));
  return result;
}
