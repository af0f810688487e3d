#include "runtime/text/PipelineCodec.h"

#include "runtime/text/Utf8.h"

namespace llmrt {

namespace {

/// Writes a config; the mirror image of Reader, member for member.
class Writer {
public:
  std::string out;

  template <typename T> void number(T value) {
    out.append(reinterpret_cast<const char *>(&value), sizeof(value));
  }
  template <typename T> void enumerator(T value) { number(static_cast<uint8_t>(value)); }
  void flag(bool value) { number(static_cast<uint8_t>(value)); }
  void text(const std::string &value) {
    number(static_cast<uint32_t>(value.size()));
    out += value;
  }
  template <typename T> void optional(const std::optional<T> &value) {
    flag(value.has_value());
    number(value.value_or(T()));
  }
  template <typename T, typename Each> void list(const std::vector<T> &values, Each each) {
    number(static_cast<uint32_t>(values.size()));
    for (const T &value : values)
      each(value);
  }
  void step(const PipelineStep &s) {
    enumerator(s.kind);
    for (bool value : {s.regex, s.invert, s.left, s.right, s.split})
      flag(value);
    enumerator(s.behavior);
    enumerator(s.scheme);
    number(s.start);
    number(s.stop);
    text(s.pattern);
    text(s.content);
  }
};

/// Reads in order; after the first failure all reads give zeros and `failed` stays set.
class Reader {
public:
  explicit Reader(std::span<const uint8_t> bytes) : bytes(bytes) {}
  bool failed = false;

