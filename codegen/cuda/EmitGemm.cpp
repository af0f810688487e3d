#include "codegen/cuda/EmitFamilies.h"

using namespace llmc;
using namespace llmc::cuda;
using llvm::Twine;

namespace {

constexpr int64_t kF32 = 0, kI4 = 4;
constexpr int64_t kStepColumns = 32; // weights.cuh

int64_t elementBytes(int64_t element) { return element == kF32 ? 4 : 2; }

/// Bytes of a step of one tile in shared memory: WeightStep::kBytes.
int64_t stepBytes(const KernelWriter &w) {
  if (w.get("w_packing") != 2)
    return kStepColumns * 16 * elementBytes(w.get("w_element"));
  const int64_t sets = w.get("w_group") == 16 ? 2 : 1;
  int64_t bytes = kStepColumns * (w.get("w_element") == kI4 ? 8 : 16);
  bytes += sets * 16 * elementBytes(w.get("w_scale"));
  if (w.get("w_has_min"))
    bytes += sets * 16 * elementBytes(w.get("w_min"));
  return bytes;
}

/// How a product is cut up. The slices decide the bits and depend on the shape of w alone.
struct Tiling {
  int64_t slices;
  int64_t rowTiles, stepsAStage, stages;                     // SlicedGemm
  int64_t warpRows, warpTokens, tiledSteps = 1, tiledStages; // TiledGemm
};

int64_t sharedBytes(const Tiling &t, int64_t step, int64_t tokenTiles) {
  const int64_t ring = t.slices * t.stages * t.stepsAStage * t.rowTiles * step;
  return std::max(ring, t.slices * t.rowTiles * tokenTiles * 32 * 16);
}

/// Tokens that a warp of TiledGemm holds, in tiles of 8.
int64_t tiledTokenTiles(bool f32) { return f32 ? 4 : 8; }

int64_t tiledSharedBytes(const Tiling &t, int64_t step, bool f32) {
  const int64_t tokenTiles = tiledTokenTiles(f32), warps = t.warpRows * t.warpTokens;
  const int64_t ring = t.tiledStages * t.tiledSteps * t.warpRows * 2 * step;
  const int64_t x = 2 * t.tiledSteps * t.warpTokens * tokenTiles * 32 * (f32 ? 32 : 16);
  return ring + x + (t.slices > 1 ? warps : 1) * 2 * tokenTiles * 32 * 16;
}

Tiling tile(int64_t k, int64_t tiles, bool glu, int64_t step, bool f32) {
  const int64_t steps = (k + kStepColumns - 1) / kStepColumns;
  Tiling t;
  t.slices = steps >= 64 ? 8 : steps >= 16 ? 4 : steps >= 8 ? 2 : 1;
  t.rowTiles = glu || (tiles >= 512 && tiles % 2 == 0) ? 2 : 1;
  // About a KiB a tile and stage.
  t.stepsAStage = step <= 320 ? 4 : step <= 640 ? 2 : 1;
  t.stages = 4;
  while (t.stages > 2 && sharedBytes(t, step, 1) > kMaxSharedBytes)
    --t.stages;
  // A narrow matrix is cut finer, so that there are blocks for a GPU.
  t.warpRows = tiles >= 128 ? 4 : 2;
  t.warpTokens = 2;
  t.tiledStages = 3;
  if (tiledSharedBytes(t, step, f32) > kMaxSharedBytes)
    t.tiledStages = 2;
  while (t.warpRows > 1 && tiledSharedBytes(t, step, f32) > kMaxSharedBytes)
    t.warpRows /= 2;
  return t;
}

} // namespace

int64_t ProductTiling::sharedBytes(int64_t tokenTiles) const {
  return ::sharedBytes({slices, rowTiles, stepsAStage, stages, 0, 0, 1, 0}, stepBytes, tokenTiles);
}

/// Of a weight in groups of columns.
static llvm::LogicalResult checkGroup(const KernelWriter &w) {
  const int64_t group = w.get("w_group");
  if (w.get("w_packing") == 2 && group != 16 && group % kStepColumns != 0)
    return w.unsupported("groups of " + Twine(group) +
                         " columns; supported: 16 and multiples of 32");
  return llvm::success();
}

llvm::LogicalResult cuda::tileProduct(const KernelWriter &w, ProductTiling &tiling) {
  if (failed(checkGroup(w)))
    return llvm::failure();
  const bool glu = w.get("glu");
  const int64_t n = w.get("n"), step = stepBytes(w);
  const int64_t tiles = ((glu ? n / 2 : n) + 15) / 16 * (glu ? 2 : 1);
  const bool f32 = w.get("w_packing") != 2 && w.get("w_element") == kF32;
  const Tiling t = tile(w.get("k"), tiles, glu, step, f32);
  tiling = {tiles, t.slices, t.rowTiles, t.stepsAStage, t.stages, step};
  if (tiling.sharedBytes(4) + 256 > kMaxSharedBytes)
    return w.unsupported("its tiles take " + Twine(tiling.sharedBytes(4)) +
                         " bytes of shared memory, a block has " + Twine(kMaxSharedBytes));
  return llvm::success();
}

