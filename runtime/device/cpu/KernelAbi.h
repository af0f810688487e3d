//===- KernelAbi.h - what a CPU kernel of a plan is given --------------------===//
//
// The one contract between the machine code in a plan and the runtime that calls it. Plain C:
// it is read by the runtime, by the microkernels (compiled to bitcode) and by the compiler's
// code generator. The structs are append-only: LLMRT_KERNEL_ABI grows with every change, a plan
// records the value it was built with, and a runtime accepts every value up to its own.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_DEVICE_CPU_KERNELABI_H
#define LLMRT_DEVICE_CPU_KERNELABI_H

#include <stdint.h>

#define LLMRT_KERNEL_ABI 4
/// The first whose attention looks at LlmrtStep::ancestors.
#define LLMRT_KERNEL_ABI_TREES 4

/// KV tokens are stored in runs of this many, whatever the block size: a key run is [d][16].
#define LLMRT_KV_RUN 16

/// A piece of the step's attention: a query tile over all keys that it sees, or over one split of
/// them. A plan's splits are of so many keys each, aligned to position 0; a row's splits are merged
/// in ascending order whoever computed them, so that how a step is cut has no influence on results.
typedef struct LlmrtAttentionItem {
  int32_t tile;    ///< index into tileSeq
  int32_t split;   ///< -1: all keys of the tile
  int32_t splits;  ///< where split >= 0: how many the tile was cut into, from 0 on
  int32_t row;     ///< where split >= 0: its first row of partials; of each token one a split
  int32_t arrival; ///< where split >= 0: which of the arrival counters are the tile's
} LlmrtAttentionItem;

/// One step over a ragged batch (design: architecture, "the step"). All pointers stay valid and
/// unchanged while the step runs.
typedef struct LlmrtStep {
  int64_t T;                 ///< new tokens of this step
  int64_t S;                 ///< sequences
  int64_t R;                 ///< rows that need logits
  int64_t Q;                 ///< query tiles, see tileSeq
  const int32_t *tokens;     ///< [T] token ids, each below the vocabulary's size
  const int32_t *positions;  ///< [T] position of each token in its own sequence
  const int32_t *queryStart; ///< [S+1] tokens of sequence s are [queryStart[s], queryStart[s+1])
  const int32_t *contextLen; ///< [S] length of the sequence after this step
  const int32_t *blockTable; ///< [S, maxBlocks] KV blocks of each sequence
  int64_t maxBlocks;
  const int64_t *slots;     ///< [T] where a token's K and V go: block * blockTokens + offset
  const int32_t *logitRows; ///< [R] indices into the T tokens
  const int32_t *tileSeq;   ///< [Q] the sequence of a query tile
  const int32_t *tileStart; ///< [Q] its first token, an index into the T tokens
  const int32_t *tileCount; ///< [Q] its tokens: 1 .. the plan's query tile
  uint8_t *kv;              ///< the KV pool: [blocks][blockBytes]
  int64_t blockTokens;      ///< tokens a block, a multiple of LLMRT_KV_RUN
  int64_t blockBytes;       ///< blockTokens * the plan's KV bytes a token
  /// [T] 1 where the token's sequence takes longrope's long factors, else 0 (since ABI 2).
  const int32_t *longContext;
  /// Since ABI 3. The attention kernels of a plan with splits work on items, not on query tiles.
  const LlmrtAttentionItem *items; ///< [itemCount]
  int64_t itemCount;
  float *partials;    ///< [rows][heads * LLMRT_PARTIAL_FLOATS(value size)], 64-byte aligned
  uint32_t *arrivals; ///< [tiles that are cut][tasks a tile]: zeros between the commands
  /// Since ABI 4: trees of guesses. ancestors[t * ancestorWidth + i] is the index into the T tokens
  /// of the i-th ancestor of token t in the window of its sequence, ascending in position, padded
  /// with -1: the token sees the keys before the window (positions below positions[t] less its
  /// number of ancestors), its ancestors and itself. A row of -1 only is a token without a tree,
  /// which sees all positions up to its own in the order of their slots. A token with ancestors is
  /// a query tile of its own. Null: no token has a tree.
  const int32_t *ancestors;
  int64_t ancestorWidth;
} LlmrtStep;

/// KV memory of one block: the layers one after the other, layer l at blockTokens *
/// (KV bytes a token of the layers before l). Inside a layer: for each KV head all keys, then
/// all values: [kvHeads] { K: [blockTokens/16][keySize][16], V: [blockTokens][valueSize] }.
/// Int8 keys and values are in runs of 16 tokens as well, each run followed by the f32 scales of
/// its tokens: K: [blockTokens/16] { [keySize][16], f32[16] }, V: [blockTokens/16] {
/// [16][valueSize], f32[16] }. A key run keeps 16 tokens side by side, so that scores need no
/// horizontal sum and have the same bits at every vector width.

/// Runs tasks [taskBegin, taskEnd) of one command. \p bindings are the command's buffers in the
/// order of its kernel's signature, \p scalars its scalar constants, \p scratch at least the
/// kernel's scratch bytes, 64-byte aligned, private to the calling thread.
typedef void (*LlmrtKernel)(const LlmrtStep *step, void *const *bindings, const int64_t *scalars,
                            int64_t taskBegin, int64_t taskEnd, void *scratch);

/// An int8 activation row of K values (K padded to the group): K int8, then K/group f32 scales,
/// then K/group int32 sums of the int8 values. Rows follow each other without padding.
#define LLMRT_Q8_ROW_BYTES(K, group) ((K) + 8 * ((K) / (group)))

/// What the softmax over one split leaves of a query head, in floats: the largest score (of which
/// 16 are set aside), 16 sums, and the values rounded up to 16.
#define LLMRT_PARTIAL_FLOATS(valueSize) (32 + ((valueSize) + 15) / 16 * 16)

#endif // LLMRT_DEVICE_CPU_KERNELABI_H
