// Attention with TMA and wgmma, for sm_90a.
#include "codegen/cuda/EmitFamilies.h"

#include "llvm/Support/MathExtras.h"

using namespace llmc;
using namespace llmc::cuda;
using llvm::Twine;

namespace {

constexpr int64_t kKeyTile = 128, kWarpgroup = 128, kWarpgroupRows = 64;
/// What WgmmaAttention::Ring is aligned to: a piece of a swizzled matrix.
constexpr int64_t kPiece = 1024;

/// Shared memory of \p stages tiles of keys and of values, and their barriers.
int64_t ringBytes(int64_t stages, int64_t size) {
  return llvm::alignTo(stages * (2 * kKeyTile * size * 2 + 4 * 8), kPiece);
}

} // namespace

bool cuda::servesHopperAttention(const KernelWriter &w) {
  const int64_t size = w.get("key_size"), element = w.get("kv_element");
  return (size == 64 || size == 128) && size == w.get("value_size") &&
         (element == 1 || element == 2) && !w.get("latent") && w.constants.real("scale") > 0;
}

llvm::LogicalResult cuda::emitHopperAttention(KernelWriter &w) {
  const CudaModel &model = w.modelInfo();
  const int64_t heads = w.get("heads"), kvHeads = w.get("kv_heads"), size = w.get("key_size");
  const int64_t group = heads / kvHeads, rowBlocks = llvm::divideCeil(group, kWarpgroupRows);
  const int64_t rows = model.queryTile * group;
  const int64_t consumers = rows > kWarpgroupRows ? 2 : 1;
  AttentionTiling t;
  t.keyTile = kKeyTile;
  t.rowWarps = 4 * consumers;
  t.valueParts = 1;
  t.splitKeys = attentionSplit(model.maxContext, kKeyTile);
  t.maxSplits = llvm::divideCeil(model.maxContext, t.splitKeys);
  // As many as fit beside the values of the splits before; decoding has none of those.
  const int64_t merged = (t.maxSplits > 1 ? t.rowWarps : 1) * size / 8 * 32 * 16;
  auto prefillShared = [&](int64_t stages) {
    return llvm::alignTo(ringBytes(stages, size) + merged, kPiece);
  };
  t.stages = 2;
  while (t.stages < 4 && prefillShared(t.stages + 1) <= int64_t(kMaxHopperSharedBytes))
    ++t.stages;
  const int64_t decodeStages = size == 128 ? 3 : 4;
  const int64_t counters = llvm::alignTo(model.maxTokens * kvHeads * rowBlocks * 4, 256);
  writeAttention(w, t, counters);

  const std::string name = w.structName();
  CudaGrid tiles, perHead;
  tiles.size = {0, 0, 0, 0, 1};
  perHead.size.constant = kvHeads;
  const std::string prefill = "WgmmaPrefill<" + name + ", " + std::to_string(consumers) + ">";
  CudaEntry &longTiles = w.entry(
      "_prefill_wgmma", static_cast<uint32_t>(kWarpgroup * (1 + consumers)), prefill + "::run",
      prefill + "::Shared", static_cast<uint32_t>(prefillShared(t.stages)), /*tensorMaps=*/true);
  longTiles.x = tiles;
  longTiles.y = perHead;
  longTiles.z.size.constant = rows;
  longTiles.z.divide = static_cast<uint32_t>(kWarpgroupRows * consumers);
  longTiles.when = CudaWhen::LongTiles;

  const std::string decode = "WgmmaDecode<" + name + ", " + std::to_string(decodeStages) + ">";
  CudaEntry &single = w.entry(
      "_decode_wgmma", static_cast<uint32_t>(2 * kWarpgroup), decode + "::run", decode + "::Shared",
      static_cast<uint32_t>(ringBytes(decodeStages, size) + kPiece), /*tensorMaps=*/true);
  single.x = tiles;
  single.y = perHead;
  single.z.size.constant = rowBlocks;
  single.contextSplit = static_cast<uint32_t>(t.splitKeys);
  single.when = CudaWhen::SingleTiles;
  if (t.maxSplits > 1) {
    single.scratch.constant = counters;
    single.scratch.perTile = heads * t.maxSplits * (size + 2) * 4;
  }
  return llvm::success();
}
