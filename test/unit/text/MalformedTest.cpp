// Files that are wrong, damaged or hostile: an error that names the place, never more.
#include "test/unit/text/TestFiles.h"

using namespace llmrt;
using namespace llmrt::test;

namespace {

std::string jsonFailure(const BpeJson &json) {
  return failureOf(Tokenizer::fromTokenizerJson(json.text()));
}
#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(TokenizerJsonInvalid, ids) { // case M10
  for (const char *id : {"-1", "2147483648", "4294967296", "1.5", "\"5\"", "1e3", "null", "[]"}) {
    std::string message = jsonFailure({.vocab = R"({"hello":)" + std::string(id) + "}"});
    EXPECT_CONTAINS(message, "tokenizer.json");
    EXPECT_CONTAINS(message, "hello");
  }
  EXPECT_CONTAINS(jsonFailure({.vocab = R"({"a":0,"b":0})"}), "id 0 belongs to two tokens");
  EXPECT_CONTAINS(jsonFailure({.vocab = R"({"a":0,"a":1})"}), "'a' twice");
  BpeJson json{.vocab = R"({"a":0})"};
  json.added = R"([{"id": 0, "content": "b"}])";
  EXPECT_CONTAINS(jsonFailure(json), "'a' and the added 'b'");
  json.added = R"([{"id": 7, "content": "b"}, {"id": 7, "content": "c"}])";
  EXPECT_CONTAINS(jsonFailure(json), "id 7 belongs to two tokens");
  json.added = R"([{"id": 7, "content": "a"}])";
  EXPECT_CONTAINS(jsonFailure(json), "'a' has two ids");
  json.added = R"([{"id": 7}])";
  EXPECT_CONTAINS(jsonFailure(json), "'content' must be a string");
  json.added = R"([{"id": 7, "content": ""}])";
  EXPECT_CONTAINS(jsonFailure(json), "empty content");
  json.added = R"([{"id": -7, "content": "b"}])";
  EXPECT_CONTAINS(jsonFailure(json), "-7");
}

TEST(TokenizerJsonInvalid, gapsInTheIdsCostNothing) { // case M10
  BpeJson json{.vocab = R"({"a":0,"b":1000000000})",
               .added = R"([{"id":2000000000,"content":"c"}])"};
  auto tokenizer = makeTokenizer(json.text());
  EXPECT_EQ(encode(*tokenizer, "abc"), std::vector<int32_t>({0, 1000000000, 2000000000}));
  EXPECT_EQ(decode(*tokenizer, {1000000000, 5, 2000000000, 0}), "b c a");
  EXPECT_EQ(tokenizer->vocabSize(), 2000000001);
  EXPECT_LT(tokenizer->serialize()->size(), 2000u);
}

TEST(TokenizerJsonInvalid, merges) {
  std::string vocab = R"({"a":0,"b":1,"ab":2})";
  EXPECT_CONTAINS(jsonFailure({.vocab = vocab, .merges = R"(["ab"])"}), "model.merges[0]");
  EXPECT_CONTAINS(jsonFailure({.vocab = vocab, .merges = R"(["a b", "a b c"])"}),
                  "model.merges[1]");
  EXPECT_CONTAINS(jsonFailure({.vocab = vocab, .merges = R"([["a","b","c"]])"}), "model.merges[0]");
  EXPECT_CONTAINS(jsonFailure({.vocab = vocab, .merges = R"([["a"]])"}), "model.merges[0]");
  EXPECT_CONTAINS(jsonFailure({.vocab = vocab, .merges = "[3]"}), "model.merges[0]");
  EXPECT_CONTAINS(jsonFailure({.vocab = vocab, .merges = R"([["a", 3]])"}), "two strings");
  EXPECT_CONTAINS(jsonFailure({.vocab = vocab, .merges = R"(["b a"])"}), "'ba' is not in the");
  EXPECT_CONTAINS(jsonFailure({.vocab = vocab, .merges = R"(["a x"])"}), "'x' is not in the");
  EXPECT_CONTAINS(jsonFailure({.vocab = vocab, .merges = "{}"}), "must be an array");
}

