// The same tokenizer from other files gives the same ids.
#include "runtime/text/GgufPreTokenizers.h"
#include "runtime/text/Normalizer.h"
#include "runtime/text/SentencePieceModel.h"
#include "runtime/text/Tiktoken.h"
#include "test/unit/text/TestFiles.h"

#include <sstream>

using namespace llmrt;
using namespace llmrt::test;
using Ids = std::vector<int32_t>;

namespace {

std::string base64(std::string_view bytes) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k)
      out += i + k > bytes.size() ? '=' : kDigits[bits >> (18 - 6 * k) & 63];
  }
  return out;
}

/// GPT-2's vocabulary as r50k_base.tiktoken has it.
std::string gpt2Ranks() {
  GgufTokenizerData data = readGguf("ggml-vocab-gpt-2.gguf");
  auto tokenizer = Tokenizer::fromGguf(data);
  EXPECT_TRUE(tokenizer.isOk());
  std::string ranks;
  for (int32_t id = 0; id < 50256; ++id)
    ranks += base64(*(*tokenizer)->tokenBytes(id)) + " " + std::to_string(id) + "\n";
  return ranks;
}

TEST(Tiktoken, gpt2Goldens) {
  auto tokenizer = Tokenizer::fromTiktoken(gpt2Ranks());
  ASSERT_TRUE(tokenizer.isOk()) << tokenizer.status().message();
  EXPECT_EQ((*tokenizer)->eosId(), 50256);
  std::string text = readFile("gpt-2.golden.json");
  auto golden = JsonDocument::parse(text);
  ASSERT_TRUE(golden.isOk());
  size_t rows = 0;
  for (JsonValue row : golden->root()["rows"].elements()) {
    EXPECT_EQ(encode(**tokenizer, row["text"].asString()), idsOf(row["ids"]))
        << row["text"].asString();
    ++rows;
  }
  EXPECT_EQ(rows, 306u);
  EXPECT_EQ(encode(**tokenizer, "a<|endoftext|>"), Ids({64, 50256}));
}

TEST(Tiktoken, invalid) {
  auto fails = [](std::string text, const char *why) {
    auto made = Tokenizer::fromTiktoken(text);
    EXPECT_NE(failureOf(made).find(why), std::string::npos) << made.status().message();
  };
  fails("IQ== 0\nIg==\n", "line 2 must be a token in Base64, a space and its rank");
  fails("I@== 0\n", "line 1 begins with something that is not Base64");
  fails("IQ= 0\n", "line 1 begins with something that is not Base64");
  fails("IR== 0\n", "line 1 begins with something that is not Base64");
  fails("IQ== -1\n", "line 1 has the rank '-1'");
  fails("IQ== 1.5\n", "line 1 has the rank '1.5'");
  fails("IQ== 99999999999999999999\n", "has the rank '99999999999999999999'");
  fails("IQ== 0\nIg== 0\n", "line 2 has the rank 0 again");
  fails("IQ== 0\n", "a list of 1 ranks is not known");
  fails("", "a list of 0 ranks is not known");
}

TEST(SentencePieceInvalid, damagedFiles) {
  std::string model = readFile("sentencepiece/bpe-bytes.model");
  // Cut anywhere and changed anywhere: an error or a tokenizer, never a crash.
  size_t errors = 0;
  for (size_t at = 0; at < model.size(); at += 7) {
    errors += !Tokenizer::fromSentencePiece(model.substr(0, at)).isOk();
    std::string changed = model;
    changed[at] = static_cast<char>(changed[at] ^ 0xFF);
    if (auto made = Tokenizer::fromSentencePiece(changed); made.isOk())
      (void)(*made)->encode("a [X] 你");
    else
      ++errors;
  }
  EXPECT_GT(errors, 1000u);
  EXPECT_NE(failureOf(Tokenizer::fromSentencePiece("{}")).find("no SentencePiece model"),
            std::string::npos);
  EXPECT_NE(
      failureOf(Tokenizer::fromSentencePiece(model, R"({"tokenizer_class":"XLMRobertaTokenizer"})"))
          .find("'XLMRobertaTokenizer' may number"),
      std::string::npos);
}

