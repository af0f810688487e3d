#include "runtime/text/Unigram.h"

#include "runtime/text/Utf8.h"

#include <algorithm>
#include <limits>

namespace llmrt {

// SentencePiece's penalty for an unknown character.
static constexpr double kUnknownPenalty = 10;

Unigram::Unigram(const TokenizerTables &tables, const PipelineConfig &config)
    : tables(tables), fuseUnknown(config.fuseUnknown), unknown(config.modelUnknown),
      byteTokens(config.byteTokens) {
  double least = std::numeric_limits<double>::infinity();
  for (uint32_t i = 0; i < tables.tokenCount(); ++i)
    if (tables.scoreOf(i) < least) // a NaN, of a token that isn't the model's, is not
      least = tables.scoreOf(i);
  unknownScore = (least == std::numeric_limits<double>::infinity() ? 0 : least) - kUnknownPenalty;
}

/// One token for \p text, or its bytes, last first.
Status Unigram::emit(std::string_view text, std::vector<uint32_t> &reversed) const {
  if (std::optional<uint32_t> token = tables.find(text)) {
    reversed.push_back(*token);
    return Status::ok();
  }
  bool allBytes = !byteTokens.empty();
  for (char c : text)
    allBytes = allBytes && byteTokens[static_cast<uint8_t>(c)] != blob::kFree;
  if (allBytes) {
    for (size_t i = text.size(); i-- > 0;)
      reversed.push_back(byteTokens[static_cast<uint8_t>(text[i])]);
    return Status::ok();
  }
  if (!unknown)
    return invalidArgument("the tokenizer has no token for '" + std::string(text.substr(0, 40)) +
                           "' and no unknown token");
  reversed.push_back(*unknown);
  return Status::ok();
}

Status Unigram::encode(std::string_view piece, UnigramScratch &scratch,
                       std::vector<uint32_t> &out) const {
  std::vector<UnigramScratch::Best> &best = scratch.best;
  best.assign(piece.size() + 1, {});
  best[0].reached = true;
  for (size_t begin = 0; begin < piece.size();) {
    const double till = best[begin].score;
    const size_t width = utf8Width(piece, begin);
    auto offer = [&](size_t end, double score, uint32_t token) {
      UnigramScratch::Best &target = best[end];
      if (!target.reached || score > target.score)
        target = {score, static_cast<uint32_t>(begin), token, true};
    };
    bool covered = false;
    tables.trie().prefixesOf(piece.substr(begin), [&](size_t length, uint32_t token) {
      offer(begin + length, till + tables.scoreOf(token), token);
      covered |= length == width;
    });
    if (!covered)
      offer(begin + width, till + unknownScore, kUnknown);
    begin += width;
  }
  // Backwards; unknown characters in a row are one unknown text.
  std::vector<uint32_t> &reversed = scratch.reversed;
  reversed.clear();
  for (size_t end = piece.size(); end > 0;) {
    auto isUnknown = [&](const UnigramScratch::Best &node) {
      return node.token == kUnknown || (unknown && node.token == *unknown);
    };
    size_t begin = best[end].begin;
    if (fuseUnknown && unknown && isUnknown(best[end]))
      while (begin > 0 && isUnknown(best[begin]))
        begin = best[begin].begin;
    LLMRT_RETURN_IF_ERROR(emit(piece.substr(begin, end - begin), reversed));
    end = begin;
  }
  out.insert(out.end(), reversed.rbegin(), reversed.rend());
  return Status::ok();
}

} // namespace llmrt
