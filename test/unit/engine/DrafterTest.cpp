// Drafters by themselves, and the text that chooses one.
#include "runtime/decode/Noise.h"
#include "runtime/speculate/PromptLookup.h"
#include "runtime/speculate/SpeculativeConfig.h"
#include "runtime/speculate/SuffixAutomaton.h"

#include <gtest/gtest.h>

using namespace llmrt;

namespace {

using Ids = std::vector<int32_t>;

std::vector<int32_t> guess(Drafter &drafter, DraftState *state, const std::vector<int32_t> &tokens,
                           int64_t limit = 4) {
  std::vector<int32_t> draft;
  draft.reserve(size_t(limit));
  DraftRequest request;
  request.state = state;
  request.tokens = tokens;
  request.limit = limit;
  request.draft = &draft;
  EXPECT_TRUE(drafter.propose(std::span(&request, 1)));
  EXPECT_LE(int64_t(draft.size()), limit);
  EXPECT_GE(request.grade, 0);
  EXPECT_LT(request.grade, draftGrades);
  return draft;
}

TEST(PromptLookup, S11_OnlyWhatWasFollowedBySomethingIsProposed) {
  PromptLookup lookup(2, 3);
  EXPECT_EQ(guess(lookup, nullptr, {5}), Ids());
  EXPECT_EQ(guess(lookup, nullptr, {5, 6}), Ids());
  EXPECT_EQ(guess(lookup, nullptr, {1, 2, 3, 4, 5}), Ids());
  EXPECT_EQ(guess(lookup, nullptr, {1, 2, 3, 9, 1, 2}), (Ids{3, 9, 1, 2}));
  EXPECT_EQ(guess(lookup, nullptr, {1, 2, 3, 9, 1, 2}, 2), (Ids{3, 9}));
  EXPECT_EQ(guess(lookup, nullptr, {7, 2, 3, 9, 1, 2}), Ids()) << "one token is too little";
  EXPECT_EQ(guess(lookup, nullptr, {4, 4, 4}), (Ids{4, 4, 4, 4})) << "a loop goes on";
  EXPECT_EQ(guess(lookup, nullptr, {7, 8, 9, 7, 8}, 8), (Ids{9, 7, 8, 9, 7, 8, 9, 7}));
  // The longest match wins over a later one, of equal ones the later.
  EXPECT_EQ(guess(lookup, nullptr, {0, 1, 2, 50, 8, 1, 2, 60, 0, 1, 2}, 1), Ids{50});
  EXPECT_EQ(guess(lookup, nullptr, {0, 1, 2, 50, 0, 1, 2, 60, 0, 1, 2}, 1), Ids{60});
}

TEST(SuffixAutomaton, FindsTheLongestRepeatedEnd) {
  for (int alphabet : {1, 2, 3, 10}) {
    SuffixAutomaton automaton(400);
    Ids text;
    for (int i = 0; i < 400; ++i) {
      text.push_back(int32_t(mix64(uint64_t(i * 7 + alphabet)) % uint64_t(alphabet)));
      automaton.append(text.back());
      // By brute force: the longest end of the text that also ends earlier.
      int64_t n = i + 1, longest = 0;
      for (int64_t end = n - 1; end > 0; --end) {
        int64_t length = 0;
        while (length < end && text[size_t(end - 1 - length)] == text[size_t(n - 1 - length)])
          ++length;
        longest = std::max(longest, length);
      }
      SuffixAutomaton::Repeat repeat = automaton.longestRepeat();
      ASSERT_EQ(repeat.length, longest) << alphabet << " " << i;
      if (longest == 0)
        continue;
      ASSERT_GE(repeat.next, longest);
      ASSERT_LT(repeat.next, n);
      for (int64_t k = 1; k <= longest; ++k)
        ASSERT_EQ(text[size_t(repeat.next - k)], text[size_t(n - k)]);
    }
  }
}

TEST(SuffixDrafter, GuessesWhatFollowed) {
  SuffixDrafter drafter(2);
  auto state = drafter.begin(100, {});
  EXPECT_EQ(guess(drafter, state.get(), {1, 2, 3, 9, 1}), Ids()) << "a repeat of one";
  EXPECT_EQ(guess(drafter, state.get(), {1, 2, 3, 9, 1, 2}), (Ids{3, 9, 1, 2}));
  EXPECT_EQ(guess(drafter, state.get(), {1, 2, 3, 9, 1, 2, 3}, 1), Ids{9});
  EXPECT_EQ(guess(drafter, state.get(), {1, 2, 3, 9, 1, 2, 3}, 6), (Ids{9, 1, 2, 3, 9, 1}));
}

/// A tree as the paths that it holds.
std::vector<Ids> guessTree(Drafter &drafter, DraftState *state, const Ids &tokens, int64_t limit) {
  Ids draft;
  draft.reserve(size_t(limit));
  DraftTree tree;
  tree.reserve(size_t(limit));
  DraftRequest request;
  request.state = state;
  request.tokens = tokens;
  request.limit = limit;
  request.draft = &draft;
  request.tree = &tree;
  EXPECT_TRUE(drafter.propose(std::span(&request, 1)));
  EXPECT_LE(int64_t(draft.size()), limit);
  std::vector<Ids> paths;
  for (int32_t i = 0; i < int32_t(draft.size()); ++i) {
    EXPECT_LT(tree.parent(i), i);
    EXPECT_EQ(tree.isLaterChoice(i), i > 0 && tree.parent(i) == DraftTree::root);
    if (tree.parent(i) == DraftTree::root)
      paths.emplace_back();
    else
      EXPECT_EQ(tree.parent(i), i - 1);
    paths.back().push_back(draft[size_t(i)]);
    EXPECT_EQ(tree.depth(i), int64_t(paths.back().size()));
  }
  return paths;
}

TEST(PromptLookup, GivesASecondChoiceWhereItIsNotSure) {
  PromptLookup lookup(1, 12);
  using Paths = std::vector<Ids>;
  const Ids forked = {0, 1, 2, 50, 8, 1, 2, 60, 9, 1, 2};
  EXPECT_EQ(guessTree(lookup, nullptr, forked, 8), (Paths{{60, 9, 1, 2, 60}, {50, 8, 1}}));
  EXPECT_EQ(guessTree(lookup, nullptr, forked, 3), (Paths{{60, 9, 1}})) << "no room for two";
  // The longer match is the first choice, wherever it stands; of what is the same there's one.
  EXPECT_EQ(guessTree(lookup, nullptr, {7, 1, 2, 50, 8, 1, 2, 60, 7, 1, 2}, 5),
            (Paths{{50, 8}, {60, 7, 1}}));
  EXPECT_EQ(guessTree(lookup, nullptr, {0, 1, 2, 50, 8, 1, 2, 50, 9, 1, 2}, 4),
            (Paths{{50, 9, 1, 2}}));
  // Six tokens alike are sure enough.
  EXPECT_EQ(guessTree(lookup, nullptr, {6, 50, 0, 1, 2, 3, 4, 5, 6, 60, 1, 2, 3, 4, 5, 6}, 4),
            (Paths{{60, 1, 2, 3}}));
}

TEST(SuffixDrafter, GivesASecondChoiceWhereItIsNotSure) {
  SuffixDrafter drafter(1);
  using Paths = std::vector<Ids>;
  // "1 2" was followed by 50; "2" alone, lately, by 60.
  auto state = drafter.begin(100, {});
  EXPECT_EQ(guessTree(drafter, state.get(), {1, 2, 50, 7, 2, 60, 9, 1, 2}, 6),
            (Paths{{50, 7, 2}, {60, 9, 1}}));
  auto other = drafter.begin(100, {});
  EXPECT_EQ(guessTree(drafter, other.get(), {1, 2, 50, 7, 2, 50, 9, 1, 2}, 6),
            (Paths{{50, 7, 2, 50, 9, 1}}));
}

TEST(SpeculativeConfig, Parses) {
  auto ngram = SpeculativeConfig::parse(
      R"({"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 3})");
  ASSERT_TRUE(ngram) << ngram.status().message();
  EXPECT_EQ(ngram->method, SpeculativeConfig::Method::Ngram);
  EXPECT_EQ(ngram->tokens, 5);
  EXPECT_EQ(ngram->lookupMax, 3);
  EXPECT_EQ(ngram->lookupMin, 2);
  auto model = SpeculativeConfig::parse(R"({"model": "draft.plan", "adaptive": false})");
  ASSERT_TRUE(model);
  EXPECT_EQ(model->method, SpeculativeConfig::Method::DraftModel);
  EXPECT_EQ(model->model, "draft.plan");
  EXPECT_FALSE(model->adaptive);
  EXPECT_FALSE(model->tree);
  EXPECT_TRUE(SpeculativeConfig::parse(R"({"method": "ngram", "tree": true})")->tree);
  auto message = [](const char *json) {
    auto config = SpeculativeConfig::parse(json);
    EXPECT_FALSE(config) << json;
    return config ? std::string() : config.status().message();
  };
  EXPECT_TRUE(
      SpeculativeConfig::parse(R"({"method":"suffix","acceptance":"classical"})")->classical);
  EXPECT_NE(message(R"({"method":"suffix","acceptance":"x"})").find("classical"),
            std::string::npos);
  EXPECT_NE(message(R"({"method": "magic"})").find("\"magic\""), std::string::npos);
  EXPECT_NE(message(R"({"method": "ngram", "num_speculative_tokens": 65})").find("1 to 64"),
            std::string::npos);
  EXPECT_NE(message(R"({"method": "ngram", "num_speculative_tokens": 2.5})").find("an integer"),
            std::string::npos);
  EXPECT_NE(message(R"({"method": "ngram", "window": 5})").find("\"window\" is not known"),
            std::string::npos);
  EXPECT_NE(message(R"({"method": "ngram", "tree": 2})").find("true or false"), std::string::npos);
  EXPECT_NE(message(R"({"method": "draft_model"})").find("needs a \"model\""), std::string::npos);
  EXPECT_NE(
      message(R"({"method":"ngram","prompt_lookup_min":5,"prompt_lookup_max":3})").find("above"),
      std::string::npos);
  (void)message("{}");
  (void)message("[]");
  (void)message(R"({"method")");
  (void)message("");
}

} // namespace
