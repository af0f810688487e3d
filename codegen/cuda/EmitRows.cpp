// Kernels that look at one row at a time.
#include "codegen/cuda/EmitFamilies.h"

using namespace llmc;
using namespace llmc::cuda;
using llvm::Twine;

/// Threads for a row of \p width: several elements a thread.
static uint32_t rowThreads(int64_t width) { return width <= 512 ? 64 : width <= 4096 ? 128 : 256; }

llvm::LogicalResult cuda::emitEmbed(KernelWriter &w) {
  const int64_t d = w.get("d");
  w.describe("y f32[T, " + Twine(d) + "] = w[" + (w.get("positions") ? "positions" : "tokens") +
             "]");
  w.beginStruct();
  w.integers({{"kWidth", d}, {"kPositions", w.get("positions")}});
  w.weightFormat();
  w.real("kScale", w.constants.real("scale"));
  w.endStruct();
  w.entry("", rowThreads(d), "runEmbed<" + Twine(w.structName()) + ">").x = w.rowGrid();
  return llvm::success();
}

llvm::LogicalResult cuda::emitGatherRows(KernelWriter &w) {
  const int64_t d = w.get("d");
  w.describe("y f32[R, " + Twine(d) + "] = x[logit rows]");
  w.beginStruct();
  w.integers({{"kWidth", d}});
  w.endStruct();
  CudaGrid grid;
  grid.size = {0, 0, 0, 1, 0};
  w.entry("", rowThreads(d), "runGatherRows<" + Twine(w.structName()) + ">").x = grid;
  return llvm::success();
}

llvm::LogicalResult cuda::emitNorm(KernelWriter &w) {
  const int64_t d = w.get("d");
  const uint32_t threads = d <= 512 ? 128 : d <= 4096 ? 256 : 512;
  w.describe((w.get("norm") ? "Layer" : "RMS") + Twine(" normalisation of rows of ") + Twine(d) +
             (w.get("out") ? ", to int8 rows" : ""));
  w.beginStruct();
  w.rows();
  w.integers({{"kWidth", d}, {"kThreads", threads}, {"kGroup", w.get("out") ? w.get("group") : 0}});
  w.flags({{"kLayerNorm", w.get("norm") != 0},
           {"kPlusOne", w.get("plus_one") != 0},
           {"kBias", w.get("bias") != 0},
           {"kInt8", w.get("out") != 0}});
  w.real("kEps", w.constants.real("eps"));
  w.endStruct();
  const std::string name = "Norm<" + w.structName() + ">";
  w.entry("", threads, name + "::run", name + "::Shared", threads / 32 * 4).x = w.rowGrid();
  return llvm::success();
}

llvm::LogicalResult cuda::emitQuantize(KernelWriter &w) {
  const int64_t k = w.get("k");
  w.describe("Rows of f32[" + Twine(k) + "] to int8 in groups of " + Twine(w.get("group")));
  w.beginStruct();
  w.rows();
  w.integers({{"kWidth", k}, {"kGroup", w.get("group")}});
  w.endStruct();
  w.entry("", 64, "runQuantize<" + Twine(w.structName()) + ">").x = w.rowGrid();
  return llvm::success();
}

llvm::LogicalResult cuda::emitRopeAngles(KernelWriter &w) {
  w.describe("Cosines and sines f32[T, 2, " + Twine(w.get("half")) + "] of the positions");
  w.beginStruct();
  w.integers({{"kHalf", w.get("half")}});
  w.real("kScale", w.constants.real("scale"));
  w.endStruct();
  w.entry("", 64, "runRopeAngles<" + Twine(w.structName()) + ">").x = w.rowGrid();
  return llvm::success();
}

llvm::LogicalResult cuda::emitRopeGather(KernelWriter &w) {
  w.describe("Rows of the tables of cosines and sines f32[" + Twine(w.get("positions")) + ", " +
             Twine(w.get("half")) + "]");
  w.beginStruct();
  w.integers({{"kHalf", w.get("half")}, {"kPositions", w.get("positions")}});
  w.endStruct();
  w.entry("", 64, "runRopeGather<" + Twine(w.structName()) + ">").x = w.rowGrid();
  return llvm::success();
}

llvm::LogicalResult cuda::emitRopeSelect(KernelWriter &w) {
  w.describe("Cosines and sines of short or of long contexts, by the token's sequence");
  w.beginStruct();
  w.integers({{"kHalf", w.get("half")}});
  w.endStruct();
  w.entry("", 64, "runRopeSelect<" + Twine(w.structName()) + ">").x = w.rowGrid();
  return llvm::success();
}

