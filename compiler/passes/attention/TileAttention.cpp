//===- TileAttention.cpp - flash attention's tiles --------------------------------===//

#include "compiler/passes/Passes.h"

namespace llmc {
#define GEN_PASS_DEF_TILEATTENTIONPASS
#include "compiler/passes/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

namespace {

/// The largest power of two of tokens, 1 to 64, whose f32 queries, scores and results for the query
/// heads of one KV head fit in half of \p cacheBytes beside one tile of keys and values.
int64_t queryTileFor(AttentionOp op, int64_t keyTile, int64_t cacheBytes) {
  KvType kv = op.getCache().getType();
  int64_t group = op.getHeads() / kv.getHeads() / op.headTasks();
  int64_t keyTileBytes = 4 * keyTile * (kv.getKeySize() + kv.getValueSize());
  int64_t tokenBytes = 4 * group * (kv.getKeySize() + keyTile + kv.getValueSize());
  int64_t tile = 64;
  while (tile > 1 && keyTileBytes + tile * tokenBytes > cacheBytes / 2)
    tile /= 2;
  return tile;
}

struct TileAttentionPass : llmc::impl::TileAttentionPassBase<TileAttentionPass> {
  using Base::Base;

  void runOnOperation() override {
    if (keyTile < 16 || keyTile % 16 || cacheBytes < 1) {
      emitError(getOperation().getLoc())
          << "key-tile must be a multiple of 16 and cache-bytes "
             "positive, got "
          << static_cast<int64_t>(keyTile) << " and " << static_cast<int64_t>(cacheBytes);
      return signalPassFailure();
    }
    if (keySplit < 0 || keySplit % keyTile) {
      emitError(getOperation().getLoc()) << "key-split must be 0 or a multiple of key-tile, got "
                                         << static_cast<int64_t>(keySplit);
      return signalPassFailure();
    }
    // One query tile for the whole plan: the runtime cuts a step once, for all layers.
    int64_t queryTile = 64;
    SmallVector<AttentionOp> attentions;
    getOperation().walk([&](AttentionOp op) {
      queryTile = std::min(queryTile, queryTileFor(op, keyTile, cacheBytes));
      attentions.push_back(op);
    });
    for (AttentionOp op : attentions) {
      op.setKeyTile(keyTile);
      op.setQueryTile(queryTile);
      if (keySplit)
        op.setKeySplit(keySplit);
    }
  }
};
} // namespace
