//===- ScriptedExecutor.h - a model whose every token the test dictates -----===//
//
// Keeps token ids where a model keeps keys and values, in paged blocks, and reads a sequence's
// whole context back through the block table for every row of logits: a wrong slot, position,
// block or length gives other logits. The likeliest token is script(context), with logit 10. With a
// pool for each group of layers, every group must show the same tokens as far as it sees.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEST_UNIT_ENGINE_SCRIPTEDEXECUTOR_H
#define LLMRT_TEST_UNIT_ENGINE_SCRIPTEDEXECUTOR_H

#include "runtime/device/StepExecutor.h"
#include "runtime/engine/Request.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <vector>

namespace llmrt {

class ScriptedExecutor final : public StepExecutor {
public:
  using Script = std::function<int32_t(const std::vector<int32_t> &context)>;

  ScriptedExecutor(const ModelShape &shape, Script script)
      : shape_(shape), script_(std::move(script)) {}

  const ModelShape &shape() const override { return shape_; }

  Status createKvPool(int64_t blocks, int64_t blockTokens) override {
    return createKvPools({&blocks, 1}, blockTokens);
  }
  Status createKvPools(std::span<const int64_t> blocks, int64_t blockTokens) override {
    blockTokens_ = blockTokens;
    for (int64_t count : blocks)
      kv_.emplace_back(static_cast<size_t>(count * blockTokens), 0);
    return Status::ok();
  }
  void clearKvBlock(int32_t block, uint32_t group) override {
    ++cleared;
    std::fill_n(cells(block, group), blockTokens_, 0);
  }

  Status copyKvBlock(int32_t from, int32_t to, uint32_t group) override {
    ++copied;
    std::copy_n(cells(from, group), blockTokens_, cells(to, group));
    return Status::ok();
  }
  uint64_t kvBlockBytes(uint32_t) const override {
    return static_cast<uint64_t>(blockTokens_) * sizeof(int32_t);
  }
  Status saveKvBlock(int32_t block, uint8_t *host, uint32_t group) override {
    ++saved;
    std::memcpy(host, cells(block, group), kvBlockBytes(group));
    return Status::ok();
  }
  Status loadKvBlock(int32_t block, const uint8_t *host, uint32_t group) override {
    ++loaded;
    std::memcpy(cells(block, group), host, kvBlockBytes(group));
    return Status::ok();
  }

  bool takesTrees() const override { return trees; }
  void moveKv(int64_t from, int64_t to, uint32_t group) override {
    ++moved;
    kv_.at(group).at(static_cast<size_t>(to)) = kv_.at(group).at(static_cast<size_t>(from));
  }

  Status execute(LlmrtStep &step) override { return executeGroups(step, {}); }
  Status executeGroups(LlmrtStep &step, std::span<const KvTable> narrower) override {
    EXPECT_EQ(narrower.size() + 1, kv_.size());
    ++steps;
    tokensOfSteps.push_back(step.T);
    if (steps == failAt)
      return internalError("the device is on fire");
    checkShape(step);
    for (int64_t t = 0; t < step.T; ++t) {
      EXPECT_GE(step.tokens[t], 0);
      EXPECT_LT(step.tokens[t], shape_.vocabulary);
      // 0 is "nothing here"
      for (size_t group = 0; group < kv_.size(); ++group)
        kv_[group].at(static_cast<size_t>((group ? narrower[group - 1].slots : step.slots)[t])) =
            step.tokens[t] + 1 + (step.longContext[t] ? longContext : 0);
    }
    logits_.assign(static_cast<size_t>(step.R * shape_.vocabulary), -5.0f);
    for (int64_t r = 0; r < step.R; ++r)
      fillRow(step, r, narrower);
    return Status::ok();
  }
  const float *logits() const override { return logits_.data(); }

  bool trees = true;
  int64_t steps = 0, failAt = -1, cleared = 0, copied = 0, saved = 0, loaded = 0, moved = 0;
  std::vector<int64_t> tokensOfSteps;
  /// Applied to a row after the script: to plant NaN, ties, other probabilities.
  std::function<void(const std::vector<int32_t> &context, float *row)> adjust;

private:
  int32_t *cells(int32_t block, uint32_t group) {
    return &kv_.at(group).at(static_cast<size_t>(block * blockTokens_));
  }
  void checkShape(const LlmrtStep &step) {
    EXPECT_LE(step.T, shape_.maxTokens);
    EXPECT_LE(step.S, shape_.maxSequences);
    EXPECT_LE(step.R, shape_.maxRows);
    EXPECT_EQ(step.queryStart[0], 0);
    EXPECT_EQ(step.queryStart[step.S], step.T);
    // Tiles cover each token once, inside one sequence.
    int64_t next = 0;
    for (int64_t q = 0; q < step.Q; ++q) {
      EXPECT_EQ(step.tileStart[q], next);
      EXPECT_GE(step.tileCount[q], 1);
      EXPECT_LE(step.tileCount[q], shape_.queryTile);
      int32_t s = step.tileSeq[q];
      EXPECT_GE(step.tileStart[q], step.queryStart[s]);
      EXPECT_LE(step.tileStart[q] + step.tileCount[q], step.queryStart[s + 1]);
      if (step.ancestors && step.tileCount[q] > 1)
        for (int64_t t = next; t < next + step.tileCount[q]; ++t)
          EXPECT_EQ(step.ancestors[t * step.ancestorWidth], -1) << "a tile of its own";
      next += step.tileCount[q];
    }
    EXPECT_EQ(next, step.T);
  }

