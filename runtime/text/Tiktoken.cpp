#include "runtime/text/Tiktoken.h"

#include "runtime/text/Base64.h"
#include "runtime/text/Normalizer.h"
#include "runtime/text/TokenizerJson.h"
#include "runtime/text/TokenizerPatterns.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <unordered_set>

namespace llmrt {

namespace {

struct Special {
  int32_t id;
  std::string_view text;
};

constexpr Special kGpt2Tokens[] = {{50256, "<|endoftext|>"}};
constexpr Special kCl100kTokens[] = {{100257, "<|endoftext|>"},
                                     {100258, "<|fim_prefix|>"},
                                     {100259, "<|fim_middle|>"},
                                     {100260, "<|fim_suffix|>"},
                                     {100276, "<|endofprompt|>"}};
constexpr Special kO200kTokens[] = {{199999, "<|endoftext|>"}, {200018, "<|endofprompt|>"}};
constexpr Special kLlama3Tokens[] = {{128000, "<|begin_of_text|>"},
                                     {128001, "<|end_of_text|>"},
                                     {128004, "<|finetune_right_pad_id|>"},
                                     {128006, "<|start_header_id|>"},
                                     {128007, "<|end_header_id|>"},
                                     {128008, "<|eom_id|>"},
                                     {128009, "<|eot_id|>"},
                                     {128010, "<|python_tag|>"}};
constexpr Special kQwenTokens[] = {
    {151643, "<|endoftext|>"}, {151644, "<|im_start|>"}, {151645, "<|im_end|>"}};

/// A published list.
struct List {
  size_t ranks;
  std::string_view name, pattern;
  std::span<const Special> special; ///< empty: they are in tokenizer_config.json only
  int32_t bos, eos;                 ///< ids or -1
};
constexpr List kLists[] = {
    {50256, "r50k_base (GPT-2)", patterns::kGpt2, kGpt2Tokens, -1, 50256},
    {50280, "p50k_base", patterns::kGpt2, kGpt2Tokens, -1, 50256},
    {100256, "cl100k_base", patterns::kLlama3, kCl100kTokens, -1, 100257},
    {199998, "o200k_base", patterns::kGpt4o, kO200kTokens, -1, 199999},
    {128000, "Llama 3", patterns::kLlama3, kLlama3Tokens, 128000, 128001},
    {151643, "Qwen", patterns::kQwen2, kQwenTokens, -1, 151643},
    {151329, "GLM-4", patterns::kLlama3, {}, -1, -1},
    {163584, "Kimi K2", patterns::kKimiK2, {}, -1, -1},
};

Status readRanks(std::string_view text, TokenizerSpec &spec) {
  std::unordered_set<int32_t> ids;
  size_t line = 0;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view row = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line;
    if (row.ends_with('\r'))
      row.remove_suffix(1);
    if (row.empty())
      continue;
    auto bad = [&](const std::string &why) {
      return invalidFile("line " + std::to_string(line) + " " + why);
    };
    size_t space = row.find(' ');
    if (space == std::string_view::npos)
      return bad("must be a token in Base64, a space and its rank");
    std::optional<std::string> bytes = decodeBase64(row.substr(0, space));
    if (!bytes || bytes->empty())
      return bad("begins with something that is not Base64");
    std::string_view digits = row.substr(space + 1);
    int64_t rank = -1;
    auto [last, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
    if (error != std::errc() || last != digits.data() + digits.size() || rank < 0 ||
        rank > kMaxTokenId)
      return bad("has the rank '" + std::string(digits.substr(0, 40)) +
                 "'; a whole number is needed");
    if (!ids.insert(static_cast<int32_t>(rank)).second)
      return bad("has the rank " + std::to_string(rank) + " again");
    spec.vocabulary.push_back(
        {static_cast<int32_t>(rank), mapBytes(*bytes), -static_cast<double>(rank), true});
  }
  return Status::ok();
}

} // namespace

bool looksLikeTiktoken(std::string_view bytes) {
  std::string_view row = bytes.substr(0, std::min(bytes.find('\n'), size_t(4096)));
  size_t space = row.find(' ');
  return space != std::string_view::npos && space != 0 &&
         decodeBase64(row.substr(0, space)).has_value();
}

Result<TokenizerSpec> specFromTiktoken(std::string_view ranks,
                                       std::string_view tokenizerConfigJson) {
  TokenizerSpec spec;
  spec.kind = ModelKind::ScoredBpe;
  spec.ignoreMerges = true; // a whole piece is looked up first
  if (Status status = readRanks(ranks, spec); !status)
    return status.withContext("tiktoken ranks");
  const List *list = std::find_if(std::begin(kLists), std::end(kLists), [&](const List &known) {
    return known.ranks == spec.vocabulary.size();
  });
  if (list == std::end(kLists)) {
    std::string known;
    for (const List &entry : kLists)
      known += (known.empty() ? "" : ", ") + std::string(entry.name) + " with " +
               std::to_string(entry.ranks);
    return unsupported("tiktoken ranks: a list of " + std::to_string(spec.vocabulary.size()) +
                       " ranks is not known, so neither is how it cuts a text; known: " + known +
                       "; a tokenizer.json says it");
  }
  PipelineStep split;
  split.kind = StepKind::Split;
  split.regex = true;
  split.pattern = list->pattern;
  split.behavior = SplitBehavior::Isolated;
  PipelineStep map;
  map.kind = StepKind::ByteMap;
  spec.preTokenizers = {split, map};
  spec.decoders.emplace_back().kind = StepKind::ByteLevel;

  LLMRT_RETURN_IF_ERROR(readCompanions(tokenizerConfigJson, {}, spec));
  if (spec.added.empty()) {
    for (const Special &special : list->special) {
      AddedToken token;
      token.id = special.id;
      token.content = special.text;
      token.special = true;
      spec.added.push_back(std::move(token));
    }
    if (list->bos >= 0)
      spec.bos = list->bos;
    if (list->eos >= 0)
      spec.eos = list->eos;
  }
  if (list->bos >= 0 && spec.bos)
    spec.prefixIds = {*spec.bos};
  return spec;
}

} // namespace llmrt
