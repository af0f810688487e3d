// Regular expressions keep the meaning that Oniguruma gives them; expectations are from
// Hugging Face's library (its Split on the same texts).
#include "runtime/text/Pattern.h"
#include "runtime/text/Bpe.h"
#include "runtime/text/Unicode.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace llmrt;
using Texts = std::vector<std::string>;

namespace {

Texts matches(std::string_view expression, std::string_view text) {
  auto pattern = Pattern::regex(expression);
  EXPECT_TRUE(pattern.isOk()) << pattern.status().message();
  PatternScratch scratch;
  Texts found;
  Status status = pattern->forEachMatch(
      text, scratch, [&](Span m) { found.emplace_back(text.substr(m.begin, m.size())); });
  EXPECT_TRUE(status.isOk()) << status.message();
  return found;
}

TEST(Pattern, classes) {
  EXPECT_EQ(matches(R"(\s)", "a \u180e\u3000"), Texts({" ", "\u3000"}));
  EXPECT_EQ(matches(R"([^\S\n])", " \n\u00a0"), Texts({" ", "\u00a0"}));
  EXPECT_EQ(matches(R"(\w+)", "a\u0301b_½-ⓐ"), Texts({"a\u0301b_½", "ⓐ"}));
  EXPECT_EQ(matches(R"([\w]+)", "a½"), Texts({"a"}));
  EXPECT_EQ(matches(R"(\h+)", "xyzAf0 "), Texts({"Af0"}));
  EXPECT_EQ(matches(R"([[:punct:]])", "a$😀."), Texts({"$", "😀", "."}));
  EXPECT_EQ(matches(R"(\p{Han})", "、你"), Texts({"你"}));
  EXPECT_EQ(matches(R"(\p{^L})", "a1"), Texts({"1"}));
}

TEST(Pattern, quantifiersAndGroups) {
  EXPECT_EQ(matches(R"(\d{2}+)", "12345"), Texts({"1234"}));
  EXPECT_EQ(matches(R"(a{,2}b)", "aaab"), Texts({"aab"}));
  EXPECT_EQ(matches(R"(ba{2}?)", "baab"), Texts({"baa", "b"}));
  EXPECT_EQ(matches(R"({a)", "{a"), Texts({"{a"}));
  EXPECT_EQ(matches(R"([a-c]++)", "abcd"), Texts({"abc"}));
  EXPECT_EQ(matches(R"(x(?i)a|B)", "xA xb B"), Texts({"xA", "xb"}));
  EXPECT_EQ(matches(R"((?m:a.))", "a\n"), Texts({"a\n"}));
  EXPECT_EQ(matches(R"(^.)", "a\nb"), Texts({"a", "b"}));
  EXPECT_EQ(matches(R"(\b)", "ab"), Texts({"", ""}));
}

TEST(Pattern, unsupportedIsNamed) {
  for (const char *bad : {"[a[b]]", "[a&&b]", "(?~a)", R"(\g<1>)", R"(\X)", R"(\p{Punct})",
                          "(*FAIL)", "a)", "(a", "[a", "*a", R"(\xFF)", R"(\u12)", R"(a\)",
                          R"(\p{Klingon})", "(?P<n>a)", "(?<n", "[[:graph:]]"}) {
    auto pattern = Pattern::regex(bad);
    ASSERT_FALSE(pattern.isOk()) << bad;
    EXPECT_NE(pattern.status().message().find(bad), std::string::npos)
        << pattern.status().message();
  }
}

TEST(Unicode, forms) {
  EXPECT_EQ(normalizeUnicode("e\u0301", NormalForm::Nfc), "é");
  EXPECT_EQ(normalizeUnicode("é", NormalForm::Nfd), "e\u0301");
  EXPECT_EQ(normalizeUnicode("ﬁ①", NormalForm::Nfkc), "fi1");
  EXPECT_EQ(normalizeUnicode("각", NormalForm::Nfd), "\u1100\u1161\u11a8");
  EXPECT_EQ(normalizeUnicode("a\u0301\u0323", NormalForm::Nfd), "a\u0323\u0301");
  EXPECT_EQ(lowercaseUnicode("ÀİA"), "ài\u0307a");
}

TEST(Utf8, maximalSubparts) {
  EXPECT_EQ(repairUtf8("a\xF0\x9F\x91z"), "a\uFFFDz");
  EXPECT_EQ(repairUtf8("\xE0\x80\xAF"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(repairUtf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(repairUtf8("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(repairUtf8("\xC3"), "\uFFFD");
  EXPECT_FALSE(firstInvalidUtf8("aaaaaaaaaaaaaaaa é 你 😀").has_value());
  EXPECT_EQ(firstInvalidUtf8("aaaaaaaaaaaaaaaa\xFF"), 16u);
}

/// Merging as it is defined: again and again the leftmost pair with the lowest rank.
std::vector<uint32_t> mergePlainly(const TokenizerTables &tables, std::vector<uint32_t> tokens) {
  while (true) {
    size_t best = 0;
    std::optional<Merge> found;
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      std::optional<Merge> merge = tables.findMerge(tokens[i], tokens[i + 1]);
      if (merge && (!found || merge->rank < found->rank)) {
        found = merge;
        best = i;
      }
    }
    if (!found)
      return tokens;
    tokens[best] = found->result;
    tokens.erase(tokens.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
}

TEST(Bpe, shortAndLongPiecesEqualTheDefinition) {
  // Random merges in random order, so that pairs of lower rank appear late as well.
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    TokenizerSpec spec;
    for (char c = 'a'; c < 'e'; ++c)
      spec.vocabulary.push_back({c - 'a', std::string(1, c), 0, true});
    std::map<std::string, int32_t> ids;
    for (const SpecToken &token : spec.vocabulary)
      ids[token.text] = token.id;
    for (int i = 0; i < 60; ++i) {
      const SpecToken &left = spec.vocabulary[random() % spec.vocabulary.size()];
      const SpecToken &right = spec.vocabulary[random() % spec.vocabulary.size()];
      std::string text = left.text + right.text;
      if (text.size() > 12)
        continue;
      auto [entry, fresh] = ids.emplace(text, static_cast<int32_t>(ids.size()));
      spec.merges.push_back({left.id, right.id, entry->second});
      if (fresh)
        spec.vocabulary.push_back({entry->second, text, 0, true});
    }
    std::shuffle(spec.merges.begin(), spec.merges.end(), random);
    auto blob = writeTokenizerBlob(spec);
    ASSERT_TRUE(blob.isOk()) << blob.status().message();
    auto tables =
        TokenizerTables::open({reinterpret_cast<const uint8_t *>(blob->data()), blob->size()});
    ASSERT_TRUE(tables.isOk()) << tables.status().message();
    auto config = tables->pipeline();
    ASSERT_TRUE(config.isOk());
    Bpe bpe(*tables, *config);
    BpeScratch scratch;
    for (size_t length : {1, 2, 5, 40, 48, 49, 60, 300}) {
      std::string text;
      std::vector<uint32_t> tokens, got;
      for (size_t i = 0; i < length; ++i) {
        tokens.push_back(random() % 4);
        text += static_cast<char>('a' + tokens.back());
      }
      bpe.encode(text, scratch, got);
      EXPECT_EQ(got, mergePlainly(*tables, tokens)) << text;
    }
  }
}

} // namespace
