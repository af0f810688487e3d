// Which sequence runs, and who holds which KV block.
#include "runtime/engine/Engine.h"
#include "runtime/engine/SequenceBlocks.h"

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
  sequence->keptNode = cache_.take(root, reusable(*sequence), sequence->blocks, sequence->windows);
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
        for (WindowBlocks &own : sequence.windows)
          own.blocks.push_back(WindowBlocks::slidOut);
        continue;
      }
      std::optional<BlockPool::Allocation> block = cache_.allocate();
      assert(block && "admission counted them");
      sequence.blocks.push_back(block->block);
      int32_t host = sequence.swapped[static_cast<size_t>(i - firstSaved)];
      const uint8_t *saved = hostMemory_.data() + uint64_t(host) * hostBlockBytes();
      LLMRT_RETURN_IF_ERROR(executor_->loadKvBlock(block->block, saved));
      saved += executor_->kvBlockBytes();
      for (uint32_t w = 0; w < sequence.windows.size(); ++w) {
        WindowBlocks &own = sequence.windows[w];
        own.blocks.push_back(WindowBlocks::slidOut);
        if (i >= own.firstSwapped) {
          block = cache_.windows()[w].allocate();
          assert(block && "a window's pool suffices for all that run");
          own.blocks.back() = block->block;
          LLMRT_RETURN_IF_ERROR(executor_->loadKvBlock(block->block, saved, w + 1));
        }
        saved += executor_->kvBlockBytes(w + 1);
      }
    }
    sequence.computed = sequence.swappedTokens;
  }
  freeHostBlocks(sequence);
  return Status::ok();
}

bool Engine::grow(Sequence &sequence, int64_t tokens) {
  return growBlocks(cache_, *executor_, sequence, blocksFor(tokens));
}

namespace {

/// Copy on write: where others go on in \p block, too, it becomes a copy of its own. False: there
/// is no block.
template <typename Pool>
bool ownBlock(Pool &pool, StepExecutor &executor, uint32_t group, int32_t &block, Status &status) {
  if (pool.users(block) == 1)
    return true;
  std::optional<BlockPool::Allocation> copy = pool.allocate();
  if (!copy)
    return false;
  if (status)
    status = executor.copyKvBlock(block, copy->block, group);
  pool.release(block);
  block = copy->block;
  return true;
}

} // namespace

bool Engine::ownLastBlock(Sequence &sequence, Status &status) {
  if (sequence.computed % limits_.blockTokens == 0)
    return true;
  size_t last = static_cast<size_t>(sequence.computed / limits_.blockTokens);
  if (!ownBlock(cache_, *executor_, 0, sequence.blocks[last], status))
    return false;
  for (uint32_t w = 0; w < sequence.windows.size(); ++w)
    if (!ownBlock(cache_.windows()[w], *executor_, w + 1, sequence.windows[w].blocks[last], status))
      return false;
  return true;
}

void Engine::shareBlocks(const Sequence &from, Sequence &to) {
  for (int32_t block : from.blocks) {
    if (block != Sequence::slidOut)
      cache_.retain(block);
    to.blocks.push_back(block);
  }
  for (size_t w = 0; w < from.windows.size(); ++w) {
    for (int32_t block : from.windows[w].blocks)
      if (block != WindowBlocks::slidOut)
        cache_.windows()[w].retain(block);
    to.windows[w].blocks.assign(from.windows[w].blocks.begin(), from.windows[w].blocks.end());
    to.windows[w].firstBlock = from.windows[w].firstBlock;
  }
  to.computed = from.computed;
  to.firstBlock = from.firstBlock;
  to.keptBlocks = from.keptBlocks;
  to.keptNode = from.keptNode;
}

uint64_t Engine::hostBlockBytes() const {
  uint64_t bytes = 0;
  for (uint32_t group = 0; group <= cache_.windows().size(); ++group)
    bytes += executor_->kvBlockBytes(group);
  return bytes;
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
  double blockBytes = static_cast<double>(hostBlockBytes());
  double swap = 2 * blockBytes * static_cast<double>(sequence->blocks.size()) / copyBytesPerSecond;
  double recompute = secondsPerToken_ * static_cast<double>(sequence->computed);
  if (limits_.preemption == PreemptionMode::Swap ||
      (limits_.preemption == PreemptionMode::Auto && swap < recompute))
    saveToHost(*sequence);
  dropBlocks(cache_, *sequence);
  sequence->draft.clear();
  sequence->tree.clear();
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
    size_t place = static_cast<size_t>(sequence.firstBlock + i);
    uint8_t *to = hostMemory_.data() + uint64_t(host) * hostBlockBytes();
    Status saved = executor_->saveKvBlock(sequence.blocks[place], to);
    to += executor_->kvBlockBytes();
    for (uint32_t w = 0; w < sequence.windows.size(); ++w) {
      if (int32_t block = sequence.windows[w].blocks[place]; saved && block != Sequence::slidOut)
        saved = executor_->saveKvBlock(block, to, w + 1);
      to += executor_->kvBlockBytes(w + 1);
    }
    if (!saved) {
      ++fallbacks_.of(SlowFallback::SwapSpace);
      return freeHostBlocks(sequence); // its tokens can be computed again
    }
  }
  for (WindowBlocks &own : sequence.windows)
    own.firstSwapped = own.firstBlock;
  sequence.swappedTokens = sequence.computed;
  metrics_.swaps.add(1);
}

void Engine::freeHostBlocks(Sequence &sequence) {
  for (int32_t host : sequence.swapped)
    hostBlocks_.release(host);
  sequence.swapped.clear();
  sequence.swappedTokens = 0;
}

PrefixCache::Serial Engine::rootOf(const Sequence &sequence) {
  return cache_.root(sequence.options().cacheSalt, sequence.inLongContext);
}

void Engine::enterLongContext(Sequence &sequence) {
  // Its keys and values are of the short context: all tokens are computed again, but for what
  // other long sequences left in the prefix cache.
  dropBlocks(cache_, sequence);
  sequence.inLongContext = true;
  sequence.keptNode =
      cache_.take(rootOf(sequence), reusable(sequence), sequence.blocks, sequence.windows);
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
    for (size_t w = 0; added.node && w < sequence.windows.size(); ++w)
      if (int32_t &own = sequence.windows[w].blocks[size_t(sequence.keptBlocks)];
          own != WindowBlocks::slidOut)
        own = cache_.windows()[w].keep(block, own);
    sequence.keptNode = added.node;
    ++sequence.keptBlocks;
  }
}

void Engine::slideWindow(Sequence &sequence) {
  slideBlocks(cache_, shape().window, limits_.blockTokens, sequence, sequence.computed);
}

} // namespace llmrt
