//===- KernelRules.cpp - which variants of a kernel exist --------------------===//
//
// A combination that no kernel text implements is an error here, never a wrong result.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/Elementwise.h"
#include "codegen/cpu/KernelConstants.h"
#include "codegen/cpu/MicrokernelBitcode.h"
#include "codegen/cpu/kernels/Format.h"
#include "codegen/cpu/kernels/Scratch.h"
#include "runtime/device/cpu/KernelAbi.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llmc;
using namespace llmc::kernel;

namespace {

/// Collects what is wrong with one kernel.
class Checker {
public:
  Checker(mlir::Location loc, const KernelSpec &spec) : loc(loc), spec(spec), constants(spec) {}

  int64_t get(llvm::StringRef name) const { return constants.integer(name); }
  void require(bool condition, const llvm::Twine &what) {
    if (condition || failed)
      return;
    failed = true;
    mlir::emitError(loc) << "kernel '" << spec.symbol << "' (" << spec.kind << "): " << what;
  }
  void positive(llvm::StringRef name) {
    require(get(name) > 0 && get(name) <= INT32_MAX,
            name + " must be from 1 to 2147483647, not " + llvm::Twine(get(name)));
  }
  void flag(llvm::StringRef name) { range(name, 0, 1); }
  void range(llvm::StringRef name, int64_t low, int64_t high) {
    require(get(name) >= low && get(name) <= high, name + " must be from " + llvm::Twine(low) +
                                                       " to " + llvm::Twine(high) + ", not " +
                                                       llvm::Twine(get(name)));
  }
  void weight() {
    const int64_t element = get("w_element"), packing = get("w_packing"), group = get("w_group");
    if (packing == kN16K4) {
      require(element == kI4 || element == kI8 || element == kE2M1,
              "w_packing 2 (N16K4) holds i8 (3), i4 (4) or e2m1 (8)");
      const int64_t unit = element == kI8 ? 4 : 8;
      require(group > 0 && group <= INT32_MAX && group % unit == 0,
              "w_group must be a positive multiple of " + llvm::Twine(unit) + ", not " +
                  llvm::Twine(group));
      if (element == kE2M1) {
        range("w_scale", kE8M0, kE8M0);
        return range("w_has_min", 0, 0);
      }
      range("w_scale", kF32, kF16);
      flag("w_has_min");
      range("w_min", kF32, kF16);
      return;
    }
    range("w_packing", kRows, kN16K4);
    range("w_element", kF32, kBF16);
  }
  /// The group of an int8 row.
  void rowGroup() {
    require(get("group") > 0 && get("group") <= INT32_MAX && get("group") % 4 == 0,
            "group must be a positive multiple of 4, not " + llvm::Twine(get("group")));
  }
  llvm::LogicalResult result() const { return llvm::success(!failed); }

private:
  mlir::Location loc;
  const KernelSpec &spec;
  KernelConstants constants;
  bool failed = false;
};

void checkIntegerInputs(Checker &c) {
  if (!c.get("x_int8"))
    return;
  c.require(c.get("w_packing") == kN16K4, "int8 activations need weights in N16K4 (w_packing 2)");
  c.rowGroup();
  const int64_t group = c.get("group"), unit = c.get("w_element") == kI8 ? 4 : 8;
  c.require(group > 0 && group % unit == 0 && c.get("w_group") % group == 0,
            "group (of x) must be a multiple of " + llvm::Twine(unit) + " that divides w_group " +
                llvm::Twine(c.get("w_group")));
  // 128 * 127 a product: above this an int32 sum could wrap.
  c.require(group <= 65536, "group may be at most 65536");
}

void checkGemm(Checker &c) {
  c.positive("k");
  c.positive("n");
  c.positive("task_tiles");
  c.weight();
  c.require(c.get("w_packing") != kRows, "w_packing 0 (rows) is for embed only");
  for (llvm::StringRef name : {"x_int8", "rows", "bias", "residual", "glu"})
    c.flag(name);
  c.range("activation", kNone, kActivationSigmoid);
  checkIntegerInputs(c);
  if (c.get("glu")) {
    c.require(c.get("n") % 2 == 0, "glu needs an even n: gate and up rows");
    c.require(c.get("task_tiles") % 2 == 0, "glu needs an even task_tiles");
    c.require(!c.get("bias"), "glu with a bias is not supported");
  }
}

void checkAttention(Checker &c) {
  for (llvm::StringRef name : {"heads", "kv_heads", "key_size", "value_size", "query_tile"})
    c.positive(name);
  c.require(c.get("kv_heads") > 0 && c.get("heads") % c.get("kv_heads") == 0,
            "kv_heads must divide heads");
  c.range("kv_element", kF32, kI8);
  c.range("window", 0, INT32_MAX);
  c.flag("alibi");
  c.flag("sinks");
  c.flag("latent");
  c.require(!c.get("latent") || c.get("kv_element") != kI8, "a latent cache holds no int8");
  c.require(!c.get("latent") ||
                (c.get("kv_heads") == 1 && c.get("value_size") <= c.get("key_size")),
            "a latent cache has one head, and values that are part of its keys");
  c.range("key_split", 0, INT32_MAX);
  c.require(c.get("key_split") % kKeyTile == 0, "key_split must be a multiple of 64");
  c.range("head_tasks", 0, INT32_MAX);
  const int64_t parts = c.get("head_tasks") ? c.get("head_tasks") : 1;
  c.require(c.get("kv_heads") > 0 && c.get("heads") / c.get("kv_heads") % parts == 0,
            "head_tasks must divide the query heads of a KV head");
}

void checkGroupedGemm(Checker &c) {
  for (llvm::StringRef name : {"k", "n", "groups", "slots", "task_tiles"})
    c.positive(name);
  c.weight();
  c.require(c.get("w_packing") != kRows, "w_packing 0 (rows) is for embed only");
  for (llvm::StringRef name : {"x_int8", "rows", "bias", "glu", "chosen"})
    c.flag(name);
  c.range("activation", kNone, kActivationSigmoid);
  checkIntegerInputs(c);
  c.range("x_stride", 0, INT32_MAX);
  c.require(c.get("x_stride") == 0 || c.get("x_stride") >= c.get("k"),
            "x_stride must be 0 or at least k");
  c.require(!c.get("x_int8") || c.get("x_stride") == 0 || c.get("x_stride") == c.get("k"),
            "int8 rows follow each other: x_stride must be 0 or k");
  c.require(c.get("chosen") || c.get("groups") == c.get("slots"),
            "without chosen there is a matrix for each slot");
  if (c.get("glu")) {
    c.require(c.get("n") % 2 == 0, "glu needs an even n: gate and up rows");
    c.require(c.get("task_tiles") % 2 == 0, "glu needs an even task_tiles");
  }
}

void checkRoute(Checker &c) {
  c.positive("experts");
  c.range("chosen", 1, c.get("experts"));
  c.range("scoring", 0, 2);
  for (llvm::StringRef name : {"normalize", "correction", "group_best_two", "rows"})
    c.flag(name);
  c.range("groups", 0, c.get("experts"));
  if (c.get("groups") > 0) {
    c.require(c.get("experts") % c.get("groups") == 0, "groups must divide experts");
    c.range("top_groups", 1, c.get("groups"));
  }
}

void checkLatentAppend(Checker &c) {
  for (llvm::StringRef name : {"heads", "latent", "rotary", "stride"})
    c.positive(name);
  c.require(c.get("rotary") % 2 == 0, "rotary must be even");
  c.range("rotary", 2, c.get("stride"));
  c.flag("interleaved");
  c.range("kv_element", kF32, kBF16);
}

void checkRopeAppend(Checker &c) {
  for (llvm::StringRef name : {"heads", "kv_heads", "head_size", "value_size"})
    c.positive(name);
  c.range("rotary", 0, c.get("head_size"));
  c.require(c.get("rotary") % 2 == 0, "rotary must be even");
  c.range("kv_element", kF32, kI8);
  for (llvm::StringRef name : {"interleaved", "split", "q_norm", "plus_one"})
    c.flag(name);
}

void checkNorm(Checker &c) {
  c.positive("d");
  for (llvm::StringRef name : {"rows", "norm", "plus_one", "bias", "out"})
    c.flag(name);
  if (c.get("out"))
    c.rowGroup();
}

void checkKind(Checker &c, llvm::StringRef kind) {
  if (kind == "gemm")
    return checkGemm(c);
  if (kind == "attention")
    return checkAttention(c);
  if (kind == "grouped_gemm")
    return checkGroupedGemm(c);
  if (kind == "route")
    return checkRoute(c);
  if (kind == "latent_append")
    return checkLatentAppend(c);
  if (kind == "combine") {
    c.positive("d");
    c.positive("slots");
    c.flag("rows");
    return c.flag("residual");
  }
  if (kind == "rope_append")
    return checkRopeAppend(c);
  if (kind == "norm")
    return checkNorm(c);
  if (kind == "embed") {
    c.positive("d");
    c.range("positions", 0, INT32_MAX);
    return c.weight();
  }
  if (kind == "gather_rows")
    return c.positive("d");
  if (kind == "rope_angles" || kind == "rope_select")
    return c.positive("half");
  if (kind == "rope_gather") {
    c.positive("half");
    return c.positive("positions");
  }
  if (kind == "quantize") {
    c.positive("k");
    c.flag("rows");
    c.range("slots", 0, INT32_MAX);
    return c.rowGroup();
  }
  if (kind == "elementwise")
    return c.positive("d");
  c.require(false, "no such kind");
}

} // namespace

