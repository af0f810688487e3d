#include "codegen/cuda/EmitFamilies.h"

#include "llvm/Support/MathExtras.h"

using namespace llmc;
using namespace llmc::cuda;
using llvm::Twine;

namespace {

using Tiling = AttentionTiling;

/// SharedRows::kStride.
int64_t rowStride(int64_t size, int64_t bytes) {
  const int64_t row = (size + 15) / 16 * 16 * bytes;
  return row % 128 == 0 ? row : row + 16;
}

struct Shape {
  int64_t keySize, valueSize, bytes;
  bool latent; ///< values are the first elements of the keys

  int64_t stage(const Tiling &t) const {
    return t.keyTile * (rowStride(keySize, bytes) + (latent ? 0 : rowStride(valueSize, bytes)));
  }
  /// Tiles of 8 columns of the values that a warp has: SoftmaxTile::kValueTiles.
  int64_t valueTiles(const Tiling &t) const {
    return ((valueSize + 15) / 16 + t.valueParts - 1) / t.valueParts * 2;
  }
  int64_t prefillShared(const Tiling &t) const {
    const int64_t warps = t.maxSplits > 1 ? t.rowWarps * t.valueParts : 1;
    return t.stages * stage(t) + warps * valueTiles(t) * 32 * 16;
  }
  int64_t decodeShared(const Tiling &t) const { return llvm::alignTo(t.stages * stage(t) + 4, 16); }
};

Tiling tile(const Shape &shape, int64_t context) {
  Tiling t;
  // Registers: 4 a lane for 8 columns of the values, and for 8 keys; f32 takes two of each operand.
  t.keyTile = 64;
  if (shape.bytes == 4)
    t.keyTile = shape.keySize > 128 || shape.valueSize > 128 ? 16 : 32;
  else if (shape.keySize > 128 || shape.valueSize > 128)
    t.keyTile = 32;
  t.valueParts = llvm::divideCeil(shape.valueSize, 128);
  t.rowWarps = shape.valueSize > 128 || (shape.bytes == 4 && shape.valueSize > 64) ? 2 : 4;
  t.stages = 2;
  t.splitKeys = attentionSplit(context, 64);
  t.maxSplits = llvm::divideCeil(context, t.splitKeys);
  while (shape.prefillShared(t) > kMaxSharedBytes && t.rowWarps > 1)
    t.rowWarps /= 2;
  if (shape.prefillShared(t) > kMaxSharedBytes)
    t.stages = 1;
  return t;
}

} // namespace

int64_t cuda::attentionSplit(int64_t context, int64_t keyTile) {
  return std::max<int64_t>(256, llvm::alignTo(llvm::divideCeil(context, 32), keyTile));
}

void cuda::writeAttention(KernelWriter &w, const AttentionTiling &t, int64_t counters) {
  const int64_t window = w.get("window");
  const double softcap = w.constants.real("softcap");
  w.describe("q f32[T, " + Twine(w.get("heads")) + ", " + Twine(w.get("key_size")) + "] against " +
             Twine(w.get("kv_heads")) + " KV heads of the " +
             KernelWriter::elementName(w.get("kv_element")) + " cache, causal" +
             (window ? ", a window of " + Twine(window) + " tokens" : Twine("")) +
             (softcap > 0 ? ", soft-capped" : "") + (w.get("alibi") ? ", ALiBi" : "") +
             (w.get("sinks") ? ", sinks" : "") +
             (w.get("latent") ? ", values that are part of the keys" : ""));
  w.beginStruct();
  w.integers({{"kHeads", w.get("heads")}, {"kKvHeads", w.get("kv_heads")}});
  w.integers({{"kKeySize", w.get("key_size")}, {"kValueSize", w.get("value_size")}});
  w.constant("int", "kKv", KernelWriter::elementConstant(w.get("kv_element")));
  w.real("kScale", w.constants.real("scale"));
  w.real("kSoftcap", softcap);
  w.integers({{"kWindow", window}});
  w.flags({{"kAlibi", w.get("alibi") != 0},
           {"kSinks", w.get("sinks") != 0},
           {"kLatent", w.get("latent") != 0}});
  w.line("  // How it is cut up; the key tile and the split decide the bits.");
  w.integers({{"kKeyTile", t.keyTile}, {"kSplitKeys", t.splitKeys}, {"kMaxSplits", t.maxSplits}});
  w.integers({{"kStages", t.stages}, {"kRowWarps", t.rowWarps}, {"kValueParts", t.valueParts}});
  w.constant("long long", "kCounterBytes", Twine(counters));
  w.endStruct();
}

