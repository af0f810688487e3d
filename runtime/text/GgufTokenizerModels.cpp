// The models of GGUF that are no BPE.
#include "runtime/text/GgufTokenizer.h"
#include "runtime/text/SentencePieceModel.h"
#include "runtime/text/TokenizerPatterns.h"

#include <algorithm>

namespace llmrt {

namespace {

PipelineStep step(StepKind kind) {
  PipelineStep result;
  result.kind = kind;
  return result;
}

PipelineStep splitStep(std::string_view pattern, SplitBehavior behavior) {
  PipelineStep result = step(StepKind::Split);
  result.regex = true;
  result.pattern = pattern;
  result.behavior = behavior;
  return result;
}

void takeUnknown(const GgufTokenizerData &data, TokenizerSpec &spec) {
  for (size_t i = 0; i < data.tokens.size() && !spec.unknown; ++i)
    if (ggufTypeOf(data, i) == GgufTokenType::Unknown)
      spec.unknown = static_cast<int32_t>(i);
  spec.modelUnknown = spec.unknown;
}

} // namespace

Status readGgufWordPiece(const GgufTokenizerData &data, TokenizerSpec &spec) {
  constexpr std::string_view kMark = "\u2581";
  spec.kind = ModelKind::WordPiece;
  spec.maxWordCharacters = 101; // BERT's 100 and the mark
  bool cased = false;
  for (size_t i = 0; i < data.tokens.size(); ++i) {
    const std::string &text = data.tokens[i];
    GgufTokenType type = ggufTypeOf(data, i);
    bool control = type == GgufTokenType::Control || type == GgufTokenType::Unknown;
    // Files of older converters have no types: control tokens are those in brackets.
    if (data.tokenTypes.empty())
      control = text.starts_with('[') && text.ends_with(']') && text.size() > 2;
    cased |= !control &&
             std::any_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
    spec.vocabulary.push_back({static_cast<int32_t>(i), text, 0, !control && !text.empty()});
  }
  addGgufFoundTokens(data, false, spec);
  takeUnknown(data, spec);
  if (!spec.unknown)
    for (const SpecToken &token : spec.vocabulary)
      if (token.text == "[UNK]")
        spec.unknown = spec.modelUnknown = token.id;

  // The file doesn't say how a text is normalized; a vocabulary with capital letters is of a model
  // that sees them.
  spec.normalizers = {step(StepKind::BertClean), step(StepKind::CjkSpaces)};
  if (!cased)
    for (StepKind kind : {StepKind::Nfd, StepKind::StripNonspacing, StepKind::Lowercase})
      spec.normalizers.push_back(step(kind));
  PipelineStep mark = step(StepKind::Metaspace);
  mark.content = kMark;
  mark.scheme = PrefixScheme::Always;
  spec.preTokenizers = {splitStep("\\s", SplitBehavior::Removed),
                        splitStep(patterns::kPunctuation, SplitBehavior::Isolated), mark};
  PipelineStep spaces = step(StepKind::Replace), strip = step(StepKind::StripChars);
  spaces.pattern = kMark;
  spaces.content = " ";
  strip.content = " ";
  strip.start = 1;
  spec.decoders = {spaces, step(StepKind::Fuse), strip};
  if (data.addBos.value_or(true) && spec.bos)
    spec.prefixIds.push_back(*spec.bos);
  return Status::ok();
}

Status readGgufUnigram(const GgufTokenizerData &data, TokenizerSpec &spec) {
  if (data.scores.empty())
    return ggufKeyError("scores", "is missing; a model 't5' chooses tokens by it");
  if (data.tokenTypes.empty())
    return ggufKeyError("token_type", "is missing; a model 't5' finds its control tokens by it");
  spec.kind = ModelKind::Unigram;
  spec.fuseUnknown = true;
  bool bytes = false;
  for (size_t i = 0; i < data.tokens.size(); ++i) {
    GgufTokenType type = ggufTypeOf(data, i);
    bytes |= type == GgufTokenType::Byte;
    bool searchable = !data.tokens[i].empty() &&
                      (type == GgufTokenType::Normal || type == GgufTokenType::UserDefined);
    spec.vocabulary.push_back({static_cast<int32_t>(i),
                               searchable ? spacesToMarks(data.tokens[i]) : data.tokens[i],
                               data.scores[i], searchable});
  }
  if (bytes)
    LLMRT_RETURN_IF_ERROR(readGgufByteTokens(data, spec));
  addGgufFoundTokens(data, true, spec);
  takeUnknown(data, spec);
  SentencePieceRules rules;
  rules.charsMap = data.charsMap;
  rules.addDummyPrefix = data.addSpacePrefix.value_or(true);
  rules.removeExtraSpaces = data.removeExtraSpaces.value_or(true);
  addSentencePieceSteps(std::move(rules), spec);
  if (data.addBos.value_or(false) && spec.bos)
    spec.prefixIds.push_back(*spec.bos);
  return Status::ok();
}

} // namespace llmrt
