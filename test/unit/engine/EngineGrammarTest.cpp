// Grammars and min_tokens inside the engine: alone, with guesses, preempted, with several choices.
#include "runtime/decode/Noise.h"
#include "runtime/decode/grammar/Grammar.h"
#include "runtime/decode/grammar/GrammarMatcher.h"
#include "runtime/speculate/PromptLookup.h"
#include "runtime/speculate/SuffixAutomaton.h"
#include "test/unit/engine/TestBench.h"

using namespace llmrt;
using namespace llmrt::test;

namespace {

constexpr int32_t endToken = 95;

/// Ids 0 to 94 are the printable characters, 95 ends, 96 is a word.
std::string bytesOf(int32_t id) {
  return id < 95 ? std::string(1, char(' ' + id)) : id == 96 ? "true" : "";
}

std::string textOf(const std::vector<int32_t> &ids) {
  std::string text;
  for (int32_t id : ids)
    text += bytesOf(id);
  return text;
}

bool matches(const Grammar &grammar, const std::string &text) {
  GrammarAutomaton automaton(std::shared_ptr<const Grammar>(&grammar, [](const Grammar *) {}));
  GrammarAutomaton::State state = automaton.start();
  for (char c : text) {
    if (state == GrammarAutomaton::dead)
      return false;
    state = automaton.next(state, uint8_t(c));
  }
  return state != GrammarAutomaton::dead && automaton.accepts(state);
}

struct Bench {
  explicit Bench(std::unique_ptr<Drafter> drafter = nullptr, int64_t blocks = 256) {
    EngineLimits limits = BenchOptions().limits;
    limits.kvBlocks = blocks;
    limits.speculation = {6, false, false, true};
    auto owned = std::make_unique<ScriptedExecutor>(
        shapeOf(), [](const std::vector<int32_t> &c) { return hashScript(c, vocabulary); });
    // Every logit follows from the last few tokens, so that texts repeat and differ.
    owned->adjust = [](const std::vector<int32_t> &context, float *row) {
      uint64_t h = context.size() > 1 ? uint64_t(context[context.size() - 2]) * 97 : 0;
      h += uint64_t(context.back());
      for (int32_t v = 0; v < vocabulary; ++v)
        row[v] = float(mix64(h * 1000 + uint64_t(v)) % 1000) / 100;
      row[endToken] = 11; // the likeliest always
    };
    engine = std::move(*Engine::create(std::move(owned), limits, std::move(drafter)));
    trie = VocabularyTrie::build(vocabulary, bytesOf);
  }
  RequestOptions request(std::shared_ptr<const Grammar> grammar, RequestListener &listener,
                         int salt = 1) {
    RequestOptions options;
    options.prompt = promptOf(25, salt);
    options.maxNewTokens = 400;
    options.endIds = {endToken};
    options.grammar = std::move(grammar);
    options.vocabularyTrie = trie;
    options.sampling.logprobs = 0;
    options.listener = &listener;
    return options;
  }
  void drain() {
    for (int i = 0; engine->busy(); ++i) {
      ASSERT_LT(i, 100000);
      ASSERT_TRUE(engine->step());
    }
  }
  std::unique_ptr<Engine> engine;
  std::shared_ptr<const VocabularyTrie> trie;
};

std::shared_ptr<const Grammar> schema() {
  return *Grammar::fromJsonSchema(R"({"type": "object", "properties": {
    "name": {"type": "string", "maxLength": 12}, "ok": {"type": "boolean"},
    "list": {"type": "array", "items": {"type": "integer", "minimum": -50, "maximum": 50},
             "minItems": 3, "maxItems": 5}}, "required": ["name", "ok", "list"]})");
}

