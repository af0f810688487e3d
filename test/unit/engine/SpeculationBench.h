//===- SpeculationBench.h - an engine that guesses, and what guesses for it --===//
#ifndef LLMRT_TEST_UNIT_ENGINE_SPECULATIONBENCH_H
#define LLMRT_TEST_UNIT_ENGINE_SPECULATIONBENCH_H

#include "runtime/decode/Noise.h"
#include "runtime/engine/DraftModel.h"
#include "runtime/speculate/PromptLookup.h"
#include "runtime/speculate/SuffixAutomaton.h"
#include "test/unit/engine/TestBench.h"

namespace llmrt::test {

using Ids = std::vector<int32_t>;

/// Guesses what the script says, with mistakes at places that follow from the text: batches whose
/// rows accept 0, 1, 3, 4 of 4.
class OracleDrafter final : public Drafter {
public:
  explicit OracleDrafter(int mistakesIn8, int64_t width = 4)
      : mistakes_(mistakesIn8), width_(width) {}
  const char *name() const override { return "oracle"; }
  std::unique_ptr<DraftState> begin(int64_t, const SamplingParams &) const override {
    return nullptr;
  }
  Status propose(std::span<DraftRequest> requests) override {
    for (DraftRequest &request : requests) {
      Ids context(request.tokens.begin(), request.tokens.end());
      for (int64_t i = 0; i < std::min(request.limit, width_); ++i) {
        int32_t right = hashScript(context, vocabulary);
        bool wrong = int(mix64(uint64_t(context.size() * 131 + size_t(right))) % 8) < mistakes_;
        context.push_back(wrong ? (right + 1) % vocabulary : right);
        request.draft->push_back(context.back());
      }
    }
    return Status::ok();
  }

private:
  int mistakes_;
  int64_t width_;
};

/// Guesses trees: up to three choices for a token, at any depth, of which one may be right.
class OracleTree final : public Drafter {
public:
  const char *name() const override { return "oracle tree"; }
  std::unique_ptr<DraftState> begin(int64_t, const SamplingParams &) const override {
    return nullptr;
  }
  Status propose(std::span<DraftRequest> requests) override {
    for (DraftRequest &request : requests) {
      if (!request.tree)
        continue;
      std::vector<Ids> paths;
      uint64_t state = request.tokens.size() * 977 + size_t(request.tokens.back());
      auto draw = [&](uint64_t n) { return mix64(++state) % n; };
      for (int64_t i = 0; i < request.limit; ++i) {
        // Behind any guess so far, more often behind the latest.
        int32_t parent = int32_t(draw(2) ? i - 1 : int64_t(draw(uint64_t(i + 1))) - 1);
        Ids path =
            parent < 0 ? Ids(request.tokens.begin(), request.tokens.end()) : paths[size_t(parent)];
        path.push_back(draw(3) ? hashScript(path, vocabulary) : int32_t(draw(vocabulary)));
        request.draft->push_back(path.back());
        request.tree->add(parent, draw(2));
        paths.push_back(std::move(path));
      }
    }
    return Status::ok();
  }
};

/// A draft model that says what the target says, or with a salt something else at times.
inline std::unique_ptr<Drafter> ownModel(int64_t kvBlocks = 256, int salt = 0,
                                         int64_t shortContext = INT64_MAX) {
  DraftModelLimits limits{.maxBatchedTokens = 64,
                          .maxSequences = 8,
                          .blockTokens = 16,
                          .kvBlocks = kvBlocks,
                          .sampledVocabulary = vocabulary};
  auto executor =
      std::make_unique<ScriptedExecutor>(shapeOf(4096, shortContext), [salt](const Ids &c) {
        return (hashScript(c, vocabulary) + salt * int32_t(c.size() % 3 == 0)) % vocabulary;
      });
  return std::move(*DraftModel::create(std::move(executor), limits));
}

struct Speculative : TestBench {
  explicit Speculative(std::unique_ptr<Drafter> drafter, int64_t window = 4, bool adaptive = false,
                       BenchOptions setup = {})
      : TestBench(guessing(setup, window, adaptive), std::move(drafter)) {}
  void add(Ids prompt, int64_t n, RecordingListener &listener,
           const std::function<void(RequestOptions &)> &more = {}) {
    ASSERT_TRUE(TestBench::add(std::move(prompt), n, listener, more));
  }
  void drain() {
    for (int i = 0; engine->busy(); ++i) {
      ASSERT_LT(i, 100000);
      ASSERT_TRUE(engine->step());
    }
  }

private:
  static BenchOptions guessing(BenchOptions setup, int64_t window, bool adaptive) {
    setup.limits.speculation = {window, adaptive, false, true};
    return setup;
  }
};

using MakeDrafter = std::function<std::unique_ptr<Drafter>()>;
/// Right and wrong in every way, by name.
inline std::vector<std::pair<const char *, MakeDrafter>> drafters() {
  return {{"none", [] { return nullptr; }},
          {"perfect", [] { return std::make_unique<OracleDrafter>(0); }},
          {"half", [] { return std::make_unique<OracleDrafter>(4); }},
          {"wrong", [] { return std::make_unique<OracleDrafter>(8); }},
          {"tree", [] { return std::make_unique<OracleTree>(); }},
          {"ngram", [] { return std::make_unique<PromptLookup>(1, 3); }},
          {"suffix", [] { return std::make_unique<SuffixDrafter>(1); }},
          {"own model", [] { return ownModel(); }},
          {"another model", [] { return ownModel(256, 1); }},
          {"small draft pool", [] { return ownModel(9); }}};
}

} // namespace llmrt::test

#endif // LLMRT_TEST_UNIT_ENGINE_SPECULATIONBENCH_H
