#include "runtime/text/GgufPreTokenizers.h"

#include "runtime/text/TokenizerPatterns.h"

namespace llmrt {

namespace {

enum class Rule { Gpt2, DigitsGpt2, Llama3, Qwen2, Gpt4o, Falcon, DeepSeek, DeepSeek3 };

struct Entry {
  std::string_view name;
  Rule rule;
  bool nfc, ignoreMerges, addBos;
};

// The names that converters write (llama.cpp's convert_hf_to_gguf.py) and the rule of each
// model's own tokenizer.json.
constexpr Entry kTable[] = {
    {"gpt-2", Rule::Gpt2, false, false, false},
    {"phi-2", Rule::Gpt2, false, false, false},
    {"mpt", Rule::Gpt2, true, false, false},
    {"olmo", Rule::Gpt2, true, false, false},
    {"smollm", Rule::DigitsGpt2, false, false, false},
    {"starcoder", Rule::DigitsGpt2, false, false, false},
    {"refact", Rule::DigitsGpt2, false, false, false},
    {"command-r", Rule::DigitsGpt2, true, false, true},
    {"llama-bpe", Rule::Llama3, false, true, true},
    {"llama3", Rule::Llama3, false, true, true},
    {"llama-v3", Rule::Llama3, false, true, true},
    {"smaug-bpe", Rule::Llama3, false, true, true},
    {"qwen2", Rule::Qwen2, true, false, false},
    {"gpt-4o", Rule::Gpt4o, false, false, false},
    {"falcon", Rule::Falcon, false, false, false},
    {"deepseek-llm", Rule::DeepSeek, false, false, false},
    {"deepseek-v3", Rule::DeepSeek3, false, false, false},
};

PipelineStep split(std::string_view pattern, SplitBehavior behavior) {
  PipelineStep step;
  step.kind = StepKind::Split;
  step.regex = true;
  step.pattern = pattern;
  step.behavior = behavior;
  return step;
}

std::vector<PipelineStep> stepsOf(Rule rule) {
  using namespace patterns;
  auto isolated = SplitBehavior::Isolated;
  PipelineStep map;
  map.kind = StepKind::ByteMap;
  switch (rule) {
  case Rule::Gpt2:
    return {split(kGpt2, isolated), map};
  case Rule::DigitsGpt2:
    return {split(kNumeric, isolated), split(kGpt2, isolated), map};
  case Rule::Llama3:
    return {split(kLlama3, isolated), map};
  case Rule::Qwen2:
    return {split(kQwen2, isolated), map};
  case Rule::Gpt4o:
    return {split(kGpt4o, isolated), map};
  case Rule::DeepSeek:
    return {split(kDeepSeekNewline, isolated),
            split(kDeepSeekWord, isolated),
            split(kDeepSeekPunctuation, isolated),
            split(kDeepSeekTrailingSpace, isolated),
            split(kDeepSeekHan, isolated),
            split(kNumeric, isolated),
            map};
  case Rule::DeepSeek3:
    return {split(kDeepSeek3Digits, isolated), split(kDeepSeek3Han, isolated),
            split(kDeepSeek3Rest, isolated), map};
  case Rule::Falcon: // splits digits among the mapped characters, some of which are numeric
    return {split(kPunctuation, SplitBehavior::Contiguous), split(kGpt2, isolated), map,
            split(kNumeric, SplitBehavior::Contiguous), split("[0-9][0-9][0-9]", isolated)};
  }
  return {};
}

} // namespace

std::optional<GgufPreTokenizer> findGgufPreTokenizer(std::string_view name) {
  for (const Entry &entry : kTable)
    if (entry.name == name)
      return GgufPreTokenizer{entry.nfc, entry.ignoreMerges, entry.addBos, stepsOf(entry.rule)};
  return std::nullopt;
}

std::string ggufPreTokenizerNames() {
  std::string names;
  for (const Entry &entry : kTable)
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  return names;
}

} // namespace llmrt
