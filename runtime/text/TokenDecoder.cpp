#include "runtime/text/TokenDecoder.h"

#include "runtime/text/Normalizer.h"
#include "runtime/text/Utf8.h"

#include <span>

namespace llmrt {

int byteOfToken(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>')
    return -1;
  int value = 0;
  for (char c : token.substr(3, 2)) {
    int digit = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                       : -1;
    if (digit < 0)
      return -1;
    value = value * 16 + digit;
  }
  return value;
}

using Rule = std::pair<std::string_view, std::string_view>;

/// The rules one after the other: their order counts.
static std::string applyRules(std::string text, std::span<const Rule> rules) {
  for (auto [from, to] : rules) {
    std::string out;
    size_t at = 0;
    for (size_t found; (found = text.find(from, at)) != std::string::npos;
         at = found + from.size()) {
      out.append(text, at, found - at);
      out += to;
    }
    out.append(text, at);
    text = std::move(out);
  }
  return text;
}

std::string cleanUpSpaces(std::string text) {
  static constexpr Rule kRules[] = {{" .", "."},     {" ?", "?"},     {" !", "!"},   {" ,", ","},
                                    {" ' ", "'"},    {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"},
                                    {" 've", "'ve"}, {" 're", "'re"}};
  return applyRules(std::move(text), kRules);
}

/// The clean-up of the WordPiece decoder, which has one rule more.
static std::string cleanUpWord(std::string token) {
  static constexpr Rule kRules[] = {{" .", "."},     {" ?", "?"},           {" !", "!"},
                                    {" ,", ","},     {" ' ", "'"},          {" n't", "n't"},
                                    {" 'm", "'m"},   {" do not", " don't"}, {" 's", "'s"},
                                    {" 've", "'ve"}, {" 're", "'re"}};
  return applyRules(std::move(token), kRules);
}

namespace {

/// The bytes behind GPT-2's characters; a token with any other character is its own bytes.
std::string unmapBytes(std::string_view token) {
  std::string bytes;
  for (size_t at = 0; at < token.size();) {
    Utf8Step step = decodeUtf8(token, at);
    int byte = step.valid ? unmapByte(step.codePoint) : -1;
    if (byte < 0)
      return std::string(token);
    bytes += static_cast<char>(byte);
    at += step.size;
  }
  return bytes;
}

/// A run of byte tokens is text if it is well-formed as a whole, else one U+FFFD a byte.
std::vector<std::string> decodeByteRuns(const std::vector<std::string> &tokens) {
  std::vector<std::string> out;
  std::string run;
  auto flush = [&] {
    if (run.empty())
      return;
    if (!firstInvalidUtf8(run)) {
      out.push_back(run);
    } else {
      for (size_t i = 0; i < run.size(); ++i)
        appendUtf8(out.emplace_back(), kReplacementCharacter);
    }
    run.clear();
  };
  for (const std::string &token : tokens) {
    int byte = byteOfToken(token);
    if (byte >= 0) {
      run += static_cast<char>(byte);
      continue;
    }
    flush();
    out.push_back(token);
  }
  flush();
  return out;
}

std::string joinAll(const std::vector<std::string> &tokens) {
  size_t size = 0;
  for (const std::string &token : tokens)
    size += token.size();
  std::string out;
  out.reserve(size);
  for (const std::string &token : tokens)
    out += token;
  return out;
}

/// Up to \p start copies of \p content at the front of \p token and \p stop at its end go.
std::string stripChars(std::string token, const PipelineStep &spec) {
  const std::string &c = spec.content;
  size_t begin = 0, end = token.size();
  for (uint32_t i = 0; i < spec.start && std::string_view(token).substr(begin).starts_with(c); ++i)
    begin += c.size();
  for (uint32_t i = 0; i < spec.stop && end >= begin + c.size() &&
                       std::string_view(token).substr(begin, end - begin).ends_with(c);
       ++i)
    end -= c.size();
  return token.substr(begin, end - begin);
}

/// A Replace step on one token. A hostile plan's tokens may be ill-formed, which a regular
/// expression must not see.
Result<std::string> replaceInToken(const std::string &token, const Pattern &pattern,
                                   const PipelineStep &spec, PatternScratch &scratch) {
  if (spec.regex && firstInvalidUtf8(token))
    return replaceMatches(repairUtf8(token), pattern, spec.content, scratch);
  return replaceMatches(token, pattern, spec.content, scratch);
}

std::string replaceText(std::string_view text, std::string_view from, std::string_view to) {
  PatternScratch scratch;
  Result<std::string> out = replaceMatches(text, Pattern::literal(std::string(from)), to, scratch);
  return out ? std::move(*out) : std::string(text); // a literal can't fail
}

} // namespace

Result<TokenDecoder> TokenDecoder::create(std::vector<PipelineStep> specs, bool joinWithSpaces) {
  TokenDecoder decoder;
  decoder.joinWithSpaces = joinWithSpaces;
  bool fused = false;
  for (PipelineStep &spec : specs) {
    if (spec.kind == StepKind::StripChars && fused &&
        (spec.content == " " || spec.content == "\u2581"))
      decoder.leadingSpaces = spec.start;
    if (spec.kind == StepKind::WordPieceDecode)
      decoder.leadingSpaces = 1;
    if (spec.kind == StepKind::MetaspaceDecode && spec.scheme != PrefixScheme::Never)
      decoder.leadingSpaces = 1;
    fused |= spec.kind == StepKind::Fuse || spec.kind == StepKind::ByteLevel;
    if (spec.kind == StepKind::StripChars && spec.content.empty())
      return invalidFile("a Strip decoder with empty content");
    LLMRT_ASSIGN_OR_RETURN(Pattern pattern, compileStepPattern(spec));
    decoder.steps.push_back({std::move(spec), std::move(pattern)});
  }
  return decoder;
}

Result<std::string> TokenDecoder::decode(std::vector<std::string> tokens) const {
  PatternScratch scratch;
  for (const Step &step : steps) {
    const PipelineStep &spec = step.spec;
    switch (spec.kind) {
    case StepKind::Replace:
      for (std::string &token : tokens) {
        LLMRT_ASSIGN_OR_RETURN(token, replaceInToken(token, step.pattern, spec, scratch));
      }
      break;
    case StepKind::ByteLevel: {
      std::string bytes;
      for (const std::string &token : tokens)
        bytes += unmapBytes(token);
      tokens = {repairUtf8(bytes)};
      break;
    }
    case StepKind::ByteFallback:
      tokens = decodeByteRuns(tokens);
      break;
    case StepKind::Fuse:
      tokens = {joinAll(tokens)};
      break;
    case StepKind::StripChars:
      for (std::string &token : tokens)
        token = stripChars(std::move(token), spec);
      break;
    case StepKind::MetaspaceDecode:
      for (size_t i = 0; i < tokens.size(); ++i) {
        bool dropped = i == 0 && spec.scheme != PrefixScheme::Never;
        tokens[i] = replaceText(tokens[i], spec.content, dropped ? "" : " ");
      }
      break;
    case StepKind::SuffixDecode:
      for (size_t i = 0; i < tokens.size(); ++i)
        tokens[i] = replaceText(tokens[i], spec.pattern, i + 1 == tokens.size() ? "" : " ");
      break;
    case StepKind::WordPieceDecode:
      for (size_t i = 0; i < tokens.size(); ++i) {
        if (i && tokens[i].starts_with(spec.content))
          tokens[i].erase(0, spec.content.size());
        else if (i)
          tokens[i].insert(0, " ");
        if (spec.split)
          tokens[i] = cleanUpWord(std::move(tokens[i]));
      }
      break;
    default:
      return internalError("a step that is no decoder");
    }
  }
  std::string out;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i && joinWithSpaces)
      out += ' ';
    out += tokens[i];
  }
  return repairUtf8(out); // the vocabulary of a hostile plan may hold anything
}

