#include "test/unit/text/TestFiles.h"

#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

namespace llmrt::test {

std::string readFile(const std::string &name) {
  std::ifstream in(std::string(LLMRT_TOKENIZERS) + "/" + name, std::ios::binary);
  EXPECT_TRUE(in.good()) << name;
  std::ostringstream out;
  out << in.rdbuf();
  return std::move(out).str();
}

namespace {

struct Cursor {
  const std::string &bytes;
  size_t at;
  template <typename T> T read() {
    T value{};
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    at += sizeof(T);
    return value;
  }
  std::string string() {
    auto size = read<uint64_t>();
    std::string value = bytes.substr(at, size);
    at += size;
    return value;
  }
};

/// Any value as a list of numbers and strings.
struct Value {
  std::vector<double> numbers;
  std::vector<std::string> strings;
  std::optional<int64_t> integer() const {
    return numbers.empty() ? std::nullopt : std::optional(static_cast<int64_t>(numbers[0]));
  }
  std::optional<bool> boolean() const {
    return numbers.empty() ? std::nullopt : std::optional(numbers[0] != 0);
  }
  std::string string() const { return strings.empty() ? "" : strings[0]; }
};

void readValue(Cursor &in, uint32_t type, Value &out) {
  switch (type) {
  case 0:
  case 7:
    return out.numbers.push_back(in.read<uint8_t>());
  case 1:
    return out.numbers.push_back(in.read<int8_t>());
  case 2:
    return out.numbers.push_back(in.read<uint16_t>());
  case 3:
    return out.numbers.push_back(in.read<int16_t>());
  case 4:
    return out.numbers.push_back(in.read<uint32_t>());
  case 5:
    return out.numbers.push_back(in.read<int32_t>());
  case 6:
    return out.numbers.push_back(in.read<float>());
  case 8:
    return out.strings.push_back(in.string());
  case 9: {
    auto element = in.read<uint32_t>();
    auto count = in.read<uint64_t>();
    for (uint64_t i = 0; i < count; ++i)
      readValue(in, element, out);
    return;
  }
  case 10:
  case 11:
    return out.numbers.push_back(static_cast<double>(in.read<uint64_t>()));
  default:
    FAIL() << "GGUF type " << type;
  }
}

} // namespace

GgufTokenizerData readGguf(const std::string &name) {
  std::string bytes = readFile(name);
  GgufTokenizerData data;
  if (bytes.size() < 24)
    return data;
  Cursor in{bytes, 16};
  std::map<std::string, Value> values;
  for (auto left = in.read<uint64_t>(); left > 0 && in.at < bytes.size(); --left) {
    std::string key = in.string();
    auto type = in.read<uint32_t>();
    readValue(in, type, values[key]);
  }
  auto value = [&](const char *key) { return values[std::string("tokenizer.ggml.") + key]; };
  data.model = value("model").string();
  data.pre = value("pre").string();
  data.tokens = value("tokens").strings;
  data.merges = value("merges").strings;
  for (double score : value("scores").numbers)
    data.scores.push_back(static_cast<float>(score));
  for (double type : value("token_type").numbers)
    data.tokenTypes.push_back(static_cast<int32_t>(type));
  data.bosId = value("bos_token_id").integer();
  data.eosId = value("eos_token_id").integer();
  data.unknownId = value("unknown_token_id").integer();
  data.padId = value("padding_token_id").integer();
  data.addBos = value("add_bos_token").boolean();
  data.addEos = value("add_eos_token").boolean();
  data.addSpacePrefix = value("add_space_prefix").boolean();
  data.separatorId = value("seperator_token_id").integer();
  return data;
}

std::shared_ptr<Tokenizer> makeTokenizer(std::string_view json, std::string_view config) {
  auto made = Tokenizer::fromTokenizerJson(json, config);
  EXPECT_TRUE(made.isOk()) << made.status().message();
  return made ? *made : nullptr;
}

std::string BpeJson::text() const {
  return R"({"version": "1.0", "added_tokens": )" + added + R"(, "normalizer": )" + normalizer +
         R"(, "pre_tokenizer": )" + preTokenizer + R"(, "post_processor": )" + postProcessor +
         R"(, "decoder": )" + decoder + R"(, "model": {"type": "BPE", )" + model + R"("vocab": )" +
         vocab + R"(, "merges": )" + merges + "}}";
}

std::vector<int32_t> idsOf(JsonValue array) {
  std::vector<int32_t> ids;
  for (JsonValue id : array.elements())
    ids.push_back(static_cast<int32_t>(id.asInteger().value_or(-1)));
  return ids;
}

std::vector<int32_t> encode(const Tokenizer &tokenizer, std::string_view text,
                            EncodeOptions options) {
  auto ids = tokenizer.encode(text, options);
  EXPECT_TRUE(ids.isOk()) << ids.status().message();
  return ids ? *ids : std::vector<int32_t>();
}

std::string decode(const Tokenizer &tokenizer, const std::vector<int32_t> &ids,
                   DecodeOptions options) {
  auto text = tokenizer.decode(ids, options);
  EXPECT_TRUE(text.isOk()) << text.status().message();
  return text ? *text : std::string();
}

} // namespace llmrt::test