llvm::LogicalResult llmc::verifyKernelSpec(mlir::Location loc, const KernelSpec &spec) {
  auto error = [&](const llvm::Twine &what) {
    return mlir::emitError(loc) << "kernel '" << spec.symbol << "' (" << spec.kind << "): " << what;
  };
  if (spec.symbol.empty() ||
      !llvm::all_of(spec.symbol, [](char c) { return llvm::isAlnum(c) || c == '_'; }))
    return error("a symbol is made of letters, digits and '_'");
  if (llvm::StringRef(spec.symbol).starts_with("llmc_"))
    return error("symbols that begin with llmc_ are the code generator's own");
  const bool isElementwise = spec.kind == "elementwise";
  if (!isElementwise && !hasMicrokernel(spec.kind))
    return error("no such kind");

  llvm::ArrayRef<KernelParameter> known =
      isElementwise ? elementwiseParameters() : kernelParameters(spec.kind);
  llvm::StringSet<> seen;
  for (const KernelConstant &constant : spec.constants) {
    if (!seen.insert(constant.name).second)
      return error("constant '" + constant.name + "' is given twice");
    if (isElementwise && constant.name == "op") {
      const auto *op = std::get_if<std::string>(&constant.value);
      if (!op || !isElementwiseOp(*op))
        return error("op must be one of " + elementwiseOpNames());
      continue;
    }
    const auto *parameter =
        llvm::find_if(known, [&](const KernelParameter &p) { return p.name == constant.name; });
    if (parameter == known.end()) {
      std::vector<llvm::StringRef> names;
      for (const KernelParameter &p : known)
        names.push_back(p.name);
      return error("no constant '" + constant.name + "'; there are " + llvm::join(names, ", "));
    }
    if (std::holds_alternative<std::string>(constant.value) ||
        (!parameter->isReal && std::holds_alternative<double>(constant.value)))
      return error("constant '" + constant.name + "' must be " +
                   (parameter->isReal ? "a real number" : "an integer"));
  }
  if (isElementwise && !seen.contains("op"))
    return error("op must be one of " + elementwiseOpNames());
  Checker checker(loc, spec);
  checkKind(checker, spec.kind);
  return checker.result();
}

uint64_t llmc::kernelScratchBytes(const KernelSpec &spec) {
  KernelConstants c(spec);
  if (spec.kind == "attention")
    return 4 * AttentionScratch(c.integer("query_tile"),
                                c.integer("heads") / c.integer("kv_heads") /
                                    std::max<int64_t>(1, c.integer("head_tasks")),
                                c.integer("key_size"), c.integer("value_size"),
                                c.integer("key_split") != 0)
                   .end;
  if (spec.kind == "latent_append")
    return 4 * latentAppendScratch(c.integer("rotary"));
  if (spec.kind == "route")
    return 4 * routeScratch(c.integer("experts"), c.integer("groups"));
  if (spec.kind == "grouped_gemm") {
    const int64_t k = c.integer("k"), group = c.integer("group");
    return groupedGemmScratch(c.integer("x_int8") ? LLMRT_Q8_ROW_BYTES(roundUp(k, group), group)
                                                  : 4 * k);
  }
  if (spec.kind == "rope_append")
    return 4 * ropeAppendScratch(c.integer("head_size"), c.integer("value_size"));
  return 0;
}