TEST(EngineGrammar, TheTextFollowsItWhateverIsGuessed) {
  auto grammar = schema();
  std::vector<std::unique_ptr<RecordingListener>> want;
  for (int which = 0; which < 3; ++which)
    for (int64_t blocks : {256, 8}) {
      Bench bench(which == 0   ? nullptr
                  : which == 1 ? std::unique_ptr<Drafter>(new PromptLookup(1, 3))
                               : std::unique_ptr<Drafter>(new SuffixDrafter(1)),
                  blocks);
      std::vector<std::unique_ptr<RecordingListener>> got;
      for (int i = 0; i < 6; ++i) {
        got.push_back(std::make_unique<RecordingListener>());
        RequestOptions options = bench.request(grammar, *got.back(), i);
        options.maxNewTokens = 100;
        if (i % 2) {
          options.sampling.temperature = 2;
          options.sampling.topP = 0.9f;
          options.sampling.seed = uint64_t(i);
        }
        ASSERT_TRUE(bench.engine->add(std::move(options)));
      }
      bench.drain();
      // A scripted step takes less time than it takes to wake a thread.
      EXPECT_GT(bench.engine->metrics().slowFallbacks[size_t(SlowFallback::GrammarMask)], 0);
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i]->reason, FinishReason::Stop) << got[i]->status.message();
        EXPECT_TRUE(matches(*grammar, textOf(got[i]->ids))) << textOf(got[i]->ids);
        if (!want.empty()) {
          EXPECT_EQ(got[i]->ids, want[i]->ids);
          EXPECT_EQ(got[i]->logprobs, want[i]->logprobs);
        }
      }
      if (blocks == 8) {
        EXPECT_GT(bench.engine->metrics().preemptions, 0);
      }
      if (want.empty())
        want = std::move(got);
    }
}

TEST(EngineGrammar, ATextThatCanNotGoOnEndsByItself) {
  Bench bench;
  RecordingListener fixed, open, ignoring;
  ASSERT_TRUE(bench.engine->add(bench.request(*Grammar::fromRegex("abc"), fixed)));
  // Complete after each letter: the end token, the likeliest, comes as soon as it may.
  ASSERT_TRUE(bench.engine->add(bench.request(*Grammar::fromRegex("[xyz]{2,}"), open)));
  RequestOptions more = bench.request(*Grammar::fromRegex("[xyz]{2,}"), ignoring);
  more.ignoreEnd = true;
  more.maxNewTokens = 30;
  ASSERT_TRUE(bench.engine->add(std::move(more)));
  bench.drain();
  EXPECT_EQ(textOf(fixed.ids), "abc");
  EXPECT_EQ(fixed.ids.size(), 3u);
  EXPECT_EQ(fixed.reason, FinishReason::Stop);
  EXPECT_EQ(open.ids.size(), 3u);
  EXPECT_EQ(open.ids.back(), endToken);
  EXPECT_EQ(ignoring.ids.size(), 30u);
  EXPECT_EQ(textOf(ignoring.ids).find_first_not_of("xyz"), std::string::npos);
}

TEST(EngineGrammar, S14_NoEndBeforeMinTokens) {
  for (bool guesses : {false, true}) {
    Bench bench(guesses ? std::unique_ptr<Drafter>(new SuffixDrafter(1)) : nullptr);
    RecordingListener listener;
    RequestOptions options = bench.request(nullptr, listener);
    options.sampling.minTokens = 6;
    options.stopIds = {7};
    ASSERT_TRUE(bench.engine->add(std::move(options)));
    bench.drain();
    ASSERT_EQ(listener.ids.size(), 7u);
    EXPECT_EQ(listener.ids.back(), endToken);
    for (size_t i = 0; i < 6; ++i)
      EXPECT_TRUE(listener.ids[i] != endToken && listener.ids[i] != 7);
  }
}

TEST(EngineGrammar, WhatCanNotWorkIsRefused) {
  Bench bench;
  RecordingListener listener;
  RequestOptions noTrie = bench.request(schema(), listener);
  noTrie.vocabularyTrie = nullptr;
  EXPECT_FALSE(bench.engine->add(std::move(noTrie)));
  auto empty = bench.engine->add(bench.request(*Grammar::fromRegex("[]a"), listener));
  ASSERT_FALSE(empty);
  EXPECT_NE(empty.status().message().find("accepts no text"), std::string::npos);
  // A character that no token spells ends the request, not the engine.
  ASSERT_TRUE(bench.engine->add(bench.request(*Grammar::fromRegex("ab\\u00e9"), listener)));
  bench.drain();
  EXPECT_EQ(listener.reason, FinishReason::Error);
  EXPECT_EQ(textOf(listener.ids), "ab");
}

} // namespace