Result<std::string> TokenDecoder::bytesOf(std::string_view spelled) const {
  std::string token(spelled);
  bool fused = false;
  PatternScratch scratch;
  for (const Step &step : steps) {
    const PipelineStep &spec = step.spec;
    switch (spec.kind) {
    case StepKind::Replace: {
      LLMRT_ASSIGN_OR_RETURN(token, replaceInToken(token, step.pattern, spec, scratch));
      break;
    }
    case StepKind::ByteLevel:
      token = unmapBytes(token);
      fused = true;
      break;
    case StepKind::ByteFallback:
      if (int byte = byteOfToken(token); byte >= 0)
        token = std::string(1, static_cast<char>(byte));
      break;
    case StepKind::Fuse:
      fused = true;
      break;
    case StepKind::StripChars:
      if (!fused) // afterwards it concerns the ends of the text only
        token = stripChars(std::move(token), spec);
      break;
    case StepKind::MetaspaceDecode:
      token = replaceText(token, spec.content, " ");
      break;
    case StepKind::SuffixDecode:
      token = replaceText(token, spec.pattern, " ");
      break;
    case StepKind::WordPieceDecode:
      if (token.starts_with(spec.content))
        token.erase(0, spec.content.size());
      else
        token.insert(0, " ");
      if (spec.split)
        token = cleanUpWord(std::move(token));
      break;
    default:
      return internalError("a step that is no decoder");
    }
  }
  return token;
}

} // namespace llmrt
