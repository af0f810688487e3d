#include "runtime/text/WordPiece.h"

#include <algorithm>

namespace llmrt {

WordPiece::WordPiece(const TokenizerTables &tables, const PipelineConfig &config)
    : tables(tables), inner(TokenTrie::kRoot), maxCharacters(config.maxWordCharacters),
      unknown(config.modelUnknown) {
  for (char c : config.continuingPrefix)
    if (inner && !tables.trie().step(*inner, static_cast<uint8_t>(c)))
      inner.reset();
}

Status WordPiece::encode(std::string_view word, std::vector<uint32_t> &out) const {
  auto isLead = [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; };
  const TokenTrie &trie = tables.trie();
  const size_t before = out.size();
  bool good = std::count_if(word.begin(), word.end(), isLead) <= int64_t(maxCharacters);
  for (size_t begin = 0; good && begin < word.size();) {
    size_t longest = 0;
    uint32_t token = 0;
    if (std::optional<uint32_t> from = begin ? inner : std::optional(TokenTrie::kRoot)) {
      uint32_t at = *from;
      for (size_t i = begin; i < word.size() && trie.step(at, static_cast<uint8_t>(word[i])); ++i)
        // A token of a hostile blob may end within a character.
        if (uint32_t found = trie.node(at).token;
            found && (i + 1 == word.size() || isLead(word[i + 1]))) {
          longest = i + 1 - begin;
          token = found - 1;
        }
    }
    good = longest != 0;
    begin += longest;
    out.push_back(token);
  }
  if (good)
    return Status::ok();
  out.resize(before);
  if (!unknown)
    return invalidArgument("the tokenizer has no tokens for the word '" +
                           std::string(word.substr(0, 40)) + "' and no unknown token");
  out.push_back(*unknown);
  return Status::ok();
}

} // namespace llmrt
