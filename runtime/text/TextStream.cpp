#include "runtime/text/TextStream.h"

#include "runtime/text/Utf8.h"

#include <algorithm>

namespace llmrt {

TextStream::TextStream(std::shared_ptr<const Tokenizer> tokenizerIn, TextStreamOptions optionsIn)
    : tokenizer(std::move(tokenizerIn)), options(std::move(optionsIn)) {
  if (options.startOfText && tokenizer)
    spacesToDrop = tokenizer->leadingSpacesDropped();
  for (size_t i = 0; i < options.stops.size(); ++i) {
    const std::string &pattern = options.stops[i];
    if (pattern.empty())
      continue;
    Matcher matcher{i, pattern, std::vector<size_t>(pattern.size(), 0)};
    for (size_t at = 1, border = 0; at < pattern.size(); ++at) {
      while (border && pattern[at] != pattern[border])
        border = matcher.fallback[border - 1];
      if (pattern[at] == pattern[border])
        ++border;
      matcher.fallback[at] = border;
    }
    matchers.push_back(std::move(matcher));
  }
}

std::string TextStream::push(int32_t id) {
  if (!tokenizer || stop || finished || (options.skipSpecial && tokenizer->isSpecial(id)) ||
      !tokenizer->isToken(id))
    return {};
  Result<std::string> bytes = tokenizer->tokenBytes(id);
  if (!bytes)
    return {}; // a decoder's pattern over its limit; no token of a real vocabulary gets there
  if (!first && tokenizer->joinsWithSpaces())
    bytes->insert(0, " ");
  return pushBytes(*bytes);
}

std::string TextStream::pushBytes(std::string_view bytes) {
  if (stop || finished)
    return {};
  first = false;
  open += bytes;
  size_t at = 0;
  while (at < open.size() && !stop) {
    Utf8Step step = decodeUtf8(open, at);
    if (step.partial)
      break;
    if (step.valid)
      appendText(std::string_view(open).substr(at, step.size));
    else
      appendText("\uFFFD");
    at += step.size;
  }
  open.erase(0, at);
  return release();
}

std::string TextStream::finish() {
  if (finished)
    return {};
  if (!stop && !open.empty())
    appendText("\uFFFD");
  open.clear();
  finished = true;
  return release();
}

/// Adds one character.
void TextStream::appendText(std::string_view text) {
  if (spacesToDrop) {
    if (text == " ") {
      --spacesToDrop;
      return;
    }
    spacesToDrop = 0;
  }
  held += text;
  size_t longest = 0;
  for (Matcher &matcher : matchers) {
    for (char c : text) {
      // A completed match ended the stream, so `matched` is below the pattern's size here.
      while (matcher.matched && matcher.pattern[matcher.matched] != c)
        matcher.matched = matcher.fallback[matcher.matched - 1];
      if (matcher.pattern[matcher.matched] == c)
        ++matcher.matched;
      if (matcher.matched < matcher.pattern.size())
        continue;
      // A stop string that is no well-formed text may end within a character.
      if (matcher.pattern.size() > longest) {
        longest = matcher.pattern.size();
        stop = matcher.index;
      }
      break;
    }
  }
  if (stop)
    held.resize(held.size() - longest);
}

std::string TextStream::release() {
  size_t keep = 0;
  if (!stop && !finished)
    for (const Matcher &matcher : matchers)
      keep = std::max(keep, matcher.matched);
  std::string out = held.substr(0, held.size() - keep);
  held.erase(0, out.size());
  return out;
}

} // namespace llmrt
