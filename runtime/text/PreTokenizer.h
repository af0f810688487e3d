//===- PreTokenizer.h - cuts text into the pieces the model works on ------------===//
#ifndef LLMRT_TEXT_PRETOKENIZER_H
#define LLMRT_TEXT_PRETOKENIZER_H

#include "runtime/text/Pattern.h"
#include "runtime/text/TokenizerSpec.h"

namespace llmrt {

/// A text and the pieces of it that are left, in order; none is empty.
struct PieceList {
  std::string_view given;               ///< the caller's text, until a step rewrites it
  std::optional<std::string> rewritten; ///< by a step
  std::vector<Span> pieces;
  std::string_view text() const { return rewritten ? std::string_view(*rewritten) : given; }
  std::string_view piece(size_t i) const {
    return text().substr(pieces[i].begin, pieces[i].size());
  }
};

/// The pre-tokenizer steps of a tokenizer, applied in order: each step cuts every piece that
/// the steps before it left.
class PreTokenizer {
public:
  static Result<PreTokenizer> create(std::vector<PipelineStep> steps);
  /// \p atStart: the text begins where the user's text begins (for PrefixScheme::First). The
  /// result may point into \p text. A last step that maps bytes is left out: see endsInByteMap.
  Result<PieceList> apply(std::string_view text, bool atStart, PatternScratch &scratch) const;
  /// The model's pieces are appendMappedBytes() of those that apply() gives.
  bool endsInByteMap() const { return mapsBytes; }

private:
  struct Step {
    PipelineStep spec;
    Pattern pattern;
  };
  std::vector<Step> steps;
  bool mapsBytes = false;
};

} // namespace llmrt

#endif // LLMRT_TEXT_PRETOKENIZER_H
