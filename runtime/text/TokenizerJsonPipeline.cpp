// The components of tokenizer.json that change and cut text, lowered to PipelineSteps.
#include "runtime/text/Base64.h"
#include "runtime/text/TokenizerJson.h"
#include "runtime/text/TokenizerPatterns.h"
#include "runtime/text/Utf8.h"

namespace llmrt {

namespace {

using Steps = std::vector<PipelineStep>;
using ReadStep = Status (*)(const std::string &type, JsonValue component, Steps &steps);

PipelineStep simple(StepKind kind) {
  PipelineStep step;
  step.kind = kind;
  return step;
}

/// {"String": "..."} or {"Regex": "..."}.
Status readPattern(JsonValue component, PipelineStep &step) {
  JsonValue pattern = component["pattern"];
  JsonValue literal = pattern["String"], regex = pattern["Regex"];
  if (literal.isString() == regex.isString())
    return invalidFile("'pattern' must hold one of 'String' and 'Regex'");
  step.regex = regex.isString();
  step.pattern = (step.regex ? regex : literal).asString();
  return Status::ok();
}

Status readBehavior(JsonValue component, std::string_view fallback, PipelineStep &step) {
  LLMRT_ASSIGN_OR_RETURN(std::string name, readString(component, "behavior", fallback));
  static constexpr std::pair<std::string_view, SplitBehavior> kNames[] = {
      {"Removed", SplitBehavior::Removed},
      {"Isolated", SplitBehavior::Isolated},
      {"MergedWithPrevious", SplitBehavior::MergedWithPrevious},
      {"MergedWithNext", SplitBehavior::MergedWithNext},
      {"Contiguous", SplitBehavior::Contiguous}};
  for (auto [known, behavior] : kNames) {
    if (name == known) {
      step.behavior = behavior;
      return Status::ok();
    }
  }
  return unsupported("behavior '" + name +
                     "' is not known; known: Removed, Isolated, "
                     "MergedWithPrevious, MergedWithNext, Contiguous");
}

/// `prepend_scheme`, or `add_prefix_space` in older files.
Status readMetaspace(JsonValue component, PipelineStep &step) {
  LLMRT_ASSIGN_OR_RETURN(step.content, readString(component, "replacement"));
  if (step.content.empty() || utf8Width(step.content, 0) != step.content.size())
    return invalidFile("'replacement' must be one character, it is '" + step.content + "'");
  LLMRT_ASSIGN_OR_RETURN(bool prefix, readBool(component, "add_prefix_space", true));
  LLMRT_ASSIGN_OR_RETURN(std::string scheme,
                         readString(component, "prepend_scheme", prefix ? "always" : "never"));
  if (scheme == "always")
    step.scheme = PrefixScheme::Always;
  else if (scheme == "first")
    step.scheme = PrefixScheme::First;
  else if (scheme == "never")
    step.scheme = PrefixScheme::Never;
  else
    return unsupported("prepend_scheme '" + scheme + "' is not known; known: always, first, never");
  if (!prefix && step.scheme != PrefixScheme::Never)
    return invalidFile("add_prefix_space and prepend_scheme contradict each other");
  LLMRT_ASSIGN_OR_RETURN(step.split, readBool(component, "split", true));
  return Status::ok();
}

/// What is left out counts as in `tokenizers`: accents go where letters are made small.
Status readBertNormalizer(JsonValue component, Steps &steps) {
  LLMRT_ASSIGN_OR_RETURN(bool clean, readBool(component, "clean_text", true));
  LLMRT_ASSIGN_OR_RETURN(bool chinese, readBool(component, "handle_chinese_chars", true));
  LLMRT_ASSIGN_OR_RETURN(bool lowercase, readBool(component, "lowercase", true));
  LLMRT_ASSIGN_OR_RETURN(bool accents, readBool(component, "strip_accents", lowercase));
  if (clean)
    steps.push_back(simple(StepKind::BertClean));
  if (chinese)
    steps.push_back(simple(StepKind::CjkSpaces));
  if (accents) {
    steps.push_back(simple(StepKind::Nfd));
    steps.push_back(simple(StepKind::StripNonspacing));
  }
  if (lowercase)
    steps.push_back(simple(StepKind::Lowercase));
  return Status::ok();
}

Status readNormalizer(const std::string &type, JsonValue component, Steps &steps) {
  static constexpr std::pair<std::string_view, StepKind> kPlain[] = {
      {"NFC", StepKind::Nfc},
      {"NFD", StepKind::Nfd},
      {"NFKC", StepKind::Nfkc},
      {"NFKD", StepKind::Nfkd},
      {"Lowercase", StepKind::Lowercase},
      {"StripAccents", StepKind::StripAccents},
      {"Nmt", StepKind::Nmt},
      {"ByteLevel", StepKind::ByteMap}};
  for (auto [known, kind] : kPlain) {
    if (type == known) {
      steps.push_back(simple(kind));
      return Status::ok();
    }
  }
  if (type == "BertNormalizer")
    return readBertNormalizer(component, steps);
  PipelineStep step;
  if (type == "Precompiled") {
    step.kind = StepKind::Precompiled;
    LLMRT_ASSIGN_OR_RETURN(std::string text, readString(component, "precompiled_charsmap"));
    std::optional<std::string> table = decodeBase64(text);
    if (!table)
      return invalidFile("'precompiled_charsmap' is not Base64");
    step.content = std::move(*table);
  } else if (type == "Strip") {
    step.kind = StepKind::Strip;
    LLMRT_ASSIGN_OR_RETURN(step.left, readBool(component, "strip_left", true));
    LLMRT_ASSIGN_OR_RETURN(step.right, readBool(component, "strip_right", true));
  } else if (type == "Replace") {
    step.kind = StepKind::Replace;
    LLMRT_RETURN_IF_ERROR(readPattern(component, step));
    LLMRT_ASSIGN_OR_RETURN(step.content, readString(component, "content"));
  } else if (type == "Prepend") {
    step.kind = StepKind::Prepend;
    LLMRT_ASSIGN_OR_RETURN(step.content, readString(component, "prepend"));
  } else {
    return unsupported(
        "normalizer '" + type +
        "' is not supported; supported: NFC, NFD, NFKC, NFKD, Lowercase, "
        "StripAccents, Strip, Replace, Prepend, ByteLevel, BertNormalizer, Precompiled, "
        "Nmt, Sequence");
  }
  steps.push_back(std::move(step));
  return Status::ok();
}

void addSplit(std::string_view pattern, SplitBehavior behavior, Steps &steps, bool invert = false) {
  PipelineStep step = simple(StepKind::Split);
  step.regex = true;
  step.pattern = pattern;
  step.behavior = behavior;
  step.invert = invert;
  steps.push_back(std::move(step));
}

Status readPreTokenizer(const std::string &type, JsonValue component, Steps &steps) {
  if (type == "ByteLevel") {
    LLMRT_ASSIGN_OR_RETURN(bool prefix, readBool(component, "add_prefix_space", true));
    LLMRT_ASSIGN_OR_RETURN(bool regex, readBool(component, "use_regex", true));
    if (prefix)
      steps.push_back(simple(StepKind::PrefixSpace));
    if (regex)
      addSplit(patterns::kGpt2, SplitBehavior::Isolated, steps);
    steps.push_back(simple(StepKind::ByteMap));
  } else if (type == "Split") {
    PipelineStep step = simple(StepKind::Split);
    LLMRT_RETURN_IF_ERROR(readPattern(component, step));
    LLMRT_RETURN_IF_ERROR(readBehavior(component, "", step));
    LLMRT_ASSIGN_OR_RETURN(step.invert, readBool(component, "invert", false));
    steps.push_back(std::move(step));
  } else if (type == "Digits") {
    LLMRT_ASSIGN_OR_RETURN(bool individual, readBool(component, "individual_digits", false));
    addSplit(patterns::kNumeric, individual ? SplitBehavior::Isolated : SplitBehavior::Contiguous,
             steps);
  } else if (type == "Punctuation") {
    PipelineStep behavior;
    LLMRT_RETURN_IF_ERROR(readBehavior(component, "Isolated", behavior));
    addSplit(patterns::kPunctuation, behavior.behavior, steps);
  } else if (type == "Metaspace") {
    PipelineStep step = simple(StepKind::Metaspace);
    LLMRT_RETURN_IF_ERROR(readMetaspace(component, step));
    steps.push_back(std::move(step));
  } else if (type == "Whitespace") {
    addSplit(patterns::kWordsOrOther, SplitBehavior::Removed, steps, true);
  } else if (type == "WhitespaceSplit") {
    addSplit("\\s", SplitBehavior::Removed, steps);
  } else if (type == "BertPreTokenizer") {
    addSplit("\\s", SplitBehavior::Removed, steps);
    addSplit(patterns::kPunctuation, SplitBehavior::Isolated, steps);
  } else if (type == "CharDelimiterSplit") {
    PipelineStep step = simple(StepKind::Split);
    LLMRT_ASSIGN_OR_RETURN(step.pattern, readString(component, "delimiter"));
    step.behavior = SplitBehavior::Removed;
    steps.push_back(std::move(step));
  } else {
    return unsupported("pre_tokenizer '" + type +
                       "' is not supported; supported: ByteLevel, Split, Digits, Punctuation, "
                       "Metaspace, Whitespace, WhitespaceSplit, BertPreTokenizer, "
                       "CharDelimiterSplit, Sequence");
  }
  return Status::ok();
}

Status readCount(JsonValue component, std::string_view key, uint32_t &count) {
  std::optional<int64_t> value = component[key].asInteger();
  if (!value || *value < 0 || *value > INT32_MAX)
    return invalidFile("'" + std::string(key) + "' must be a count");
  count = static_cast<uint32_t>(*value);
  return Status::ok();
}

Status readDecoder(const std::string &type, JsonValue component, Steps &steps) {
  PipelineStep step;
  if (type == "ByteLevel") {
    step.kind = StepKind::ByteLevel;
  } else if (type == "ByteFallback") {
    step.kind = StepKind::ByteFallback;
  } else if (type == "Fuse") {
    step.kind = StepKind::Fuse;
  } else if (type == "Strip") {
    step.kind = StepKind::StripChars;
    LLMRT_ASSIGN_OR_RETURN(step.content, readString(component, "content"));
    LLMRT_RETURN_IF_ERROR(readCount(component, "start", step.start));
    LLMRT_RETURN_IF_ERROR(readCount(component, "stop", step.stop));
  } else if (type == "Replace") {
    step.kind = StepKind::Replace;
    LLMRT_RETURN_IF_ERROR(readPattern(component, step));
    LLMRT_ASSIGN_OR_RETURN(step.content, readString(component, "content"));
  } else if (type == "Metaspace") {
    step.kind = StepKind::MetaspaceDecode;
    LLMRT_RETURN_IF_ERROR(readMetaspace(component, step));
  } else if (type == "BPEDecoder") {
    step.kind = StepKind::SuffixDecode;
    LLMRT_ASSIGN_OR_RETURN(step.pattern, readString(component, "suffix", "</w>"));
  } else if (type == "WordPiece") {
    step.kind = StepKind::WordPieceDecode;
    LLMRT_ASSIGN_OR_RETURN(step.content, readString(component, "prefix", "##"));
    LLMRT_ASSIGN_OR_RETURN(step.split, readBool(component, "cleanup", true));
  } else {
    return unsupported("decoder '" + type +
                       "' is not supported; supported: ByteLevel, ByteFallback, Fuse, Strip, "
                       "Replace, Metaspace, BPEDecoder, WordPiece, Sequence");
  }
  steps.push_back(std::move(step));
  return Status::ok();
}

/// Reads a component, or the members of a Sequence (under \p listKey), which may be nested
/// as deep as the JSON reader allows.
Status readComponents(JsonValue component, const char *listKey, ReadStep read, Steps &steps) {
  if (!component.isObject())
    return invalidFile(std::string("must be an object, it is ") + component.typeName());
  LLMRT_ASSIGN_OR_RETURN(std::string type, readString(component, "type"));
  if (type != "Sequence") {
    Status status = read(type, component, steps);
    return status ? status : status.withContext(type);
  }
  JsonValue list = component[listKey];
  if (!list.isArray())
    return invalidFile("a Sequence must have an array '" + std::string(listKey) + "'");
  for (JsonValue member : list.elements())
    LLMRT_RETURN_IF_ERROR(readComponents(member, listKey, read, steps));
  return Status::ok();
}

} // namespace

Status readPipeline(JsonValue root, TokenizerSpec &spec) {
  struct Part {
    const char *name, *listKey;
    ReadStep read;
    Steps &steps;
  };
  for (const Part &part :
       {Part{"normalizer", "normalizers", readNormalizer, spec.normalizers},
        Part{"pre_tokenizer", "pretokenizers", readPreTokenizer, spec.preTokenizers},
        Part{"decoder", "decoders", readDecoder, spec.decoders}}) {
    JsonValue component = root[part.name];
    if (component.isNull())
      continue;
    Status status = readComponents(component, part.listKey, part.read, part.steps);
    if (!status)
      return status.withContext(part.name);
  }
  spec.joinWithSpaces = root["decoder"].isNull();
  return Status::ok();
}

} // namespace llmrt
