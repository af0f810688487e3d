// Every row of the goldens (see test/data/README.md), on a tokenizer made from the file and
// on one made from its blob.
#include "runtime/text/TextStream.h"
#include "test/unit/text/TestFiles.h"

#include <sstream>

using namespace llmrt;
using namespace llmrt::test;

namespace {

struct Case {
  std::string golden; ///< NAME.golden.json
  std::string gguf;   ///< NAME.gguf, or empty for the folder with tokenizer.json
};

std::shared_ptr<Tokenizer> load(const Case &c) {
  Result<std::shared_ptr<Tokenizer>> made =
      c.gguf.empty() ? Tokenizer::fromTokenizerJson(readFile("smollm2/tokenizer.json"),
                                                    readFile("smollm2/tokenizer_config.json"),
                                                    readFile("smollm2/special_tokens_map.json"))
                     : Tokenizer::fromGguf(readGguf(c.gguf));
  EXPECT_TRUE(made.isOk()) << made.status().message();
  return made ? *made : nullptr;
}

class Golden : public testing::TestWithParam<Case> {};
class LlamaCpp : public testing::TestWithParam<Case> {};

void checkRow(const Tokenizer &tokenizer, JsonValue row, bool special) {
  std::string text(row["text"].asString());
  SCOPED_TRACE("text: " + text);
  std::vector<int32_t> ids = idsOf(row["ids"]);
  EXPECT_EQ(encode(tokenizer, text, {.parseSpecial = special, .addSpecial = false}), ids);
  EXPECT_EQ(decode(tokenizer, ids), row["decode"].asString());
  if (!special)
    return;
  JsonValue plain = row["ids_special_as_text"];
  EXPECT_EQ(encode(tokenizer, text, {.parseSpecial = false, .addSpecial = false}),
            plain ? idsOf(plain) : ids);
  JsonValue skipped = row["decode_skip_special"];
  EXPECT_EQ(decode(tokenizer, ids, {.skipSpecial = true}),
            (skipped ? skipped : row["decode"]).asString());
}

/// Tokens one by one give the text that all at once give.
void checkStream(const std::shared_ptr<Tokenizer> &tokenizer, JsonValue row) {
  TextStream stream(tokenizer, {.skipSpecial = false, .startOfText = true});
  std::string text;
  for (int32_t id : idsOf(row["ids"]))
    text += stream.push(id);
  text += stream.finish();
  EXPECT_EQ(text, row["decode"].asString());
}

TEST_P(Golden, rowsAndBlob) {
  std::shared_ptr<Tokenizer> made = load(GetParam());
  ASSERT_TRUE(made);
  Result<std::string> blob = made->serialize();
  ASSERT_TRUE(blob.isOk());
  auto reopened =
      Tokenizer::fromBlob({reinterpret_cast<const uint8_t *>(blob->data()), blob->size()});
  ASSERT_TRUE(reopened.isOk()) << reopened.status().message();
  std::string text = readFile(GetParam().golden);
  auto golden = JsonDocument::parse(text);
  ASSERT_TRUE(golden.isOk());
  // The goldens of the SentencePiece models are sentencepiece's, which has no control tokens.
  bool special = !golden->root()["source"].asString().starts_with("sentencepiece");
  size_t rows = 0;
  for (JsonValue row : golden->root()["rows"].elements()) {
    checkRow(*made, row, special);
    checkRow(**reopened, row, special);
    checkStream(made, row);
    ++rows;
  }
  EXPECT_EQ(rows, 306u);
  for (JsonValue row : golden->root()["decode_partial"].elements())
    EXPECT_EQ(decode(*made, idsOf(row["ids"])), row["text"].asString());
  if (JsonValue vocab = golden->root()["vocab"])
    EXPECT_EQ(made->vocabSize(), vocab.asInteger());
}

/// llama.cpp's own test vectors, made with each model's original tokenizer.
TEST_P(LlamaCpp, vectors) {
  std::shared_ptr<Tokenizer> tokenizer = load(GetParam());
  ASSERT_TRUE(tokenizer);
  std::string input = readFile(GetParam().gguf + ".inp"),
              output = readFile(GetParam().gguf + ".out");
  constexpr std::string_view kMark = "\n__ggml_vocab_test__\n";
  size_t in = 0, out = 0, cases = 0;
  while (out < output.size()) {
    size_t end = std::min(input.find(kMark, in), input.size());
    std::string text = input.substr(in, end - in);
    in = std::min(end + kMark.size(), input.size());
    size_t newline = output.find('\n', out);
    std::vector<int32_t> ids;
    for (std::istringstream line(output.substr(out, newline - out));
         line >> std::ws && !line.eof();)
      line >> ids.emplace_back();
    out = newline + 1;
    EXPECT_EQ(encode(*tokenizer, text, {.parseSpecial = false, .addSpecial = false}), ids)
        << "text: " << text;
    ++cases;
  }
  EXPECT_EQ(cases, 46u);
}

/// Every component that tokenizer.json can have, in random combinations.
TEST(Components, equalHuggingFace) {
  std::string text = readFile("components.golden.json");
  auto golden = JsonDocument::parse(text);
  ASSERT_TRUE(golden.isOk()) << golden.status().message();
  size_t checks = 0;
  for (JsonValue entry : golden->root().elements()) {
    SCOPED_TRACE(entry["tokenizer"].asString().substr(0, 2000));
    std::shared_ptr<Tokenizer> tokenizer = makeTokenizer(entry["tokenizer"].asString());
    ASSERT_TRUE(tokenizer);
    for (JsonValue row : entry["encode"].elements()) {
      EncodeOptions options{.parseSpecial = row["parse"].asBool(),
                            .addSpecial = row["add"].asBool()};
      EXPECT_EQ(encode(*tokenizer, row["text"].asString(), options), idsOf(row["ids"]))
          << "text: " << row["text"].asString();
      ++checks;
    }
    for (JsonValue row : entry["decode"].elements()) {
      EXPECT_EQ(decode(*tokenizer, idsOf(row["ids"]), {.skipSpecial = row["skip"].asBool()}),
                row["text"].asString());
      ++checks;
    }
  }
  EXPECT_EQ(checks, 120u * 24u);
}

/// Unigram, WordPiece and WordLevel models, and the normalizers that go with them.
TEST(Models, equalHuggingFace) {
  std::string text = readFile("models.golden.json");
  auto golden = JsonDocument::parse(text);
  ASSERT_TRUE(golden.isOk()) << golden.status().message();
  size_t checks = 0;
  for (JsonValue entry : golden->root()["rows"].elements()) {
    std::string json(entry["tokenizer"].asString());
    size_t number = 0;
    for (JsonValue table : golden->root()["charsmaps"].elements()) {
      std::string name = "CHARSMAP" + std::to_string(number++);
      for (size_t at; (at = json.find(name)) != std::string::npos;)
        json.replace(at, name.size(), table.asString());
    }
    SCOPED_TRACE(entry["tokenizer"].asString().substr(0, 2000));
    std::shared_ptr<Tokenizer> tokenizer = makeTokenizer(json);
    ASSERT_TRUE(tokenizer);
    for (JsonValue row : entry["encode"].elements()) {
      EncodeOptions options{.parseSpecial = row["parse"].asBool(),
                            .addSpecial = row["add"].asBool()};
      EXPECT_EQ(encode(*tokenizer, row["text"].asString(), options), idsOf(row["ids"]))
          << "text: " << row["text"].asString();
      ++checks;
    }
    for (JsonValue row : entry["decode"].elements()) {
      EXPECT_EQ(decode(*tokenizer, idsOf(row["ids"]), {.skipSpecial = row["skip"].asBool()}),
                row["text"].asString());
      ++checks;
    }
  }
  EXPECT_EQ(checks, 100u * 36u);
}

TEST(Models, equalSentencePiece) {
  std::string text = readFile("sentencepiece.golden.json");
  auto golden = JsonDocument::parse(text);
  ASSERT_TRUE(golden.isOk()) << golden.status().message();
  size_t checks = 0;
  for (JsonValue entry : golden->root().elements()) {
    std::string name(entry["model"].asString());
    SCOPED_TRACE(name);
    auto tokenizer = Tokenizer::fromSentencePiece(readFile("sentencepiece/" + name + ".model"));
    ASSERT_TRUE(tokenizer.isOk()) << tokenizer.status().message();
    for (JsonValue row : entry["encode"].elements()) {
      EXPECT_EQ(
          encode(**tokenizer, row["text"].asString(), {.parseSpecial = false, .addSpecial = false}),
          idsOf(row["ids"]))
          << "text: '" << row["text"].asString() << "'";
      ++checks;
    }
    for (JsonValue row : entry["decode"].elements()) {
      EXPECT_EQ(decode(**tokenizer, idsOf(row["ids"])), row["text"].asString());
      ++checks;
    }
  }
  EXPECT_EQ(checks, 5u * 2 * 77);
}

std::string caseName(const testing::TestParamInfo<Case> &info) {
  std::string name = info.param.gguf.empty() ? "smollm2_json" : info.param.gguf.substr(11);
  for (char &c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)))
      c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Tokenizer, Golden,
                         testing::Values(Case{"smollm2.golden.json", ""},
                                         Case{"smollm2.golden.json", "ggml-vocab-smollm2.gguf"},
                                         Case{"gpt-2.golden.json", "ggml-vocab-gpt-2.gguf"},
                                         Case{"starcoder.golden.json", "ggml-vocab-starcoder.gguf"},
                                         Case{"llama-bpe.golden.json", "ggml-vocab-llama-bpe.gguf"},
                                         Case{"qwen2.golden.json", "ggml-vocab-qwen2.gguf"},
                                         Case{"llama-spm.golden.json", "ggml-vocab-llama-spm.gguf"},
                                         Case{"phi-3.golden.json", "ggml-vocab-phi-3.gguf"}),
                         caseName);
INSTANTIATE_TEST_SUITE_P(
    Tokenizer, LlamaCpp,
    testing::Values(Case{"", "ggml-vocab-gpt-2.gguf"}, Case{"", "ggml-vocab-starcoder.gguf"},
                    Case{"", "ggml-vocab-llama-bpe.gguf"}, Case{"", "ggml-vocab-qwen2.gguf"},
                    Case{"", "ggml-vocab-llama-spm.gguf"}, Case{"", "ggml-vocab-phi-3.gguf"},
                    Case{"", "ggml-vocab-falcon.gguf"}, Case{"", "ggml-vocab-deepseek-llm.gguf"}),
    caseName);

} // namespace