  template <typename T> T number() {
    T value{};
    if (failed || bytes.size() - at < sizeof(T)) {
      failed = true;
      return value;
    }
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    at += sizeof(T);
    return value;
  }
  bool flag() {
    auto value = number<uint8_t>();
    failed |= value > 1;
    return value == 1;
  }
  template <typename T> T enumerator(T last) {
    auto value = number<uint8_t>();
    failed |= value > static_cast<uint8_t>(last);
    return static_cast<T>(value);
  }
  std::string text() {
    std::string value = bytesOfText();
    failed |= firstInvalidUtf8(value).has_value();
    return value;
  }
  std::string bytesOfText() {
    auto size = number<uint32_t>();
    if (failed || bytes.size() - at < size) {
      failed = true;
      return {};
    }
    std::string value(reinterpret_cast<const char *>(bytes.data()) + at, size);
    at += size;
    return value;
  }
  template <typename T> std::optional<T> optional() {
    bool present = flag();
    T value = number<T>();
    return present ? std::optional<T>(value) : std::nullopt;
  }
  template <typename Each> auto list(Each each) {
    std::vector<decltype(each())> values;
    auto count = number<uint32_t>();
    for (uint32_t i = 0; i < count && !failed; ++i)
      values.push_back(each());
    return values;
  }
  PipelineStep step() {
    PipelineStep s;
    s.kind = static_cast<StepKind>(number<uint8_t>());
    for (bool *value : {&s.regex, &s.invert, &s.left, &s.right, &s.split})
      *value = flag();
    s.behavior = enumerator(SplitBehavior::Contiguous);
    s.scheme = enumerator(PrefixScheme::Never);
    s.start = number<uint32_t>();
    s.stop = number<uint32_t>();
    s.pattern = text();
    // A table is no text.
    bool table = s.kind == StepKind::Precompiled || s.kind == StepKind::SentencePiece;
    s.content = table ? bytesOfText() : text();
    return s;
  }
  bool atEnd() const { return at == bytes.size(); }

private:
  std::span<const uint8_t> bytes;
  size_t at = 0;
};

bool isNormalizer(StepKind kind) { return kind <= StepKind::SentencePiece; }
bool isPreTokenizer(StepKind kind) {
  return kind == StepKind::ByteMap || (kind >= StepKind::Split && kind <= StepKind::PrefixSpace);
}
bool isDecoder(StepKind kind) {
  return kind == StepKind::Replace ||
         (kind >= StepKind::ByteLevel && kind <= StepKind::WordPieceDecode);
}

} // namespace

std::string encodePipeline(const PipelineConfig &config) {
  Writer w;
  w.enumerator(config.kind);
  for (bool value :
       {config.fuseUnknown, config.ignoreMerges, config.joinWithSpaces, config.cleanUpSpaces})
    w.flag(value);
  w.list(config.byteTokens, [&](uint32_t token) { w.number(token); });
  w.text(config.continuingPrefix);
  w.text(config.endSuffix);
  w.optional(config.modelUnknown);
  for (const auto &id : {config.bos, config.eos, config.pad, config.unknown})
    w.optional(id);
  for (const auto *ids : {&config.prefixIds, &config.suffixIds})
    w.list(*ids, [&](int32_t id) { w.number(id); });
  for (const auto *steps : {&config.normalizers, &config.preTokenizers, &config.decoders})
    w.list(*steps, [&](const PipelineStep &step) { w.step(step); });
  w.list(config.added, [&](const AddedEntry &entry) {
    w.number(entry.index);
    w.number(entry.token.id);
    for (bool value : {entry.token.special, entry.token.normalized, entry.token.singleWord,
                       entry.token.lstrip, entry.token.rstrip})
      w.flag(value);
    w.text(entry.token.content);
    w.text(entry.pattern);
  });
  if (config.kind == ModelKind::WordPiece)
    w.number(config.maxWordCharacters);
  return std::move(w.out);
}

Result<PipelineConfig> decodePipeline(std::span<const uint8_t> bytes) {
  Reader r(bytes);
  PipelineConfig config;
  config.kind = r.enumerator(ModelKind::WordLevel);
  for (bool *value :
       {&config.fuseUnknown, &config.ignoreMerges, &config.joinWithSpaces, &config.cleanUpSpaces})
    *value = r.flag();
  config.byteTokens = r.list([&] { return r.number<uint32_t>(); });
  config.continuingPrefix = r.text();
  config.endSuffix = r.text();
  config.modelUnknown = r.optional<uint32_t>();
  for (auto *id : {&config.bos, &config.eos, &config.pad, &config.unknown})
    *id = r.optional<int32_t>();
  for (auto *ids : {&config.prefixIds, &config.suffixIds})
    *ids = r.list([&] { return r.number<int32_t>(); });
  for (auto *steps : {&config.normalizers, &config.preTokenizers, &config.decoders})
    *steps = r.list([&] { return r.step(); });
  config.added = r.list([&] {
    AddedEntry entry;
    entry.index = r.number<uint32_t>();
    entry.token.id = r.number<int32_t>();
    for (bool *value : {&entry.token.special, &entry.token.normalized, &entry.token.singleWord,
                        &entry.token.lstrip, &entry.token.rstrip})
      *value = r.flag();
    entry.token.content = r.text();
    entry.pattern = r.text();
    return entry;
  });
  if (config.kind == ModelKind::WordPiece)
    config.maxWordCharacters = r.number<uint32_t>();

  bool good = !r.failed && r.atEnd();
  auto all = [&](const std::vector<PipelineStep> &steps, bool (*belongs)(StepKind)) {
    for (const PipelineStep &step : steps)
      good &= belongs(step.kind);
  };
  all(config.normalizers, isNormalizer);
  all(config.preTokenizers, isPreTokenizer);
  all(config.decoders, isDecoder);
  for (size_t i = 0; i < config.added.size(); ++i) {
    const AddedEntry &entry = config.added[i];
    if (i) {
      const AddedEntry &before = config.added[i - 1];
      good &= std::pair(before.token.normalized, std::string_view(before.pattern)) <=
              std::pair(entry.token.normalized, std::string_view(entry.pattern));
    }
  }
  if (!good)
    return invalidFile("tokenizer data is damaged: the Pipeline section makes no sense");
  return config;
}

} // namespace llmrt
