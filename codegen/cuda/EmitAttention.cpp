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

llvm::LogicalResult cuda::emitAttention(KernelWriter &w) {
  const int64_t heads = w.get("heads"), kvHeads = w.get("kv_heads"), element = w.get("kv_element");
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
  const int64_t group = heads / kvHeads, rowBlocks = llvm::divideCeil(group, 16);
  const int64_t rows = 16 * t.rowWarps;
  // A counter for each query tile, KV head and row block; a step has no more tiles than tokens.
  const int64_t counters = llvm::alignTo(model.maxTokens * kvHeads * rowBlocks * 4, 256);

  writeAttention(w, t, counters);
  const std::string name = w.structName();

  CudaGrid tiles, perHead;
  tiles.size = {0, 0, 0, 0, 1};
  perHead.size.constant = kvHeads;
  const std::string prefill = "PrefillAttention<" + name + ">";
  CudaEntry &longTiles =
      w.entry("_prefill", static_cast<uint32_t>(32 * t.rowWarps * t.valueParts), prefill + "::run",
              prefill + "::Shared", static_cast<uint32_t>(shape.prefillShared(t)));
  longTiles.x = tiles;
  longTiles.y = perHead;
  longTiles.z.size.constant = model.queryTile * group;
  longTiles.z.divide = static_cast<uint32_t>(rows);
  longTiles.when = CudaWhen::LongTiles;

  const std::string decode = "DecodeAttention<" + name + ">";
  CudaEntry &single = w.entry("_decode", static_cast<uint32_t>(32 * t.valueParts), decode + "::run",
                              decode + "::Shared", static_cast<uint32_t>(shape.decodeShared(t)));
  single.x = tiles;
  single.y = perHead;
  single.z.size.constant = rowBlocks;
  single.contextSplit = static_cast<uint32_t>(t.splitKeys);
  single.when = CudaWhen::SingleTiles;
  if (t.maxSplits > 1) {
    single.scratch.constant = counters;
    single.scratch.perTile = heads * t.maxSplits * (shape.valueSize + 2) * 4;
  }
  return llvm::success();
}
