#include "runtime/text/Normalizer.h"

#include "runtime/text/Unicode.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <array>

namespace llmrt {

namespace {

/// GPT-2's table: printable bytes of Latin-1 stand for themselves, the other 68 (controls,
/// space, 0x7F-0xA0, soft hyphen) for U+0100 onwards in order.
struct ByteAlphabet {
  struct Short {
    char bytes[2];
    uint8_t size;
  };
  std::array<Short, 256> shorts;
  std::array<int16_t, 0x144> bytes;
  ByteAlphabet() {
    bytes.fill(-1);
    char32_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      char32_t c = printable ? static_cast<char32_t>(byte) : next++;
      std::string character;
      appendUtf8(character, c);
      shorts[byte] = {{character[0], character.size() > 1 ? character[1] : '\0'},
                      static_cast<uint8_t>(character.size())};
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

/// \p text with each character replaced by what \p map(code point, character, out) appends.
template <typename Map> std::string mapCharacters(std::string_view text, Map map) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    Utf8Step step = decodeUtf8(text, at);
    map(step.codePoint, text.substr(at, step.size), out);
    at += step.size;
  }
  return out;
}

bool isNmtDropped(char32_t c) {
  return (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F ||
         c == 0x8F || c == 0x9F;
}

bool isNmtSpace(char32_t c) {
  return c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
         (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF ||
         c == 0xFFFD;
}

/// Whether the first character of \p text (not empty) is replaced by nothing.
bool dropsStart(std::string_view text, const CharsMap &map) {
  std::optional<CharsMap::Match> match = map.shortest(text.substr(0, utf8Width(text, 0)));
  return match && match->replacement.empty();
}

/// What SentencePiece (Kudo and Richardson 2018, section 3.2) does with a text before it cuts it:
/// replaces the longest texts of the table, then treats spaces.
std::string normalizeSentencePiece(std::string_view text, const PipelineStep &spec,
                                   const CharsMap &map) {
  constexpr std::string_view kMark = "\u2581";
  const std::string_view space = spec.split ? kMark : " ";
  const bool collapse = spec.right;
  auto take = [&](size_t &at) { // the next character or text of the table, replaced
    std::string_view piece = text.substr(at, utf8Width(text, at));
    std::optional<CharsMap::Match> match = map.longest(text.substr(at));
    at += match ? match->length : piece.size();
    return match ? match->replacement : piece;
  };
  size_t at = 0;
  if (collapse)
    for (size_t next = 0; at < text.size() && take(next) == " ";)
      at = next;
  if (at == text.size())
    return {};
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  if (spec.left && !spec.invert)
    out += space;
  bool afterSpace = collapse; // spaces that a piece begins with are too many
  while (at < text.size()) {
    std::string_view piece = take(at);
    if (afterSpace)
      piece.remove_prefix(std::min(piece.find_first_not_of(' '), piece.size()));
    for (char c : piece) {
      if (c == ' ')
        out += space;
      else
        out += c;
    }
    if (!piece.empty())
      afterSpace = collapse && piece.back() == ' ';
  }
  if (collapse)
    while (out.ends_with(space))
      out.resize(out.size() - space.size());
  if (spec.left && spec.invert)
    out += space;
  return out;
}

} // namespace

void appendMappedBytes(std::string_view text, std::string &out) {
  const ByteAlphabet &alphabet = byteAlphabet();
  const size_t before = out.size();
  out.resize(before + 2 * text.size()); // no character has more than two bytes
  char *at = out.data() + before;
  for (char c : text) {
    const ByteAlphabet::Short &character = alphabet.shorts[static_cast<uint8_t>(c)];
    at[0] = character.bytes[0];
    at[1] = character.bytes[1]; // overwritten if the character has one byte only
    at += character.size;
  }
  out.resize(static_cast<size_t>(at - out.data()));
}

std::string mapBytes(std::string_view text) {
  std::string out;
  out.reserve(2 * text.size());
  appendMappedBytes(text, out);
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
    CharsMap map;
    if (spec.kind == StepKind::Precompiled ||
        (spec.kind == StepKind::SentencePiece && !spec.content.empty())) {
      LLMRT_ASSIGN_OR_RETURN(map, CharsMap::open(spec.content));
    }
    normalizer.steps.push_back({std::move(spec), std::move(pattern), std::move(map)});
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
    case StepKind::BertClean: {
      auto dropped = [](char32_t c) {
        return c == 0 || c == kReplacementCharacter ||
               (isUnicodeOther(c) && c != '\t' && c != '\n' && c != '\r');
      };
      startKept &= text.empty() || !dropped(decodeUtf8(text, 0).codePoint);
      text = mapCharacters(text, [&](char32_t c, std::string_view character, std::string &out) {
        if (dropped(c)) // a form feed too
          return;
        if (isUnicodeSpace(c))
          out += ' ';
        else
          out += character;
      });
      break;
    }
    case StepKind::CjkSpaces:
      text = mapCharacters(text, [](char32_t c, std::string_view character, std::string &out) {
        bool apart = isBertCjk(c);
        out += apart ? " " : "";
        out += character;
        out += apart ? " " : "";
      });
      break;
    case StepKind::StripNonspacing:
      startKept &= text.empty() || !isUnicodeNonspacingMark(decodeUtf8(text, 0).codePoint);
      text = mapCharacters(text, [](char32_t c, std::string_view character, std::string &out) {
        if (!isUnicodeNonspacingMark(c))
          out += character;
      });
      break;
    case StepKind::Nmt:
      startKept &= text.empty() || !isNmtDropped(decodeUtf8(text, 0).codePoint);
      text = mapCharacters(text, [](char32_t c, std::string_view character, std::string &out) {
        if (isNmtSpace(c))
          out += ' ';
        else if (!isNmtDropped(c))
          out += character;
      });
      break;
    case StepKind::Precompiled: {
      std::string before = std::move(text);
      text = step.charsMap.applyToGraphemes(before);
      // The text's first character may be replaced by nothing.
      if (startKept && !before.empty())
        startKept = !dropsStart(before, step.charsMap);
      break;
    }
    case StepKind::SentencePiece:
      text = normalizeSentencePiece(text, step.spec, step.charsMap);
      break;
    default:
      return internalError("a step that is no normalizer");
    }
  }
  return text;
}

} // namespace llmrt