void cuda::launchAttention(KernelWriter &w, const AttentionTiling &t, int64_t counters,
                           const AttentionLaunch &prefill, const AttentionLaunch &decode,
                           bool tensorMaps) {
  const int64_t heads = w.get("heads"), kvHeads = w.get("kv_heads"), group = heads / kvHeads;
  auto entry = [&](const AttentionLaunch &launch, CudaWhen when) -> CudaEntry & {
    CudaEntry &e =
        w.entry(launch.suffix, static_cast<uint32_t>(launch.threads), launch.type + "::run",
                launch.type + "::Shared", static_cast<uint32_t>(launch.sharedBytes), tensorMaps);
    e.x.size = {0, 0, 0, 0, 1};
    e.y.size.constant = kvHeads;
    e.when = when;
    return e;
  };
  CudaEntry &longTiles = entry(prefill, CudaWhen::LongTiles);
  longTiles.z.size.constant = w.modelInfo().queryTile * group;
  longTiles.z.divide = static_cast<uint32_t>(prefill.rows);
  CudaEntry &single = entry(decode, CudaWhen::SingleTiles);
  single.z.size.constant = llvm::divideCeil(group, decode.rows);
  single.contextSplit = static_cast<uint32_t>(t.splitKeys);
  if (t.maxSplits > 1) {
    single.scratch.constant = counters;
    single.scratch.perTile = heads * t.maxSplits * (w.get("value_size") + 2) * 4;
  }
}

int64_t cuda::attentionCounters(const KernelWriter &w, int64_t rows) {
  const int64_t kvHeads = w.get("kv_heads"), group = w.get("heads") / kvHeads;
  return llvm::alignTo(w.modelInfo().maxTokens * kvHeads * llvm::divideCeil(group, rows) * 4, 256);
}

llvm::LogicalResult cuda::emitAttention(KernelWriter &w) {
  const int64_t element = w.get("kv_element");
  // int8 becomes f16 in shared memory.
  const bool latent = w.get("latent");
  const Shape shape = {w.get("key_size"), w.get("value_size"), element == 0 ? 4 : 2, latent};
  const int64_t most = latent ? 576 : 256; // DeepSeek's: 512 and 64 rotated
  const CudaModel &model = w.modelInfo();
  const int64_t unit = element == 3 ? 4 : element == 0 ? 1 : 2;
  if (shape.keySize % unit != 0 || shape.valueSize % unit != 0)
    return w.unsupported("heads of " + Twine(shape.keySize) + " and " + Twine(shape.valueSize) +
                         " values; elements of " + KernelWriter::elementName(element) +
                         " need multiples of " + Twine(unit));
  const Tiling t = tile(shape, model.maxContext);
  if (shape.keySize > most || shape.valueSize > most || shape.prefillShared(t) > kMaxSharedBytes)
    return w.unsupported("heads of " + Twine(shape.keySize) + " and " + Twine(shape.valueSize) +
                         " values; supported: up to " + Twine(most));
  constexpr int64_t decodeRows = 16;
  const int64_t counters = attentionCounters(w, decodeRows);
  writeAttention(w, t, counters);
  const std::string name = w.structName();
  launchAttention(w, t, counters,
                  {"_prefill", "PrefillAttention<" + name + ">", 32 * t.rowWarps * t.valueParts,
                   shape.prefillShared(t), 16 * t.rowWarps},
                  {"_decode", "DecodeAttention<" + name + ">", 32 * t.valueParts,
                   shape.decodeShared(t), decodeRows});
  return llvm::success();
}
