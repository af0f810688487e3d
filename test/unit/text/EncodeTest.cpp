// Encoding and decoding rules that users of other systems saw broken.
#include "runtime/text/PreTokenizer.h"
#include "runtime/text/TokenizerPatterns.h"
#include "test/unit/text/TestFiles.h"

using namespace llmrt;
using namespace llmrt::test;
using Ids = std::vector<int32_t>;

namespace {

TEST(Bpe, ignoreMergesTakesWholePieces) { // case T01
  BpeJson json{.vocab = R"({"h":0,"e":1,"l":2,"o":3,"he":4,"hello":5})", .merges = R"(["h e"])"};
  json.model = R"("ignore_merges": true, )";
  EXPECT_EQ(encode(*makeTokenizer(json.text()), "hello"), Ids({5}));
  json.model = R"("ignore_merges": false, )";
  EXPECT_EQ(encode(*makeTokenizer(json.text()), "hello"), Ids({4, 2, 2, 3}));
}

TEST(Bpe, mergesByRankNotFromTheLeft) { // case T02
  BpeJson json{.vocab = R"({"a":0,"b":1,"c":2,"bc":3,"ab":4})", .merges = R"(["b c", "a b"])"};
  auto first = makeTokenizer(json.text());
  EXPECT_EQ(encode(*first, "abc"), Ids({0, 3}));
  EXPECT_EQ(encode(*first, "ababc"), Ids({4, 0, 3}));
  json.merges = R"([["a", "b"], ["b", "c"]])"; // the new way to write merges
  EXPECT_EQ(encode(*makeTokenizer(json.text()), "abc"), Ids({4, 2}));
  BpeJson run{.vocab = R"({"a":0,"aa":1,"aaaa":2})", .merges = R"(["a a", "aa aa"])"};
  EXPECT_EQ(encode(*makeTokenizer(run.text()), "aaaaaaa"), Ids({2, 1, 0}));
}

TEST(Bpe, longPieces) { // case T10
  std::string vocab = R"({"=":0,"==":1,"====":2,"========":3)",
              merges = R"(["= =","== ==","==== ====")";
  std::string sixteen(16, '='), thirtyTwo(32, '='), sixtyFour(64, '=');
  vocab += ",\"" + sixteen + "\":4,\"" + thirtyTwo + "\":5,\"" + sixtyFour + "\":6,\"" +
           std::string(300, 'x') + "\":7,\"\":8}";
  merges += ",\"======== ========\",\"" + sixteen + " " + sixteen + "\",\"" + thirtyTwo + " " +
            thirtyTwo + "\"]";
  BpeJson json{.vocab = vocab, .merges = merges, .model = R"("ignore_merges": true, )"};
  json.decoder = R"({"type": "Fuse"})";
  auto tokenizer = makeTokenizer(json.text());
  Ids ids = encode(*tokenizer, std::string(100, '='));
  EXPECT_EQ(ids, Ids({6, 5, 2}));
  EXPECT_EQ(decode(*tokenizer, ids), std::string(100, '='));
  EXPECT_EQ(encode(*tokenizer, std::string(300, 'x')), Ids({7}));
  EXPECT_EQ(tokenizer->tokenBytes(7)->size(), 300u);
  EXPECT_EQ(decode(*tokenizer, {8}), ""); // an empty token adds nothing and is never made
}

std::vector<std::string> split(std::string_view pattern, std::string_view text, bool regex = true,
                               SplitBehavior behavior = SplitBehavior::Isolated) {
  PipelineStep step;
  step.kind = StepKind::Split;
  step.regex = regex;
  step.pattern = pattern;
  step.behavior = behavior;
  auto made = PreTokenizer::create({step});
  EXPECT_TRUE(made.isOk()) << made.status().message();
  PatternScratch scratch;
  auto list = made->apply(text, true, scratch);
  EXPECT_TRUE(list.isOk());
  std::vector<std::string> pieces;
  for (size_t i = 0; i < list->pieces.size(); ++i)
    pieces.emplace_back(list->piece(i));
  return pieces;
}
using Pieces = std::vector<std::string>;

TEST(PreTokenizer, rulesOfModels) { // case T03
  using namespace patterns;
  EXPECT_EQ(split(kLlama3, "1234567 x"), Pieces({"123", "456", "7", " x"}));
  EXPECT_EQ(split(kLlama3, "I'LL don't"), Pieces({"I", "'LL", " don", "'t"}));
  EXPECT_EQ(split(kLlama3, "a  b\n\n c"), Pieces({"a", " ", " b", "\n\n", " c"}));
  EXPECT_EQ(split(kLlama3, "x=3.14;"), Pieces({"x", "=", "3", ".", "14", ";"}));
  EXPECT_EQ(split(kLlama3, "  \n  y"), Pieces({"  \n", " ", " y"}));
  EXPECT_EQ(split(kQwen2, "1234567 x"), Pieces({"1", "2", "3", "4", "5", "6", "7", " x"}));
  EXPECT_EQ(split(kQwen2, "x=3.14;"), Pieces({"x", "=", "3", ".", "1", "4", ";"}));
  EXPECT_EQ(split(kGpt2, "1234567 x"), Pieces({"1234567", " x"}));
  EXPECT_EQ(split(kGpt2, "I'LL don't"), Pieces({"I", "'", "LL", " don", "'t"}));
}

TEST(PreTokenizer, literalAndRegexAndBehaviors) { // case T11
  EXPECT_EQ(split(" +", "a  b +c", false), Pieces({"a  b", " +", "c"}));
  EXPECT_EQ(split(" +", "a  b +c", true), Pieces({"a", "  ", "b", " ", "+c"}));
  EXPECT_EQ(split(".", "a.b", false), Pieces({"a", ".", "b"}));
  EXPECT_EQ(split("-", "a--b-c", true, SplitBehavior::Removed), Pieces({"a", "b", "c"}));
  EXPECT_EQ(split("-", "a--b-c", true, SplitBehavior::Isolated),
            Pieces({"a", "-", "-", "b", "-", "c"}));
  EXPECT_EQ(split("-", "a--b-c", true, SplitBehavior::MergedWithPrevious),
            Pieces({"a-", "-", "b-", "c"}));
  EXPECT_EQ(split("-", "a--b-c", true, SplitBehavior::MergedWithNext),
            Pieces({"a", "-", "-b", "-c"}));
  EXPECT_EQ(split("-", "a--b-c", true, SplitBehavior::Contiguous),
            Pieces({"a", "--", "b", "-", "c"}));
}

TEST(PreTokenizer, metaspacePrefixAfterSpecialTokens) { // case T05
  auto with = [](const char *scheme) {
    BpeJson json{.vocab = R"({"<s>":0,"hi":1,"▁hi":2,"▁":3,"h":4,"i":5})",
                 .merges = R"(["h i", "▁ hi"])"};
    json.added = R"([{"id": 0, "content": "<s>", "special": true, "normalized": false}])";
    json.preTokenizer = R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": ")" +
                        std::string(scheme) + R"(", "split": true})";
    return makeTokenizer(json.text());
  };
  auto rows = [](const Tokenizer &t) {
    return std::vector<Ids>{encode(t, "hi"), encode(t, "<s>hi"), encode(t, "<s> hi"),
                            encode(t, "hi<s>hi")};
  };
  using Rows = std::vector<Ids>;
  EXPECT_EQ(rows(*with("always")), Rows({{2}, {0, 2}, {0, 2}, {2, 0, 2}}));
  EXPECT_EQ(rows(*with("first")), Rows({{2}, {0, 1}, {0, 2}, {2, 0, 1}}));
  EXPECT_EQ(rows(*with("never")), Rows({{1}, {0, 1}, {0, 2}, {1, 0, 1}}));
}

