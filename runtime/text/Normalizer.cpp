#include "runtime/text/Normalizer.h"

#include "runtime/text/Unicode.h"
#include "runtime/text/Utf8.h"

#include <array>

namespace llmrt {

namespace {

/// GPT-2's table: printable bytes of Latin-1 stand for themselves, the other 68 (controls,
/// space, 0x7F-0xA0, soft hyphen) for U+0100 onwards in order.
struct ByteAlphabet {
  std::array<std::string, 256> characters;
  std::array<int16_t, 0x144> bytes;
  ByteAlphabet() {
    bytes.fill(-1);
    char32_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      char32_t c = printable ? static_cast<char32_t>(byte) : next++;
      appendUtf8(characters[byte], c);
      bytes[c] = static_cast<int16_t>(byte);
    }
  }
};

const ByteAlphabet &byteAlphabet() {
  static const ByteAlphabet alphabet;
  return alphabet;
}

std::string stripSpace(std::string_view text, bool left, bool right) {
  size_t begin = 0, end = text.size(), lastKept = 0;
  bool leading = left;
  for (size_t at = 0; at < text.size();) {
    Utf8Step step = decodeUtf8(text, at);
    bool space = isUnicodeSpace(step.codePoint);
    if (leading && space)
      begin = at + step.size;
    else
      leading = false;
    at += step.size;
    if (!space)
      lastKept = at;
  }
  if (right)
    end = std::max(lastKept, begin);
  return std::string(text.substr(begin, end - begin));
}

std::string stripMarks(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    Utf8Step step = decodeUtf8(text, at);
    if (!isUnicodeMark(step.codePoint))
      out.append(text, at, step.size);
    at += step.size;
  }
  return out;
}

} // namespace

std::string mapBytes(std::string_view text) {
  const ByteAlphabet &alphabet = byteAlphabet();
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  for (char c : text)
    out += alphabet.characters[static_cast<uint8_t>(c)];
  return out;
}

int unmapByte(char32_t c) {
  const ByteAlphabet &alphabet = byteAlphabet();
  return c < alphabet.bytes.size() ? alphabet.bytes[c] : -1;
}

Result<Pattern> compileStepPattern(const PipelineStep &step) {
  if (step.regex)
    return Pattern::regex(step.pattern);
  return Pattern::literal(step.pattern);
}

Result<std::string> replaceMatches(std::string_view text, const Pattern &pattern,
                                   std::string_view content, PatternScratch &scratch) {
  std::string out;
  size_t from = 0;
  LLMRT_RETURN_IF_ERROR(pattern.forEachMatch(text, scratch, [&](Span match) {
    out.append(text, from, match.begin - from);
    out += content;
    from = match.end;
  }));
  out.append(text, from);
  return out;
}

Result<Normalizer> Normalizer::create(std::vector<PipelineStep> specs) {
  Normalizer normalizer;
  for (PipelineStep &spec : specs) {
    LLMRT_ASSIGN_OR_RETURN(Pattern pattern, compileStepPattern(spec));
    normalizer.steps.push_back({std::move(spec), std::move(pattern)});
  }
  return normalizer;
}

Result<std::string> Normalizer::apply(std::string_view input, PatternScratch &scratch,
                                      bool &startKept) const {
  std::string text(input);
  for (const Step &step : steps) {
    switch (step.spec.kind) {
    case StepKind::Nfc:
      text = normalizeUnicode(text, NormalForm::Nfc);
      break;
    case StepKind::Nfd:
      text = normalizeUnicode(text, NormalForm::Nfd);
      break;
    case StepKind::Nfkc:
      text = normalizeUnicode(text, NormalForm::Nfkc);
      break;
    case StepKind::Nfkd:
      text = normalizeUnicode(text, NormalForm::Nfkd);
      break;
    case StepKind::Lowercase:
      text = lowercaseUnicode(text);
      break;
    case StepKind::StripAccents:
      startKept &= text.empty() || !isUnicodeMark(decodeUtf8(text, 0).codePoint);
      text = stripMarks(text);
      break;
    case StepKind::Strip:
      startKept &=
          !step.spec.left || text.empty() || !isUnicodeSpace(decodeUtf8(text, 0).codePoint);
      text = stripSpace(text, step.spec.left, step.spec.right);
      break;
    case StepKind::Replace: {
      std::string before = std::move(text);
      LLMRT_ASSIGN_OR_RETURN(text,
                             replaceMatches(before, step.pattern, step.spec.content, scratch));
      // With nothing in their place, replaced characters at the start are gone.
      if (startKept && step.spec.content.empty() && text.size() < before.size()) {
        std::optional<Span> first;
        LLMRT_RETURN_IF_ERROR(step.pattern.forEachMatch(before, scratch, [&](Span match) {
          if (!first && !match.empty())
            first = match;
        }));
        startKept = !first || first->begin > 0;
      }
      break;
    }
    case StepKind::Prepend:
      if (!text.empty())
        text.insert(0, step.spec.content);
      break;
    case StepKind::ByteMap:
      text = mapBytes(text);
      break;
    default:
      return internalError("a step that is no normalizer");
    }
  }
  return text;
}

} // namespace llmrt
