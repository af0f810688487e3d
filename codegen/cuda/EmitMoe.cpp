// Mixtures of experts.
#include "codegen/cuda/EmitFamilies.h"

#include "llvm/Support/MathExtras.h"

using namespace llmc;
using namespace llmc::cuda;
using llvm::Twine;

llvm::LogicalResult cuda::emitRoute(KernelWriter &w) {
  const int64_t experts = w.get("experts"), chosen = w.get("chosen"), groups = w.get("groups");
  const int64_t shared = 4 * (2 * experts + chosen + std::max<int64_t>(1, groups));
  if (shared > kMaxSharedBytes)
    return w.unsupported(Twine(experts) + " experts");
  w.describe("The " + Twine(chosen) + " best of " + Twine(experts) + " experts");
  w.beginStruct();
  w.rows();
  w.integers({{"kExperts", experts}, {"kChosen", chosen}, {"kScoring", w.get("scoring")}});
  w.integers({{"kGroups", groups}, {"kTopGroups", w.get("top_groups")}});
  w.flags({{"kNormalize", w.get("normalize") != 0},
           {"kCorrection", w.get("correction") != 0},
           {"kGroupBestTwo", w.get("group_best_two") != 0}});
  w.real("kScale", w.constants.real("scale"));
  w.endStruct();
  const std::string name = "Route<" + w.structName() + ">";
  w.entry("", 32, name + "::run", name + "::Shared", static_cast<uint32_t>(shared)).x = w.rowGrid();
  return llvm::success();
}

llvm::LogicalResult cuda::emitCombine(KernelWriter &w) {
  constexpr uint32_t threads = 256;
  const int64_t d = w.get("d");
  w.describe("y f32[M, " + Twine(d) + "] = the weighted sum of " + Twine(w.get("slots")) +
             " experts" + (w.get("residual") ? " + residual" : ""));
  w.beginStruct();
  w.rows();
  w.integers({{"kWidth", d}, {"kSlots", w.get("slots")}, {"kThreads", threads}});
  w.flags({{"kResidual", w.get("residual") != 0}});
  w.endStruct();
  w.entry("", threads, "runCombine<" + Twine(w.structName()) + ">").x = w.rowGrid(d, threads);
  return llvm::success();
}

llvm::LogicalResult cuda::emitGroupedGemm(KernelWriter &w) {
  const int64_t k = w.get("k"), n = w.get("n"), slots = w.get("slots"), stride = w.get("x_stride");
  const bool glu = w.get("glu"), bias = w.get("bias"), chosen = w.get("chosen");
  ProductTiling t;
  if (failed(tileProduct(w, t)))
    return llvm::failure();
  const int64_t outputs = glu ? n / 2 : n;
  w.describe("y f32[M, " + Twine(slots) + ", " + Twine(outputs) + "] = x by " +
             (chosen ? "the matrices of its ids" : "a matrix a slot") + ", of " +
             Twine(w.get("groups")) + " of [" + Twine(n) + ", " + Twine(k) + "] " +
             KernelWriter::elementName(w.get("w_element")));
  const std::string name = w.structName();
  w.beginStruct();
  w.rows();
  w.integers({{"K", k}, {"N", n}, {"kSlots", slots}});
  w.weightFormat();
  if (w.get("x_int8"))
    w.line("  using Activations = Int8Rows<Weight, K, " + Twine(w.get("group")) + ">;");
  else if (stride)
    w.line("  using Activations = FloatRows<Weight, K, " + Twine(stride) + ">;");
  else
    w.line("  using Activations = FloatRows<Weight, K>;");
  w.flags({{"kGlu", glu}, {"kBias", bias}, {"kResidual", false}});
  w.flags({{"kIds", chosen}, {"kXSlots", stride != 0}});
  w.line("  // How it is cut up.");
  w.integers({{"kSlices", t.slices},
              {"kRowTiles", t.rowTiles},
              {"kStepsAStage", t.stepsAStage},
              {"kStages", t.stages}});
  const llvm::StringRef activation = KernelWriter::activationConstant(w.get("activation"));
  w.line("  LLMC_MEMBER float product(float " + Twine(glu ? "gate, float up" : "sum, float") +
         ") {");
  if (const double alpha = w.constants.real("alpha"); glu && alpha != 0) {
    const double limit = w.constants.real("limit");
    if (limit > 0) {
      const std::string most = KernelWriter::floatLiteral(limit);
      w.line("    gate = gate > " + most + " ? " + most + " : gate;");
      w.line("    up = up > " + most + " ? " + most + " : up < -" + most + " ? -" + most +
             " : up;");
    }
    w.line("    return gate / (1.0f + expAccurate(-" + KernelWriter::floatLiteral(alpha) +
           " * gate)) * (up + 1.0f);");
  } else {
    const std::string value = glu ? "gate" : "sum";
    w.line("    return " +
           (w.get("activation") ? ("activate<" + activation + ">(" + value + ")").str() : value) +
           (glu ? " * up;" : ";"));
  }
  w.line("  }");
  w.endStruct();
  for (int64_t tokenTiles : {1, 4}) {
    const std::string type = "GroupedGemm<" + name + ", " + std::to_string(tokenTiles) + ">";
    const auto shared = static_cast<uint32_t>(
        llvm::alignTo(t.sharedBytes(tokenTiles) + 4 * (8 * tokenTiles + 1), 16));
    CudaEntry &entry = w.entry(tokenTiles == 1 ? "_m8" : "", static_cast<uint32_t>(32 * t.slices),
                               type + "::run", type + "::Shared", shared);
    entry.x.size.constant = t.tiles;
    entry.x.divide = static_cast<uint32_t>(t.rowTiles);
    entry.y.size.constant = w.get("groups");
    entry.maxRows = tokenTiles == 1 ? 8 : 0;
  }
  return llvm::success();
}
