// Which sequence runs, and who holds which KV block.
#include "runtime/engine/Engine.h"

#include <algorithm>
#include <cassert>

namespace llmrt {
namespace {

/// A block's way to host memory and back, for the choice between swap and recompute: what a copy
/// on one core, or over PCIe, does at least.
constexpr double copyBytesPerSecond = 4e9;

/// What may be found in the prefix cache: all but the last token, whose logits are wanted.
std::span<const int32_t> reusable(const Sequence &sequence) {
  if (sequence.givesPromptRows())
    return {};
  return std::span(sequence.tokens).first(sequence.tokens.size() - 1);
}

} // namespace

void Engine::admit() {
  while (!waiting_.empty() && static_cast<int64_t>(running_.size()) < limits_.maxSequences)
    if (!admitFirst())
      return;
}

bool Engine::admitFirst() {
  // In order of rank: a small request never overtakes one that waits for blocks. A beam that waits
  // for others needs none.
  auto place = std::find_if(waiting_.begin(), waiting_.end(),
                            [](const auto &sequence) { return !sequence->parked; });
  if (place == waiting_.end())
    return false;
  Sequence &first = **place;
  PrefixCache::Serial root = rootOf(first);
  PrefixCache::Found found = cache_.find(root, reusable(first));
  int64_t needed =
      blocksFor(static_cast<int64_t>(first.tokens.size())) - found.blocks + found.unused;
  // What the running ones were let in for, and a block for each to grow into, so that a newcomer
  // isn't thrown out again at once.
  for (const std::unique_ptr<Sequence> &other : running_)
    needed += 1 + std::max<int64_t>(0, blocksFor(static_cast<int64_t>(other->tokens.size())) -
                                           static_cast<int64_t>(other->blocks.size()));
  if (needed > cache_.available())
    return false;
  std::unique_ptr<Sequence> sequence = std::move(*place);
  waiting_.erase(place);
  sequence->keptNode = cache_.take(root, reusable(*sequence), sequence->blocks);
  sequence->keptBlocks = static_cast<int64_t>(sequence->blocks.size());
  sequence->computed = sequence->keptBlocks * limits_.blockTokens;
  Status restored = restore(*sequence);
  begin(std::move(sequence));
  if (!restored)
    for (const std::unique_ptr<Sequence> &s : running_)
      if (!s->swapped.empty())
        finish(*s, FinishReason::Error, restored);
  removeFinished();
  return true;
}

void Engine::begin(std::unique_ptr<Sequence> sequence) {
  if (!sequence->started) {
    sequence->started = true;
    sequence->stats.started = RequestStats::Clock::now();
    sequence->stats.cachedTokens = sequence->computed;
    if (sequence->choice == 0) {
      queued_.fetch_sub(1, std::memory_order_relaxed);
      metrics_.promptTokens.add(sequence->promptTokens);
      if (cache_.enabled() && !sequence->options().scoresPrompt()) {
        metrics_.prefixQueries.add(sequence->promptTokens);
        metrics_.prefixHits.add(sequence->computed);
      }
    }
  }
  auto place = std::upper_bound(running_.begin(), running_.end(), sequence->rank(),
                                [](auto rank, const auto &s) { return rank < s->rank(); });
  sequence->resident = true;
  running_.insert(place, std::move(sequence));
}

Status Engine::restore(Sequence &sequence) {
  if (sequence.swapped.empty())
    return Status::ok();
  int64_t saved = blocksFor(sequence.swappedTokens);
  int64_t firstSaved = saved - static_cast<int64_t>(sequence.swapped.size());
  if (sequence.swappedTokens > sequence.computed) {
    // Blocks [0, kept) came from the prefix cache, those up to firstSaved slid out of the window.
    for (int64_t i = sequence.keptBlocks; i < saved; ++i) {
      if (i < firstSaved) {
        sequence.blocks.push_back(Sequence::slidOut);
        continue;
      }
      std::optional<BlockPool::Allocation> block = cache_.allocate();
      assert(block && "admission counted them");
      sequence.blocks.push_back(block->block);
      int32_t host = sequence.swapped[static_cast<size_t>(i - firstSaved)];
      LLMRT_RETURN_IF_ERROR(executor_->loadKvBlock(
          block->block, hostMemory_.data() + uint64_t(host) * executor_->kvBlockBytes()));
    }
    sequence.computed = sequence.swappedTokens;
  }
  freeHostBlocks(sequence);
  return Status::ok();
}

bool Engine::grow(Sequence &sequence, int64_t tokens) {
  while (static_cast<int64_t>(sequence.blocks.size()) < blocksFor(tokens)) {
    std::optional<BlockPool::Allocation> block = cache_.allocate();
    if (!block)
      return false;
    if (block->used)
      executor_->clearKvBlock(block->block);
    sequence.blocks.push_back(block->block);
  }
  return true;
}

bool Engine::ownLastBlock(Sequence &sequence, Status &status) {
  if (sequence.computed % limits_.blockTokens == 0)
    return true;
  int32_t &block = sequence.blocks[static_cast<size_t>(sequence.computed / limits_.blockTokens)];
  if (cache_.users(block) == 1)
    return true;
  // Copy on write: another answer goes on in this block, too.
  std::optional<BlockPool::Allocation> own = cache_.allocate();
  if (!own)
    return false;
  status = executor_->copyKvBlock(block, own->block);
  cache_.release(block);
  block = own->block;
  return true;
}

Status Engine::allocateBlocks() {
  for (size_t i = 0; i < chunks_.size();) {
    Chunk &chunk = chunks_[i];
    Sequence &sequence = *chunk.sequence;
    Status status;
    int64_t needed = sequence.computed + chunk.tokens - chunk.drafted;
    bool runs = true;
    while (runs && !(grow(sequence, needed) && ownLastBlock(sequence, status))) {
      const Sequence *last = running_.back().get();
      preemptLast();
      size_t lost =
          static_cast<size_t>(std::find_if(chunks_.begin(), chunks_.end(),
                                           [last](const Chunk &c) { return c.sequence == last; }) -
                              chunks_.begin());
      if (lost < chunks_.size())
        chunks_.erase(chunks_.begin() + static_cast<ptrdiff_t>(lost));
      if (lost < i)
        --i;
      runs = last != &sequence;
    }
    if (!runs)
      continue;
    if (!status) {
      finish(sequence, FinishReason::Error, status);
      chunks_.erase(chunks_.begin() + static_cast<ptrdiff_t>(i));
      continue;
    }
    // Guesses are worth a free block, not another's.
    Chunk &own = chunks_[i];
    if (own.drafted > 0 && !grow(sequence, needed + own.drafted)) {
      int64_t room = static_cast<int64_t>(sequence.blocks.size()) * limits_.blockTokens - needed;
      own.tokens -= own.drafted - room;
      own.rows -= own.drafted - room;
      own.drafted = room;
      ++fallbacks_.of(SlowFallback::GuessRoom);
    }
    ++i;
  }
  return Status::ok();
}

void Engine::preemptLast() {
  std::unique_ptr<Sequence> sequence = std::move(running_.back());
  running_.pop_back();
  sequence->resident = false;
  metrics_.preemptions.add(1);
  ++sequence->stats.preemptions;
  double blockBytes = static_cast<double>(executor_->kvBlockBytes());
  double swap = 2 * blockBytes * static_cast<double>(sequence->blocks.size()) / copyBytesPerSecond;
  double recompute = secondsPerToken_ * static_cast<double>(sequence->computed);
  if (limits_.preemption == PreemptionMode::Swap ||
      (limits_.preemption == PreemptionMode::Auto && swap < recompute))
    saveToHost(*sequence);
  dropBlocks(*sequence);
  sequence->draft.clear();
  sequence->window = 0;
  if (speculator_)
    speculator_->end(*sequence);
  wait(std::move(sequence));
}

void Engine::saveToHost(Sequence &sequence) {
  int64_t count = blocksFor(sequence.computed) - sequence.firstBlock;
  if (count <= 0)
    return;
  if (hostBlocks_.freeCount() < count) {
    if (hostBlocks_.capacity() > 0)
      ++fallbacks_.of(SlowFallback::SwapSpace);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    int32_t host = hostBlocks_.allocate()->block;
    sequence.swapped.push_back(host);
    Status saved =
        executor_->saveKvBlock(sequence.blocks[static_cast<size_t>(sequence.firstBlock + i)],
                               hostMemory_.data() + uint64_t(host) * executor_->kvBlockBytes());
    if (!saved) {
      ++fallbacks_.of(SlowFallback::SwapSpace);
      return freeHostBlocks(sequence); // its tokens can be computed again
    }
  }
  sequence.swappedTokens = sequence.computed;
  metrics_.swaps.add(1);
}

void Engine::freeHostBlocks(Sequence &sequence) {
  for (int32_t host : sequence.swapped)
    hostBlocks_.release(host);
  sequence.swapped.clear();
  sequence.swappedTokens = 0;
}

void Engine::dropBlocks(Sequence &sequence) {
  // From the last to the first: the cache then forgets the ends of texts before their beginnings.
  for (auto block = sequence.blocks.rbegin(); block != sequence.blocks.rend(); ++block)
    if (*block != Sequence::slidOut)
      cache_.release(*block);
  sequence.blocks.clear();
  sequence.computed = sequence.firstBlock = sequence.keptBlocks = 0;
  sequence.keptNode = 0;
}

PrefixCache::Serial Engine::rootOf(const Sequence &sequence) {
  return cache_.root(sequence.options().cacheSalt, sequence.inLongContext);
}

void Engine::enterLongContext(Sequence &sequence) {
  // Its keys and values are of the short context: all tokens are computed again, but for what
  // other long sequences left in the prefix cache.
  dropBlocks(sequence);
  sequence.inLongContext = true;
  sequence.keptNode = cache_.take(rootOf(sequence), reusable(sequence), sequence.blocks);
  sequence.keptBlocks = static_cast<int64_t>(sequence.blocks.size());
  sequence.computed = sequence.keptBlocks * limits_.blockTokens;
}

void Engine::keepFullBlocks(Sequence &sequence) {
  int64_t full = sequence.computed / limits_.blockTokens;
  while (sequence.keptNode && sequence.keptBlocks < full) {
    int32_t &block = sequence.blocks[static_cast<size_t>(sequence.keptBlocks)];
    if (block == Sequence::slidOut) {
      sequence.keptNode = 0;
      return;
    }
    PrefixCache::Added added =
        cache_.add(sequence.keptNode,
                   std::span(sequence.tokens)
                       .subspan(static_cast<size_t>(sequence.keptBlocks * limits_.blockTokens),
                                static_cast<size_t>(limits_.blockTokens)),
                   block);
    block = added.block;
    sequence.keptNode = added.node;
    ++sequence.keptBlocks;
  }
}

void Engine::slideWindow(Sequence &sequence) {
  int64_t window = shape().window;
  if (window == 0)
    return;
  // The next token, at position `computed`, sees those from computed - window + 1 on.
  int64_t first = std::max<int64_t>(0, sequence.computed - window + 1) / limits_.blockTokens;
  for (; sequence.firstBlock < first; ++sequence.firstBlock) {
    int32_t &block = sequence.blocks[static_cast<size_t>(sequence.firstBlock)];
    if (block != Sequence::slidOut)
      cache_.release(block);
    block = Sequence::slidOut;
  }
}

} // namespace llmrt
