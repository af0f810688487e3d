//===- SequenceBlocks.h - the KV blocks of one sequence -----------------------===//
//
// What the engine and a draft model do alike. A sequence takes main blocks from a cache's pool and
// one beside each from the pools of layers with narrower windows.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_ENGINE_SEQUENCEBLOCKS_H
#define LLMRT_ENGINE_SEQUENCEBLOCKS_H

#include "runtime/device/StepExecutor.h"
#include "runtime/engine/Sequence.h"

namespace llmrt {

/// Takes blocks until \p sequence has \p blocks of them; false if there are no more. It keeps those
/// that it got.
bool growBlocks(PrefixCache &cache, StepExecutor &executor, Sequence &sequence, int64_t blocks);

/// Gives back the blocks that no token from position \p position on sees; the widest layers see
/// \p window tokens, the current one counted (0: all).
void slideBlocks(PrefixCache &cache, int64_t window, int64_t blockTokens, Sequence &sequence,
                 int64_t position);

/// Gives back all blocks: nothing of the sequence is computed any more.
void dropBlocks(PrefixCache &cache, Sequence &sequence);

} // namespace llmrt

#endif // LLMRT_ENGINE_SEQUENCEBLOCKS_H