  int32_t cell(const LlmrtStep &step, const int32_t *table, size_t group, int64_t s, int64_t p) {
    int64_t block = table[s * step.maxBlocks + p / blockTokens_];
    return kv_[group].at(static_cast<size_t>(block * blockTokens_ + p % blockTokens_));
  }
  static int64_t firstSeen(int64_t position, int64_t window) {
    return window > 0 ? std::max<int64_t>(0, position - window + 1) : 0;
  }

  void fillRow(const LlmrtStep &step, int64_t r, std::span<const KvTable> narrower) {
    int64_t t = step.logitRows[r], s = 0;
    while (step.queryStart[s + 1] <= t)
      ++s;
    int64_t position = step.positions[t];
    const int32_t *ancestors = step.ancestors ? step.ancestors + t * step.ancestorWidth : nullptr;
    int64_t count = 0;
    while (ancestors && count < step.ancestorWidth && ancestors[count] >= 0)
      ++count;
    if (count == 0)
      EXPECT_EQ(position, step.contextLen[s] - (step.queryStart[s + 1] - t));
    // Where the token at \p p lies, of those that this one sees.
    auto seen = [&](size_t group, int64_t p) {
      if (count == 0 || p < position - count)
        return cell(step, group ? narrower[group - 1].blockTable : step.blockTable, group, s, p);
      const int64_t of = p == position ? t : ancestors[p - (position - count)];
      EXPECT_EQ(step.positions[of], p);
      EXPECT_TRUE(of >= step.queryStart[s] && of <= t);
      return kv_[group].at(
          static_cast<size_t>((group ? narrower[group - 1].slots : step.slots)[of]));
    };
    std::vector<int32_t> context;
    for (int64_t p = firstSeen(position, shape_.window); p <= position; ++p) {
      const int32_t cell = seen(0, p);
      for (size_t group = 1; group < kv_.size(); ++group)
        if (p >= firstSeen(position, shape_.kvGroups[group].window))
          EXPECT_EQ(seen(group, p), cell)
              << "group " << group << ", position " << p << " of " << position;
      // All keys are of one kind, that of the length for which this row is the newest token.
      EXPECT_EQ(cell >= longContext, position + 1 > shape_.shortContext);
      context.push_back(cell % longContext - 1);
    }
    float *row = &logits_[static_cast<size_t>(r * shape_.vocabulary)];
    row[script_(context)] = 10;
    if (adjust)
      adjust(context, row);
  }

  static constexpr int32_t longContext = 1 << 20;
  ModelShape shape_;
  Script script_;
  int64_t blockTokens_ = 0;
  std::vector<std::vector<int32_t>> kv_; ///< of each group
  std::vector<float> logits_;
};

/// Remembers everything that a request was told.
class RecordingListener final : public RequestListener {
public:
  bool onToken(const TokenEvent &event) override {
    logprobs.push_back(event.token.logprob);
    EXPECT_EQ(event.index, static_cast<int64_t>(ids.size()));
    EXPECT_EQ(reason, FinishReason::None) << "a token after the end";
    ids.push_back(event.token.id);
    text += event.text;
    return cancelAfter == 0 || ids.size() < cancelAfter;
  }
  void onFinish(const FinishEvent &event) override {
    EXPECT_EQ(reason, FinishReason::None) << "two ends";
    reason = event.reason;
    status = event.status;
    stats = event.stats;
    text += event.text;
    stopString = event.stopString;
    EXPECT_EQ(event.outputTokens, static_cast<int64_t>(ids.size()));
  }
  void onPromptLogits(int64_t first, std::span<const float> logits, int64_t vocabulary) override {
    EXPECT_EQ(first, promptRows);
    promptRows += static_cast<int64_t>(logits.size()) / vocabulary;
    promptLogits.insert(promptLogits.end(), logits.begin(), logits.end());
  }

  std::vector<int32_t> ids;
  std::vector<float> logprobs;
  RequestStats stats;
  std::string text, stopString;
  FinishReason reason = FinishReason::None;
  Status status;
  size_t cancelAfter = 0;
  int64_t promptRows = 0;
  std::vector<float> promptLogits;
};

/// A token that depends on every token of the context and its place.
inline int32_t hashScript(const std::vector<int32_t> &context, int32_t vocabulary) {
  uint32_t h = 2166136261u;
  for (int32_t id : context)
    h = (h ^ static_cast<uint32_t>(id + 1)) * 16777619u;
  return static_cast<int32_t>((h >> 7) % static_cast<uint32_t>(vocabulary));
}

} // namespace llmrt

#endif // LLMRT_TEST_UNIT_ENGINE_SCRIPTEDEXECUTOR_H