TEST(TokenizerJsonInvalid, unknownParts) {
  BpeJson json{.vocab = R"({"a":0})"};
  std::string other = json.text();
  other.replace(other.find("BPE"), 3, "Trigram");
  EXPECT_CONTAINS(failureOf(Tokenizer::fromTokenizerJson(other)), "'Trigram' is not supported");
  auto with = [&](std::string BpeJson::*member, const char *value) {
    BpeJson changed = json;
    changed.*member = value;
    return jsonFailure(changed);
  };
  EXPECT_CONTAINS(with(&BpeJson::normalizer, R"({"type":"Precompiled"})"), "normalizer: ");
  EXPECT_CONTAINS(with(&BpeJson::normalizer, R"({"type":"Magic"})"), "'Magic'");
  EXPECT_CONTAINS(
      with(&BpeJson::normalizer, R"({"type":"Sequence","normalizers":[{"type":"Nmy"}]})"), "'Nmy'");
  EXPECT_CONTAINS(with(&BpeJson::preTokenizer, R"({"type":"UnicodeScripts"})"), "'UnicodeScripts'");
  EXPECT_CONTAINS(with(&BpeJson::postProcessor, R"({"type":"Magic"})"), "post_processor 'Magic'");
  EXPECT_CONTAINS(with(&BpeJson::decoder, R"({"type":"CTC"})"), "decoder 'CTC'");
  EXPECT_CONTAINS(with(&BpeJson::preTokenizer, R"({"type":"Split","pattern":{"Regex":"["},
                  "behavior":"Isolated"})"),
                  "']' is missing");
  EXPECT_CONTAINS(with(&BpeJson::preTokenizer, R"({"type":"Split","pattern":{"Regex":"a"},
                  "behavior":"Sideways"})"),
                  "'Sideways'");
  EXPECT_CONTAINS(with(&BpeJson::model, R"("dropout": 0.1, )"), "dropout");
  EXPECT_CONTAINS(with(&BpeJson::model, R"("unk_token": "?", )"), "'?' is not in the vocabulary");
  EXPECT_CONTAINS(with(&BpeJson::model, R"("byte_fallback": "yes", )"), "true or false");
}

TEST(TokenizerJsonInvalid, companions) {
  std::string json = BpeJson{.vocab = R"({"a":0})"}.text();
  EXPECT_CONTAINS(failureOf(Tokenizer::fromTokenizerJson(json, "{")), "tokenizer_config.json");
  EXPECT_CONTAINS(failureOf(Tokenizer::fromTokenizerJson(json, "{}", "[]")), "special_tokens_map");
  EXPECT_CONTAINS(failureOf(Tokenizer::fromTokenizerJson(
                      json, R"({"added_tokens_decoder":{"-1":{"content":"b"}}})")),
                  "'-1'");
  // A name that no token has is common and harmless.
  auto tokenizer = makeTokenizer(json, R"({"pad_token": "[PAD]"})");
  EXPECT_FALSE(tokenizer->padId().has_value());
}

TEST(TokenizerJsonInvalid, syntaxAndNesting) {
  EXPECT_CONTAINS(failureOf(Tokenizer::fromTokenizerJson("")), "truncated");
  EXPECT_CONTAINS(failureOf(Tokenizer::fromTokenizerJson("\n {\"a\" 1}")), "line 2, column 7");
  EXPECT_CONTAINS(failureOf(Tokenizer::fromTokenizerJson("{\"a\": \"\\ud800\"}")), "surrogate");
  EXPECT_CONTAINS(failureOf(Tokenizer::fromTokenizerJson("{\"\xFF\": 1}")), "not UTF-8");
  EXPECT_CONTAINS(failureOf(Tokenizer::fromTokenizerJson("[]")), "must hold an object");
  EXPECT_CONTAINS(failureOf(Tokenizer::fromTokenizerJson(std::string(1000000, '['))), "deeper");
  std::string nested;
  for (int i = 0; i < 40; ++i)
    nested += R"({"type":"Sequence","normalizers":[)";
  EXPECT_CONTAINS(failureOf(Tokenizer::fromTokenizerJson("{\"normalizer\":" + nested)),
                  "truncated");
}