constexpr const char *kTemplate =
    R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}}], "pair": [],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}}})";

TEST(PostProcessor, bosOnceOrNotAtAll) { // case T09
  BpeJson json{.vocab = R"({"<s>":0,"h":1,"i":2})", .postProcessor = kTemplate};
  json.added = R"([{"id": 0, "content": "<s>", "special": true, "normalized": false}])";
  auto tokenizer = makeTokenizer(json.text(), R"({"bos_token": "<s>"})");
  EXPECT_EQ(encode(*tokenizer, "hi", {.addSpecial = true}), Ids({0, 1, 2}));
  // A chat template wrote the token already, so its caller doesn't ask for another one.
  EXPECT_EQ(encode(*tokenizer, "<s>hi", {.addSpecial = false}), Ids({0, 1, 2}));
  EXPECT_TRUE(tokenizer->addsPrefix());
  EXPECT_EQ(tokenizer->bosId(), 0);
  auto without = makeTokenizer(json.text(), R"({"bos_token": "<s>", "add_bos_token": false})");
  EXPECT_EQ(encode(*without, "hi", {.addSpecial = true}), Ids({1, 2}));
  EXPECT_FALSE(without->addsPrefix());
}

TEST(PostProcessor, addFlagsOfClassesThatHonourThem) {
  BpeJson json{.vocab = R"({"<s>":0,"h":1,"i":2,"</s>":3})"};
  std::string names =
      R"("bos_token": {"content": "<s>"}, "eos_token": "</s>", "add_bos_token": true,
                         "add_eos_token": true)";
  auto llama =
      makeTokenizer(json.text(), R"({"tokenizer_class": "LlamaTokenizerFast", )" + names + "}");
  EXPECT_EQ(encode(*llama, "hi", {.addSpecial = true}), Ids({0, 1, 2, 3}));
  EXPECT_EQ(llama->eosId(), 3);
  auto other = makeTokenizer(json.text(), R"({"tokenizer_class": "GPT2Tokenizer", )" + names + "}");
  EXPECT_EQ(encode(*other, "hi", {.addSpecial = true}), Ids({1, 2}));
}