TEST(SentencePieceInvalid, damagedCharsMaps) {
  auto spec = specFromSentencePiece(readFile("sentencepiece/unigram.model"), {}, {});
  ASSERT_TRUE(spec.isOk());
  std::string map = spec->normalizers[0].content;
  EXPECT_TRUE(CharsMap::open(map).isOk());
  for (size_t size : {0, 3, 4, 5, 1000})
    EXPECT_FALSE(CharsMap::open(map.substr(0, size)).isOk());
  for (size_t at = 4; at < map.size(); at += 101) {
    std::string changed = map;
    for (size_t k = 0; k < 16 && at + k < map.size(); ++k)
      changed[at + k] = static_cast<char>(changed[at + k] ^ 0xA5);
    if (auto made = CharsMap::open(changed); made.isOk())
      EXPECT_LT(made->applyToGraphemes("ﬁ①㍿ a\u0301 Å한").size(), 100000u);
  }
}

TEST(SentencePiece, whatGoesAround) {
  std::string model = readFile("sentencepiece/bpe.model");
  auto ids = [&](std::string_view config) {
    auto made = Tokenizer::fromSentencePiece(model, config);
    EXPECT_TRUE(made.isOk()) << made.status().message();
    return encode(**made, "", {.addSpecial = true});
  };
  EXPECT_EQ(ids(""), Ids({1}));
  EXPECT_EQ(ids(R"({"tokenizer_class":"LlamaTokenizer"})"), Ids({1}));
  EXPECT_EQ(ids(R"({"tokenizer_class":"LlamaTokenizer","add_bos_token":false})"), Ids());
  EXPECT_EQ(ids(R"({"tokenizer_class":"T5Tokenizer"})"), Ids({2}));
}

/// T5's form in GGUF against SentencePiece itself.
TEST(GgufUnigram, equalsSentencePiece) {
  std::string text = readFile("sentencepiece.golden.json");
  auto golden = JsonDocument::parse(text);
  ASSERT_TRUE(golden.isOk());
  size_t models = 0;
  for (JsonValue entry : golden->root().elements()) {
    std::string name(entry["model"].asString());
    if (!name.starts_with("unigram"))
      continue;
    ++models;
    auto spec = specFromSentencePiece(readFile("sentencepiece/" + name + ".model"), {}, {});
    ASSERT_TRUE(spec.isOk());
    GgufTokenizerData data;
    data.model = "t5";
    data.charsMap = spec->normalizers[0].content;
    for (const SpecToken &token : spec->vocabulary) {
      data.tokens.push_back(token.text);
      data.scores.push_back(static_cast<float>(token.score));
      bool byte = token.text.starts_with("<0x");
      bool user = token.text == "[X]" || token.text == "ab";
      data.tokenTypes.push_back(token.searchable ? (user ? 4 : 1)
                                : byte           ? 6
                                : token.id == 0  ? 2
                                                 : 3);
    }
    data.bosId = 1;
    data.eosId = 2;
    auto tokenizer = Tokenizer::fromGguf(data);
    ASSERT_TRUE(tokenizer.isOk()) << tokenizer.status().message();
    for (JsonValue row : entry["encode"].elements())
      EXPECT_EQ(
          encode(**tokenizer, row["text"].asString(), {.parseSpecial = false, .addSpecial = false}),
          idsOf(row["ids"]))
          << row["text"].asString();
    EXPECT_EQ(encode(**tokenizer, "", {.addSpecial = true}), Ids({2})); // T5 ends a text
  }
  EXPECT_EQ(models, 2u);
}