GgufTokenizerData smallSpm() {
  GgufTokenizerData data;
  data.model = "llama";
  data.tokens = {"<unk>", "<s>", "<0x41>", "a", "b", "ab"};
  data.scores = {0, 0, 0, -2, -3, -1};
  data.tokenTypes = {2, 3, 6, 1, 1, 1};
  data.unknownId = 0;
  data.bosId = 1;
  return data;
}
std::string ggufFailure(const GgufTokenizerData &data) {
  return failureOf(Tokenizer::fromGguf(data));
}

TEST(GgufInvalid, lengthsAndTypes) {
  GgufTokenizerData data = smallSpm();
  data.scores.pop_back();
  EXPECT_CONTAINS(ggufFailure(data),
                  "tokenizer.ggml.scores must have one element a token, 6, it has 5");
  data = smallSpm();
  data.tokenTypes.resize(3);
  EXPECT_CONTAINS(ggufFailure(data), "tokenizer.ggml.token_type must have");
  data = smallSpm();
  data.tokenTypes[3] = 77;
  EXPECT_CONTAINS(ggufFailure(data), "tokenizer.ggml.token_type[3] is 77");
  data = smallSpm();
  data.tokens.clear();
  EXPECT_CONTAINS(ggufFailure(data), "tokenizer.ggml.tokens is missing");
  data = smallSpm();
  data.scores.clear();
  EXPECT_CONTAINS(ggufFailure(data), "tokenizer.ggml.scores is missing");
  data = smallSpm();
  data.scores[4] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_CONTAINS(ggufFailure(data), "tokenizer.ggml.scores[4]");
  data = smallSpm();
  data.tokens[4] = "\xFF";
  EXPECT_CONTAINS(ggufFailure(data), "tokenizer.ggml.tokens[4] is not UTF-8");
  data = smallSpm();
  data.tokens[4] = "a";
  EXPECT_CONTAINS(ggufFailure(data), "'a' has two ids");
  for (int64_t id : {int64_t(-1), int64_t(6), int64_t(1) << 40}) {
    data = smallSpm();
    data.eosId = id;
    EXPECT_CONTAINS(ggufFailure(data), "tokenizer.ggml.eos_token_id is " + std::to_string(id));
  }
  data = smallSpm();
  data.model = "rwkv";
  EXPECT_CONTAINS(ggufFailure(data), "tokenizer.ggml.model 'rwkv' is not supported");
}

TEST(GgufInvalid, byteTokens) { // case M09
  for (const char *bad : {"<0x-1>", "<0xGG>", "<0x1>", "<0x123>", "<0x>", "", "<0x41", "<0x+1>"}) {
    GgufTokenizerData data = smallSpm();
    data.tokens[2] = bad;
    std::string message = ggufFailure(data);
    EXPECT_CONTAINS(message, "tokenizer.ggml.tokens[2] '" + std::string(bad) + "'");
  }
  GgufTokenizerData data = smallSpm();
  data.tokens[3] = "<0x41>";
  data.tokenTypes[3] = 6;
  EXPECT_CONTAINS(ggufFailure(data), "second token for that byte");
  // The byte 0x42 has no token: what needs it is unknown.
  auto made = Tokenizer::fromGguf(smallSpm());
  ASSERT_TRUE(made.isOk()) << made.status().message();
  EXPECT_EQ(encode(**made, "abAB"), std::vector<int32_t>({0, 5, 2, 0}));
}

TEST(GgufInvalid, preTokenizerAndMerges) {
  GgufTokenizerData data;
  data.model = "gpt2";
  data.tokens = {"a", "b", "ab"};
  EXPECT_CONTAINS(ggufFailure(data), "tokenizer.ggml.pre is missing");
  data.pre = "new-model";
  EXPECT_CONTAINS(ggufFailure(data), "tokenizer.ggml.pre 'new-model' is not supported");
  data.pre = "gpt-2";
  EXPECT_TRUE(Tokenizer::fromGguf(data).isOk());
  for (const char *bad : {"ab", "a b c", "a  b"}) {
    data.merges = {"a b", bad};
    EXPECT_CONTAINS(ggufFailure(data), "tokenizer.ggml.merges[1]");
  }
  data.merges = {"a x"};
  EXPECT_CONTAINS(ggufFailure(data), "needs the token 'x'");
}