llvm::LogicalResult cuda::emitGemm(KernelWriter &w) {
  const int64_t k = w.get("k"), n = w.get("n"), group = w.get("w_group");
  const bool glu = w.get("glu"), bias = w.get("bias"), residual = w.get("residual");
  const bool integer = w.get("w_packing") == 2;
  if (failed(checkGroup(w)))
    return llvm::failure();
  const int64_t outputs = glu ? n / 2 : n;
  const int64_t tiles = (outputs + 15) / 16 * (glu ? 2 : 1);
  const int64_t step = stepBytes(w);
  const bool f32 = !integer && w.get("w_element") == kF32;
  const Tiling t = tile(k, tiles, glu, step, f32);
  if (sharedBytes(t, step, 4) > kMaxSharedBytes)
    return w.unsupported("its tiles take " + Twine(sharedBytes(t, step, 4)) +
                         " bytes of shared memory, a block has " + Twine(kMaxSharedBytes));

  const std::string m = w.onLogitRows() ? "R" : "T";
  std::string weight = KernelWriter::elementName(w.get("w_element")).str();
  if (integer)
    weight += " in groups of " + std::to_string(group);
  w.describe("y f32[" + Twine(m) + ", " + Twine(outputs) + "] = x " +
             (w.get("x_int8") ? "i8" : "f32") + "[" + m + ", " + Twine(k) + "] w^T, w [" +
             Twine(n) + ", " + Twine(k) + "] " + weight);
  const std::string name = w.structName();
  w.beginStruct();
  w.rows();
  w.integers({{"K", k}, {"N", n}});
  w.weightFormat();
  if (w.get("x_int8"))
    w.line("  using Activations = Int8Rows<Weight, K, " + Twine(w.get("group")) + ">;");
  else
    w.line("  using Activations = FloatRows<Weight, K>;");
  w.flags({{"kGlu", glu}, {"kBias", bias}, {"kResidual", residual}});
  w.line("  // How it is cut up: SlicedGemm, then TiledGemm.");
  w.integers({{"kSlices", t.slices},
              {"kRowTiles", t.rowTiles},
              {"kStepsAStage", t.stepsAStage},
              {"kStages", t.stages}});
  w.integers({{"kTiledSteps", t.tiledSteps}, {"kTiledStages", t.tiledStages}});
  const llvm::StringRef activation = KernelWriter::activationConstant(w.get("activation"));
  std::string value = glu ? "gate" : bias ? "sum + bias" : "sum";
  if (w.get("activation"))
    value = ("activate<" + activation + ">(" + value + ")").str();
  if (glu)
    value += " * up";
  if (residual)
    value += " + residual";
  w.line("  LLMC_MEMBER float epilogue(float " +
         Twine(glu    ? "gate, float up"
               : bias ? "sum, float bias"
                      : "sum, float") +
         ", float" + (residual ? " residual" : "") + ") {");
  w.line("    return " + value + ";");
  w.line("  }");
  w.endStruct();

  // Few tokens want few registers and much memory in flight, many a tile for the tensor cores; the
  // bits are the same.
  for (int64_t tokenTiles : {1, 2, 4}) {
    const std::string type = "SlicedGemm<" + name + ", " + std::to_string(tokenTiles) + ">";
    CudaEntry &entry =
        w.entry("_m" + Twine(8 * tokenTiles), static_cast<uint32_t>(32 * t.slices), type + "::run",
                type + "::Shared", static_cast<uint32_t>(sharedBytes(t, step, tokenTiles)));
    entry.x.size.constant = tiles;
    entry.x.divide = static_cast<uint32_t>(t.rowTiles);
    entry.y = w.rowGrid(1, static_cast<uint32_t>(8 * tokenTiles));
    entry.maxRows = static_cast<uint32_t>(8 * tokenTiles);
  }
  const std::string type = "TiledGemm<" + name + ", " + std::to_string(t.warpRows) + ", " +
                           std::to_string(t.warpTokens) + ">";
  CudaEntry &entry =
      w.entry("", static_cast<uint32_t>(32 * t.warpRows * t.warpTokens), type + "::run",
              type + "::Shared", static_cast<uint32_t>(tiledSharedBytes(t, step, f32)));
  entry.x.size.constant = tiles;
  entry.x.divide = static_cast<uint32_t>(2 * t.warpRows);
  entry.y = w.rowGrid(1, static_cast<uint32_t>(8 * tiledTokenTiles(f32) * t.warpTokens));
  return llvm::success();
}