llvm::LogicalResult cuda::emitRopeAppend(KernelWriter &w) {
  constexpr uint32_t threads = 128;
  const int64_t heads = w.get("heads"), kvHeads = w.get("kv_heads"), d = w.get("head_size");
  w.describe(Twine(heads) + " query heads and " + Twine(kvHeads) + " KV heads of " + Twine(d) +
             ": rotates " + Twine(w.get("rotary")) + " values of each; keys and values to the " +
             KernelWriter::elementName(w.get("kv_element")) + " cache");
  w.beginStruct();
  w.integers({{"kHeads", heads}, {"kKvHeads", kvHeads}});
  w.integers({{"kKeySize", d}, {"kValueSize", w.get("value_size")}, {"kRotary", w.get("rotary")}});
  w.constant("int", "kKv", KernelWriter::elementConstant(w.get("kv_element")));
  w.flags({{"kInterleaved", w.get("interleaved") != 0},
           {"kSplit", w.get("split") != 0},
           {"kQkNorm", w.get("q_norm") != 0},
           {"kPlusOne", w.get("plus_one") != 0}});
  w.real("kEps", w.constants.real("eps"));
  w.integers({{"kThreads", threads}});
  w.endStruct();
  CudaEntry &entry = w.entry("", threads, "RopeAppend<" + Twine(w.structName()) + ">::run");
  entry.x = w.rowGrid();
  entry.y.size.constant = heads + 2 * kvHeads;
  entry.y.divide = threads / 32;
  return llvm::success();
}

llvm::LogicalResult cuda::emitLatentAppend(KernelWriter &w) {
  constexpr uint32_t threads = 128;
  const int64_t heads = w.get("heads"), latent = w.get("latent"), rotary = w.get("rotary");
  w.describe("Keys [" + Twine(latent) + " latent, " + Twine(rotary) + " rotated] to the " +
             KernelWriter::elementName(w.get("kv_element")) + " cache, " + Twine(heads) +
             " queries alike");
  w.beginStruct();
  w.integers({{"kHeads", heads}, {"kLatent", latent}, {"kRotary", rotary}});
  w.integers({{"kStride", w.get("stride")}, {"kThreads", threads}});
  w.constant("int", "kKv", KernelWriter::elementConstant(w.get("kv_element")));
  w.flags({{"kInterleaved", w.get("interleaved") != 0}});
  w.endStruct();
  CudaEntry &entry = w.entry("", threads, "LatentAppend<" + Twine(w.structName()) + ">::run");
  entry.x = w.rowGrid();
  entry.y.size.constant = heads + 1;
  entry.y.divide = threads / 32;
  return llvm::success();
}

llvm::LogicalResult cuda::emitElementwise(KernelWriter &w) {
  constexpr uint32_t threads = 256;
  const llvm::StringRef op = w.constants.text("op");
  const int64_t d = w.get("d");
  struct Row {
    llvm::StringLiteral name, expression;
    bool binary;
  };
  static constexpr Row rows[] = {
      {"add", "a + b", true},
      {"mul", "a * b", true},
      {"relu", "activate<kRelu>(a)", false},
      {"silu", "activate<kSilu>(a)", false},
      {"gelu", "activate<kGelu>(a)", false},
      {"gelu_tanh", "activate<kGeluTanh>(a)", false},
      {"sigmoid", "activate<kSigmoid>(a)", false},
      {"relu_mul", "activate<kRelu>(a) * b", true},
      {"silu_mul", "activate<kSilu>(a) * b", true},
      {"gelu_mul", "activate<kGelu>(a) * b", true},
      {"gelu_tanh_mul", "activate<kGeluTanh>(a) * b", true},
      {"sigmoid_mul", "activate<kSigmoid>(a) * b", true},
  };
  std::string expression;
  bool binary = false;
  const std::string scale = KernelWriter::floatLiteral(w.constants.real("scale"));
  if (op == "scale")
    expression = "a * " + scale;
  if (op == "softcap")
    expression = scale + " * tanhAccurate(a / " + scale + ")";
  for (const Row &row : rows)
    if (row.name == op)
      expression = row.expression.str(), binary = row.binary;
  if (expression.empty())
    return w.unsupported("no text for the operation '" + op + "'");
  w.describe("y f32[M, " + Twine(d) + "] = " + expression);
  w.beginStruct();
  w.rows();
  w.integers({{"kWidth", d}, {"kThreads", threads}});
  w.flags({{"kBinary", binary}});
  w.line("  LLMC_MEMBER float apply(float a, float" + Twine(binary ? " b" : "") + ") { return " +
         expression + "; }");
  w.endStruct();
  w.entry("", threads, "runElementwise<" + Twine(w.structName()) + ">").x = w.rowGrid(d, threads);
  return llvm::success();
}
