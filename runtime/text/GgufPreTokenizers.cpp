#include "runtime/text/GgufPreTokenizers.h"

#include "runtime/text/TokenizerPatterns.h"

#include <initializer_list>
#include <span>

namespace llmrt {

namespace {

using namespace patterns;

// What a rule cuts a text by, one pattern after the other.
constexpr std::string_view kGpt2Rule[] = {kGpt2};
constexpr std::string_view kDigitsGpt2Rule[] = {kNumeric, kGpt2};
constexpr std::string_view kLlama3Rule[] = {kLlama3};
constexpr std::string_view kJais2Rule[] = {kJais2};
constexpr std::string_view kQwen2Rule[] = {kQwen2};
constexpr std::string_view kQwen35Rule[] = {kQwen35};
constexpr std::string_view kLagunaRule[] = {kLines, kQwen2};
constexpr std::string_view kGpt4oRule[] = {kGpt4o};
constexpr std::string_view kTekkenRule[] = {kTekken};
constexpr std::string_view kTinyAyaRule[] = {kDigitsFromRight, kGpt4o};
constexpr std::string_view kDeepSeekRule[] = {kDeepSeekNewline,     kDeepSeekWord,
                                              kDeepSeekPunctuation, kDeepSeekTrailingSpace,
                                              kDeepSeekHan,         kNumeric};
constexpr std::string_view kDeepSeekCoderRule[] = {kDeepSeekNewline, R"(\s?\p{L}+)", R"(\s?\p{P}+)",
                                                   kDeepSeekHan, kNumeric};
constexpr std::string_view kDeepSeek3Rule[] = {kDeepSeek3Digits, kDeepSeek3Han, kDeepSeek3Rest};
constexpr std::string_view kSparkRule[] = {kDeepSeek3Digits, kDeepSeek3Han, kSparkRest, kNumeric};
constexpr std::string_view kYoutuRule[] = {kYoutuAsian, kYoutuRest};
constexpr std::string_view kBloomRule[] = {kBloom};
constexpr std::string_view kVikingRule[] = {kBloom, kNumeric};
constexpr std::string_view kChameleonRule[] = {
    "<sentinel:[0-9]+>",       "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z",
    R"([\t\n]|    |  )",       kNumeric,
    R"([\p{P}!-/:-@\[-`{-~])", kGpt2};
constexpr std::string_view kKimiRule[] = {kKimiK2};
constexpr std::string_view kSuperBpeRule[] = {R"(\p{N}+)", R"((?=(\d{3})+(?!\d)))"};
constexpr std::string_view kBailingRule[] = {kBailingMoe};
constexpr std::string_view kSeedCoderRule[] = {kSeedCoder};
constexpr std::string_view kUfakzekaRule[] = {kUfakzeka};
constexpr std::string_view kAfmoeRule[] = {kDigitsFromRight, kAfmoeAsian, kDeepSeek3Rest};
constexpr std::string_view kExaoneMoeRule[] = {kExaoneMoe};
constexpr std::string_view kMiniCpm5Rule[] = {kDeepSeek3Digits, kMiniCpm5};
constexpr std::string_view kWordsRule[] = {R"(\S+)"};
constexpr std::string_view kLinesRule[] = {kLines};
constexpr std::string_view kDefaultRule[] = {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)",
                                             "[0-9][0-9][0-9]"};
constexpr std::string_view kFalconRule[] = {{}}; // see stepsOf

enum Flag : uint8_t {
  kNfc = 1,          ///< texts are normalized to NFC
  kIgnoreMerges = 2, ///< a piece that is a token is that token
  kBos = 4,          ///< a beginning is put before a text
  kSeparator = 8,    ///< a separator is put after a text
  kCharacters = 16,  ///< tokens are characters, not mapped bytes
  kMarks = 32        ///< and spaces are SentencePiece's marks
};

struct Entry {
  std::string_view name;
  std::span<const std::string_view> patterns;
  int flags = 0;
};

// The names that converters write (llama.cpp's convert_hf_to_gguf.py) and the rule of each
// model's own tokenizer.json.
constexpr Entry kTable[] = {
    {"default", kDefaultRule},
    {"gpt-2", kGpt2Rule},
    {"phi-2", kGpt2Rule},
    {"jina-es", kGpt2Rule},
    {"jina-de", kGpt2Rule},
    {"jina-v2-es", kGpt2Rule},
    {"jina-v2-de", kGpt2Rule},
    {"jina-v1-en", kGpt2Rule, kSeparator},
    {"jina-v2-code", kGpt2Rule, kSeparator},
    {"roberta-bpe", kGpt2Rule, kSeparator},
    {"gigachat", kGpt2Rule},
    {"a.x-4.0", kGpt2Rule},
    {"mellum", kGpt2Rule},
    {"modern-bert", kGpt2Rule, kNfc},
    {"mpt", kGpt2Rule, kNfc},
    {"olmo", kGpt2Rule, kNfc},
    {"jais", kGpt2Rule},
    {"trillion", kGpt2Rule},
    {"granite-docling", kGpt2Rule},
    {"exaone4", kGpt2Rule},
    {"smollm", kDigitsGpt2Rule},
    {"starcoder", kDigitsGpt2Rule},
    {"refact", kDigitsGpt2Rule},
    {"command-r", kDigitsGpt2Rule, kNfc | kBos},
    {"codeshell", kDigitsGpt2Rule},
    {"exaone", kDigitsGpt2Rule},
    {"minerva-7b", kDigitsGpt2Rule},
    {"mellum2", kDigitsGpt2Rule},
    {"llama-bpe", kLlama3Rule, kIgnoreMerges | kBos},
    {"llama3", kLlama3Rule, kIgnoreMerges | kBos},
    {"llama-v3", kLlama3Rule, kIgnoreMerges | kBos},
    {"falcon3", kLlama3Rule, kIgnoreMerges | kBos},
    {"falcon-h1", kLlama3Rule, kIgnoreMerges | kBos},
    {"pixtral", kLlama3Rule, kIgnoreMerges | kBos},
    {"midm-2.0", kLlama3Rule, kIgnoreMerges | kBos},
    {"lfm2", kLlama3Rule, kIgnoreMerges | kBos},
    {"jina-v5-nano", kLlama3Rule, kIgnoreMerges | kBos},
    {"smaug-bpe", kLlama3Rule, kIgnoreMerges | kBos},
    {"dbrx", kLlama3Rule},
    {"glm4", kLlama3Rule},
    {"chatglm-bpe", kLlama3Rule},
    {"jais-2", kJais2Rule},
    {"qwen2", kQwen2Rule, kNfc},
    {"qwen35", kQwen35Rule, kNfc},
    {"deepseek-r1-qwen", kQwen2Rule},
    {"kormo", kQwen2Rule},
    {"f2llmv2", kQwen2Rule},
    {"megrez", kQwen2Rule},
    {"stablelm2", kQwen2Rule},
    {"hunyuan", kQwen2Rule},
    {"solar-open", kQwen2Rule},
    {"grok-2", kQwen2Rule},
    {"laguna", kLagunaRule},
    {"ufakzeka", kUfakzekaRule},
    {"seed-coder", kSeedCoderRule},
    {"bailingmoe", kBailingRule},
    {"bailingmoe2", kBailingRule},
    {"llada-moe", kBailingRule},
    {"exaone-moe", kExaoneMoeRule},
    {"minicpm5", kMiniCpm5Rule, kIgnoreMerges},
    {"gpt-4o", kGpt4oRule},
    {"llama4", kGpt4oRule},
    {"kanana2", kGpt4oRule},
    {"talkie", kGpt4oRule},
    {"minimax-m2", kGpt4oRule},
    {"granite-embed-multi-97m", kGpt4oRule, kIgnoreMerges},
    {"tekken", kTekkenRule, kIgnoreMerges | kBos},
    {"tiny_aya", kTinyAyaRule},
    {"cohere2moe", kTinyAyaRule},
    {"falcon", kFalconRule},
    {"deepseek-llm", kDeepSeekRule},
    {"deepseek-coder", kDeepSeekCoderRule},
    {"deepseek-v3", kDeepSeek3Rule},
    {"hunyuan-dense", kDeepSeek3Rule},
    {"joyai-llm", kDeepSeek3Rule},
    {"hy_v4", kDeepSeek3Rule},
    {"spark2_5", kSparkRule},
    {"youtu", kYoutuRule, kIgnoreMerges},
    {"afmoe", kAfmoeRule},
    {"kimi-k2", kKimiRule},
    {"bloom", kBloomRule},
    {"poro-chat", kBloomRule},
    {"gpt3-finnish", kBloomRule},
    {"viking", kVikingRule},
    {"chameleon", kChameleonRule, kBos},
    {"superbpe", kSuperBpeRule},
    {"whitespace", kWordsRule, kCharacters},
    {"gemma4", kLinesRule, kCharacters | kMarks},
    {"granite-embed-multi-311m", kLinesRule, kCharacters | kMarks},
    {"sarvam-moe", kLinesRule, kCharacters | kMarks},
};

PipelineStep split(std::string_view pattern, SplitBehavior behavior) {
  PipelineStep step;
  step.kind = StepKind::Split;
  step.regex = true;
  step.pattern = pattern;
  step.behavior = behavior;
  return step;
}

std::vector<PipelineStep> stepsOf(const Entry &entry) {
  PipelineStep map;
  map.kind = StepKind::ByteMap;
  if (entry.patterns.data() == kFalconRule)
    // Splits digits among the mapped characters, some of which are numeric.
    return {split(kPunctuation, SplitBehavior::Contiguous), split(kGpt2, SplitBehavior::Isolated),
            map, split(kNumeric, SplitBehavior::Contiguous),
            split("[0-9][0-9][0-9]", SplitBehavior::Isolated)};
  std::vector<PipelineStep> steps;
  for (std::string_view pattern : entry.patterns)
    steps.push_back(split(pattern, SplitBehavior::Isolated));
  if (!(entry.flags & kCharacters))
    steps.push_back(std::move(map));
  return steps;
}

} // namespace

std::optional<GgufPreTokenizer> findGgufPreTokenizer(std::string_view name) {
  for (const Entry &entry : kTable) {
    if (entry.name != name)
      continue;
    auto has = [&](int flag) { return (entry.flags & flag) != 0; };
    return GgufPreTokenizer{has(kNfc),        has(kIgnoreMerges), has(kBos),     has(kSeparator),
                            has(kCharacters), has(kMarks),        stepsOf(entry)};
  }
  return std::nullopt;
}

std::string ggufPreTokenizerNames() {
  std::string names;
  for (const Entry &entry : kTable)
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  return names;
}

} // namespace llmrt