TEST(Special, writtenByTemplatesNotByUsers) {
  BpeJson json{.vocab = R"({"<":0,"s":1,">":2,"<s>":3})"};
  json.added = R"([{"id": 3, "content": "<s>", "special": true, "normalized": false}])";
  auto tokenizer = makeTokenizer(json.text());
  EXPECT_EQ(encode(*tokenizer, "<s>"), Ids({3}));
  EXPECT_EQ(encode(*tokenizer, "<s>", {.parseSpecial = false, .addSpecial = false}),
            Ids({0, 1, 2}));
  EXPECT_TRUE(tokenizer->isSpecial(3));
  EXPECT_FALSE(tokenizer->isSpecial(0));
}

TEST(Special, idsWithoutARowInTheModel) { // case T12
  std::string vocab = "{";
  for (int i = 0; i < 320; ++i)
    vocab += "\"t" + std::to_string(i) + "\":" + std::to_string(i) + ",";
  BpeJson json{.vocab = vocab + R"("x":321})"};
  json.added = R"([{"id": 320, "content": "<image>", "special": true}])";
  auto tokenizer = makeTokenizer(json.text());
  EXPECT_EQ(tokenizer->vocabSize(), 322);
  EXPECT_TRUE(tokenizer->checkVocabulary(322).isOk());
  Status status = tokenizer->checkVocabulary(320);
  EXPECT_FALSE(status.isOk());
  EXPECT_NE(status.message().find("'<image>' has the id 320"), std::string::npos)
      << status.message();
  EXPECT_FALSE(tokenizer->isToken(322));
  EXPECT_FALSE(tokenizer->isToken(-1));
  EXPECT_EQ(decode(*tokenizer, {322, INT32_MAX, -1, INT32_MIN}), "");
}

TEST(Decode, cleanUpOnlyOnRequest) { // case T15
  BpeJson json{.vocab = R"({"':":0,"Ġ'":1,"search":2,"a":3,"Ġ,":4,"Ġb":5,"Ġ.":6})"};
  json.decoder = R"({"type": "ByteLevel"})";
  for (const char *config : {R"({})", R"({"clean_up_tokenization_spaces": false})",
                             R"({"clean_up_tokenization_spaces": true})"}) {
    auto tokenizer = makeTokenizer(json.text(), config);
    EXPECT_EQ(decode(*tokenizer, {0, 1, 2}), "': 'search");
    EXPECT_EQ(decode(*tokenizer, {3, 4, 5, 6}), "a , b .");
    EXPECT_EQ(decode(*tokenizer, {0, 1, 2}, {.cleanUpSpaces = true}), "':'search");
    EXPECT_EQ(decode(*tokenizer, {3, 4, 5, 6}, {.cleanUpSpaces = true}), "a, b.");
    EXPECT_EQ(tokenizer->cleanUpSpacesByDefault(),
              std::string_view(config).find("true") != std::string_view::npos);
  }
}

TEST(Encode, refusesWhatIsNotUtf8) {
  auto tokenizer = makeTokenizer(BpeJson{.vocab = R"({"a":0})"}.text());
  for (std::string bad : {"a\xFF", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE6\x97"})
    EXPECT_NE(failureOf(tokenizer->encode(bad)).find("not UTF-8"), std::string::npos);
  EXPECT_EQ(encode(*tokenizer, ""), Ids());
}

} // namespace
