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
  const int64_t size = w.get("key_size");
  const int64_t rows = model.queryTile * (w.get("heads") / w.get("kv_heads"));
  const int64_t consumers = rows > kWarpgroupRows ? 2 : 1;
  AttentionTiling t;
  t.keyTile = kKeyTile;
  t.rowWarps = 4 * consumers;
  t.valueParts = 1;
  t.splitKeys = attentionSplit(model.maxContext, kKeyTile);
  t.maxSplits = llvm::divideCeil(model.maxContext, t.splitKeys);
  // As many as fit beside the values of the splits before; decoding has none of those.
  const int64_t merged = (t.maxSplits > 1 ? t.rowWarps : 1) * size / 8 * 32 * 16;
  auto prefillShared = [&](int64_t stages) -> int64_t {
    return llvm::alignTo(ringBytes(stages, size) + merged, kPiece);
  };
  t.stages = 2;
  while (t.stages < 4 && prefillShared(t.stages + 1) <= kMaxHopperSharedBytes)
    ++t.stages;
  const int64_t decodeStages = size == 128 ? 3 : 4;
  const int64_t counters = attentionCounters(w, kWarpgroupRows);
  writeAttention(w, t, counters);
  const std::string name = w.structName();
  launchAttention(
      w, t, counters,
      {"_prefill_wgmma", "WgmmaPrefill<" + name + ", " + std::to_string(consumers) + ">",
       kWarpgroup * (1 + consumers), prefillShared(t.stages), kWarpgroupRows * consumers},
      {"_decode_wgmma", "WgmmaDecode<" + name + ", " + std::to_string(decodeStages) + ">",
       2 * kWarpgroup, ringBytes(decodeStages, size) + kPiece, kWarpgroupRows},
      /*tensorMaps=*/true);
  return llvm::success();
}