/// BERT's form in GGUF (marks instead of "##") against Hugging Face's tokenizer.
TEST(GgufWordPiece, equalsHuggingFace) {
  std::string text = readFile("models.golden.json");
  auto golden = JsonDocument::parse(text);
  ASSERT_TRUE(golden.isOk());
  size_t rows = 0, index = 0;
  for (JsonValue entry : golden->root()["rows"].elements()) {
    if (index++ != 1) // the trained BERT
      continue;
    std::string json(entry["tokenizer"].asString());
    auto doc = JsonDocument::parse(json);
    ASSERT_TRUE(doc.isOk());
    GgufTokenizerData data;
    data.model = "bert";
    JsonValue vocab = doc->root()["model"]["vocab"];
    data.tokens.resize(vocab.size());
    data.tokenTypes.resize(vocab.size(), 1);
    for (auto [token, id] : vocab.members()) {
      auto at = static_cast<size_t>(*id.asInteger());
      if (token.starts_with("["))
        data.tokenTypes[at] = token.ends_with("]") ? 3 : 1;
      bool inner = token.starts_with("##");
      data.tokens[at] = inner                      ? std::string(token.substr(2))
                        : data.tokenTypes[at] == 3 ? std::string(token)
                                                   : "\u2581" + std::string(token);
    }
    data.unknownId = 1;
    data.bosId = 2;
    data.separatorId = 3;
    auto tokenizer = Tokenizer::fromGguf(data);
    ASSERT_TRUE(tokenizer.isOk()) << tokenizer.status().message();
    for (JsonValue row : entry["encode"].elements()) {
      EXPECT_EQ(encode(**tokenizer, row["text"].asString(),
                       {.parseSpecial = row["parse"].asBool(), .addSpecial = row["add"].asBool()}),
                idsOf(row["ids"]))
          << row["text"].asString();
      ++rows;
    }
  }
  EXPECT_EQ(rows, 28u);
}

/// Every name cuts texts without losing anything.
TEST(GgufPreTokenizers, allNames) {
  std::istringstream names(ggufPreTokenizerNames());
  size_t count = 0;
  std::string text =
      "Hello WORLD's naïve 1234567 你好\r\n\n  ...ﷺ हिन्दी <sentinel:1> x=3.14; 한국어 "
      "ไทย\t\t\n'LL don't  İ ʼn ½ ①  ";
  for (std::string name; std::getline(names, name, ',');) {
    name.erase(0, name.find_first_not_of(' '));
    ++count;
    GgufTokenizerData data;
    data.model = "gpt2";
    data.pre = name;
    auto pre = findGgufPreTokenizer(name);
    ASSERT_TRUE(pre) << name;
    if (pre->characters) {
      data.tokenTypes.push_back(2);
      data.tokens.push_back("<unk>");
      for (const char *token : {"\u2581", "\n", "\n\n", "\n\n\n", "a", "b"})
        data.tokens.push_back(token);
      data.tokenTypes.resize(data.tokens.size(), 1);
      auto made = Tokenizer::fromGguf(data);
      ASSERT_TRUE(made.isOk()) << name << made.status().message();
      if (pre->marks)
        EXPECT_EQ(encode(**made, "a b\n\n\n"), Ids({5, 1, 6, 4})) << name;
      continue;
    }
    for (int byte = 0; byte < 256; ++byte)
      data.tokens.push_back(mapBytes(std::string(1, static_cast<char>(byte))));
    data.tokens.push_back(mapBytes(" W"));
    data.merges.push_back(mapBytes(" ") + " W");
    auto made = Tokenizer::fromGguf(data);
    ASSERT_TRUE(made.isOk()) << name << made.status().message();
    Ids ids = encode(**made, text);
    EXPECT_EQ(decode(**made, ids), text) << name;
    EXPECT_TRUE(std::find(ids.begin(), ids.end(), 256) != ids.end()) << name;
  }
  EXPECT_GE(count, 80u);
}

} // namespace
