//===- TextStream.h - tokens to text while they come ------------------------------===//
//
// Output is bytes first. Each token adds bytes; what is given out is always whole characters,
// and never the beginning of what may become a stop string:
//
//   token ─ bytes ─ [at most 3 bytes of an open character] ─ text
//         ─ [a tail that begins a stop string, shorter than it] ─ given out
//
// The text before the first stop string that is *completed* ends the stream; among stop
// strings that end at the same character the longest counts. finish() gives out what was
// held back, with U+FFFD for a character that stayed open. The pieces joined are the same for
// any grouping of tokens, so a stream and a whole answer are equal.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEXT_TEXTSTREAM_H
#define LLMRT_TEXT_TEXTSTREAM_H

#include "runtime/text/Tokenizer.h"

namespace llmrt {

struct TextStreamOptions {
  bool skipSpecial = true;
  /// The tokens begin a text: drop the space that some tokenizers put before a text's first
  /// word, as decode() does. False where they continue a prompt.
  bool startOfText = false;
  /// Texts that end the stream; they are not given out. Empty ones are ignored.
  std::vector<std::string> stops = {};
};

class TextStream {
public:
  TextStream(std::shared_ptr<const Tokenizer> tokenizer, TextStreamOptions options = {});

  /// Adds one token and returns the text that can be shown now, possibly none. After a stop
  /// nothing is added any more.
  std::string push(int32_t id);
  /// The same for the bytes of a token.
  std::string pushBytes(std::string_view bytes);
  /// Ends the stream and returns what was held back. Called again it returns nothing.
  std::string finish();

  bool stopped() const { return stop.has_value(); }
  /// Which of the stop strings ended the stream (index in TextStreamOptions::stops).
  std::optional<size_t> stopIndex() const { return stop; }
  /// Bytes of text held back now.
  size_t heldBytes() const { return held.size() + open.size(); }

private:
  /// Knuth-Morris-Pratt state of one stop string over all the text so far.
  struct Matcher {
    size_t index;
    std::string pattern;
    std::vector<size_t> fallback; ///< fallback[i]: longest border of pattern[0, i]
    size_t matched = 0;
  };
  void appendText(std::string_view text);
  std::string release();

  std::shared_ptr<const Tokenizer> tokenizer;
  TextStreamOptions options;
  std::vector<Matcher> matchers;
  std::string open; ///< bytes of a character that is not complete
  std::string held; ///< text not given out
  std::optional<size_t> stop;
  size_t spacesToDrop = 0; ///< at the start of the text
  bool first = true;       ///< no token was added
  bool finished = false;
};

} // namespace llmrt

#endif // LLMRT_TEXT_TEXTSTREAM_H
