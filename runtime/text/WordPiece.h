//===- WordPiece.h - the longest tokens of a word, from its start -----------------===//
//
// As BERT does it (Devlin et al. 2018, arXiv:1810.04805): a word becomes its longest prefix that
// is a token, and so on; tokens inside the word are spelled with a prefix ("##ing"). A word with a
// rest that is no token, or of too many characters, is one unknown token.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEXT_WORDPIECE_H
#define LLMRT_TEXT_WORDPIECE_H

#include "runtime/text/TokenizerBlob.h"

#include <vector>

namespace llmrt {

class WordPiece {
public:
  /// \p tables must outlive it.
  WordPiece(const TokenizerTables &tables, const PipelineConfig &config);

  /// Appends the token indices of \p word, well-formed UTF-8. InvalidArgument for an unknown word
  /// if the model has no unknown token.
  Status encode(std::string_view word, std::vector<uint32_t> &out) const;

private:
  const TokenizerTables &tables;
  std::optional<uint32_t> inner; ///< trie node of the prefix; none: no token has it
  uint32_t maxCharacters;
  std::optional<uint32_t> unknown;
};

} // namespace llmrt

#endif // LLMRT_TEXT_WORDPIECE_H