/// A file that is read despite a damage must still work without harm.
void exercise(const Result<std::shared_ptr<Tokenizer>> &made) {
  if (!made) {
    EXPECT_FALSE(made.status().message().empty());
    return;
  }
  for (bool special : {true, false}) {
    auto ids = (*made)->encode("Hello <|im_start|> wörld 12  \n\n é", {.parseSpecial = special});
    if (ids)
      (void)(*made)->decode(*ids).isOk();
  }
  for (int32_t id : {0, 1, 300, 301, 49151, INT32_MAX, -1})
    (void)(*made)->tokenBytes(id).isOk();
}

TEST(Damage, tokenizerJson) {
  std::string json = readFile("smollm2/tokenizer.json");
  ASSERT_GT(json.size(), 3000000u);
  // A small file with the real head, so that each try is fast.
  size_t vocab = json.find("\"vocab\"");
  ASSERT_NE(vocab, std::string::npos);
  std::string head =
      json.substr(0, vocab) + R"("vocab":{"a":0,"b":1,"ab":2},"merges":[["a","b"]]}})";
  head.replace(head.find("\"unk_token\": \"<|endoftext|>\""), 28,
               "\"unk_token\": \"a\"           ");
  for (size_t at = 0; at < head.size(); ++at) {
    EXPECT_FALSE(Tokenizer::fromTokenizerJson(head.substr(0, at)).isOk()) << at;
    for (int bit : {0, 3, 5, 7}) {
      std::string flipped = head;
      flipped[at] = static_cast<char>(flipped[at] ^ 1 << bit);
      exercise(Tokenizer::fromTokenizerJson(flipped));
    }
  }
  for (size_t at = 0; at < json.size(); at += json.size() / 23) {
    EXPECT_FALSE(Tokenizer::fromTokenizerJson(std::string_view(json).substr(0, at)).isOk());
    std::string flipped = json;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    exercise(Tokenizer::fromTokenizerJson(flipped));
  }
}

Result<std::shared_ptr<Tokenizer>> open(const std::string &blob) {
  return Tokenizer::fromBlob({reinterpret_cast<const uint8_t *>(blob.data()), blob.size()});
}

void damageBlob(const std::string &blob, size_t step) {
  for (size_t at = 0; at < blob.size(); at += at < 2000 ? 1 : step) {
    EXPECT_FALSE(open(blob.substr(0, at)).isOk()) << at;
    for (uint8_t change : {0x01, 0x80, 0xFF}) {
      std::string flipped = blob;
      flipped[at] = static_cast<char>(static_cast<uint8_t>(flipped[at]) ^ change);
      exercise(open(flipped));
    }
  }
}

TEST(Damage, blob) {
  BpeJson json{.vocab = R"({"a":0,"b":1,"ab":2,"<0x41>":5,"Ġ":6,"é":900})", .merges = R"(["a b"])"};
  json.model = R"("byte_fallback": true, "unk_token": "a", )";
  json.added =
      R"([{"id": 7, "content": "<|im_start|>", "special": true}, {"id": 8, "content": "H"}])";
  json.normalizer = R"({"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": " "})";
  json.preTokenizer = R"({"type": "ByteLevel"})";
  json.decoder =
      R"({"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"Regex": "[ab]"},
                     "content": "x"}, {"type": "ByteFallback"}, {"type": "Fuse"}]})";
  auto small = makeTokenizer(json.text());
  damageBlob(*small->serialize(), 1);
  auto spm = Tokenizer::fromGguf(smallSpm());
  ASSERT_TRUE(spm.isOk());
  damageBlob(*(*spm)->serialize(), 1);
}

TEST(Damage, bigBlob) {
  auto big = Tokenizer::fromTokenizerJson(readFile("smollm2/tokenizer.json"));
  ASSERT_TRUE(big.isOk());
  std::string blob = *(*big)->serialize();
  for (size_t at = 0; at < blob.size(); at += 40009) {
    EXPECT_FALSE(open(blob.substr(0, at)).isOk()) << at;
    blob[at] = static_cast<char>(~blob[at]);
    exercise(open(blob));
    blob[at] = static_cast<char>(~blob[at]);
  }
  EXPECT_TRUE(open(blob).isOk());
}

} // namespace
