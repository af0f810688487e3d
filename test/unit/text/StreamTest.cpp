#include "runtime/text/TextStream.h"
#include "test/unit/text/TestFiles.h"

using namespace llmrt;
using namespace llmrt::test;
using Texts = std::vector<std::string>;

namespace {

/// Feeds byte pieces in groups of \p step, which must not change anything.
struct Streamed {
  Texts deltas;
  std::string joined;
  std::optional<size_t> stop;
};
Streamed feed(const Texts &pieces, Texts stops = {}) {
  TextStreamOptions options;
  options.stops = std::move(stops);
  TextStream stream(nullptr, options);
  Streamed run;
  for (const std::string &piece : pieces)
    run.deltas.push_back(stream.pushBytes(piece));
  run.deltas.push_back(stream.finish());
  for (const std::string &delta : run.deltas)
    run.joined += delta;
  run.stop = stream.stopIndex();
  EXPECT_EQ(stream.heldBytes(), 0u);
  EXPECT_EQ(stream.finish(), "");
  return run;
}

TEST(TextStream, neverHalfACharacter) { // case T07
  EXPECT_EQ(feed({"\xF0\x9F", "\x91", "\x8D", " ok"}).deltas, Texts({"", "", "👍", " ok", ""}));
  Streamed broken = feed({"a", "\xE6\x97", " b", "\xE6"});
  EXPECT_EQ(broken.deltas, Texts({"a", "", "\uFFFD b", "", "\uFFFD"}));
  EXPECT_EQ(feed({"\x80"}).joined, "\uFFFD");
  EXPECT_EQ(feed({"e", "\xCC", "\x81", "x"}).deltas, Texts({"e", "", "\u0301", "x", ""}));
}

TEST(TextStream, validTextAtEveryCut) { // case T07
  std::string family = "👨‍👩‍👧";
  ASSERT_EQ(family.size(), 18u);
  for (size_t cut = 1; cut < family.size(); ++cut)
    EXPECT_EQ(feed({family.substr(0, cut), family.substr(cut)}).joined, family) << cut;
  Texts bytes;
  for (char c : family)
    bytes.emplace_back(1, c);
  EXPECT_EQ(feed(bytes).joined, family);
}

TEST(TextStream, stopInTheMiddleOfAStep) {
  for (const Texts &pieces : {Texts{" one", " two", " STOP", " three"},
                              Texts{" one two", " STOP three"}, Texts{" one two STOP three"}}) {
    Streamed run = feed(pieces, {"STOP"});
    EXPECT_EQ(run.joined, " one two ");
    EXPECT_EQ(run.stop, 0u);
  }
}

TEST(TextStream, earliestCompletedStopCounts) {
  Texts stops = {"a", "is", ","};
  Streamed whole = feed({" The user is a,"}, stops);
  EXPECT_EQ(whole.joined, " The user ");
  EXPECT_EQ(whole.stop, 1u);
  Streamed single = feed({" The", " user", " is", " a", ","}, stops);
  EXPECT_EQ(single.joined, " The user ");
  EXPECT_EQ(single.stop, 1u);
  // Of two that end together the longer one, wherever it stands in the list.
  EXPECT_EQ(feed({"xabc"}, {"bc", "abc"}).joined, "x");
  EXPECT_EQ(feed({"xabc"}, {"abc", "bc"}).stop, 0u);
}

TEST(TextStream, emptyAndOddStops) {
  EXPECT_EQ(feed({"ab"}, {""}).joined, "ab");
  Streamed second = feed({"axb"}, {"", "x"});
  EXPECT_EQ(second.joined, "a");
  EXPECT_EQ(second.stop, 1u);
  EXPECT_EQ(feed({"ab"}, {}).joined, "ab");
  EXPECT_EQ(feed({"ba"}, Texts(5, "a")).stop, 0u);
  EXPECT_EQ(feed({std::string(99999, 'a')}, {std::string(100000, 'a')}).joined,
            std::string(99999, 'a'));
  EXPECT_EQ(feed({"b" + std::string(100000, 'a')}, {std::string(100000, 'a')}).joined, "b");
  EXPECT_EQ(feed({std::string("x\0y", 3)}, {std::string(1, '\0')}).joined, "x");
}

TEST(TextStream, heldTextIsReleased) {
  EXPECT_EQ(feed({"UNO", " DUE", " TRE"}, {"TRE\nAAAAAAAA"}).joined, "UNO DUE TRE");
  Streamed released = feed({"ab", "c"}, {"abd"});
  EXPECT_EQ(released.deltas, Texts({"", "abc", ""}));
  EXPECT_EQ(feed({"12S", "TO", "P3"}, {"STOP"}).joined, "12");
  EXPECT_EQ(feed({"aaab"}, {"aab"}).joined, "a");
  EXPECT_EQ(feed({"a", "a", "a", "b"}, {"aab"}).joined, "a");
  // A stop string whose characters arrive byte by byte.
  EXPECT_EQ(feed({"x\xC3", "\xA9\xE4\xBD", "\xA0y"}, {"é你"}).joined, "x");
  EXPECT_EQ(feed({"x\xC3", "\xA9", "y"}, {"é你"}).joined, "xéy");
}

TEST(TextStream, holdsLessThanTheStop) {
  TextStreamOptions options;
  options.stops = {"abcabcabd"};
  TextStream stream(nullptr, options);
  std::string text;
  for (int i = 0; i < 50; ++i) {
    text += stream.pushBytes(std::string(1, "abc"[i % 3]));
    EXPECT_LT(stream.heldBytes(), 9u);
  }
  EXPECT_FALSE(stream.stopped());
  EXPECT_EQ((text + stream.finish()).size(), 50u);
}

TEST(TextStream, nothingAfterTheStop) {
  TextStreamOptions options;
  options.stops = {"."};
  TextStream stream(nullptr, options);
  EXPECT_EQ(stream.pushBytes("a."), "a");
  EXPECT_TRUE(stream.stopped());
  EXPECT_EQ(stream.pushBytes("b"), "");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, equalsDecodeTokenByToken) {
  auto made = Tokenizer::fromGguf(readGguf("ggml-vocab-llama-spm.gguf"));
  ASSERT_TRUE(made.isOk()) << made.status().message();
  std::vector<int32_t> ids = encode(**made, "Hello, wörld  👍🏽 你好𠮷");
  TextStream whole(*made, {.skipSpecial = true, .startOfText = true});
  TextStream rest(*made);
  std::string text, continued;
  for (int32_t id : ids) {
    text += whole.push(id);
    continued += rest.push(id);
  }
  EXPECT_EQ(text + whole.finish(), decode(**made, ids));
  // After a prompt the first word keeps its space.
  EXPECT_EQ(continued + rest.finish(), " " + decode(**made, ids));
}

TEST(TextStream, skipsSpecialAndUnknownIds) {
  BpeJson json{.vocab = R"({"a":0,"b":1})", .decoder = R"({"type": "ByteLevel"})"};
  json.added = R"([{"id": 2, "content": "<eos>", "special": true}])";
  auto tokenizer = makeTokenizer(json.text());
  TextStream stream(tokenizer);
  EXPECT_EQ(stream.push(0) + stream.push(2) + stream.push(77) + stream.push(-1) + stream.push(1),
            "ab");
  TextStream shown(tokenizer, {.skipSpecial = false, .startOfText = false});
  EXPECT_EQ(shown.push(0) + shown.push(2), "a<eos>");
  // Without a decoder tokens are separated by spaces, as decode() does it.
  json.decoder = "null";
  auto spaced = makeTokenizer(json.text());
  TextStream words(spaced);
  EXPECT_EQ(words.push(0) + words.push(1), "a b");
  EXPECT_EQ(decode(*spaced, {0, 1}), "a b");
}

} // namespace
