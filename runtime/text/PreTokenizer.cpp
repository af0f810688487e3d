#include "runtime/text/PreTokenizer.h"

#include "runtime/text/Normalizer.h"

#include <algorithm>

namespace llmrt {

namespace {

struct Part {
  Span span;
  bool match;
};

/// Joins the parts of one piece by \p behavior and appends what is not empty to \p out.
void joinParts(const std::vector<Part> &parts, SplitBehavior behavior, std::vector<Span> &out) {
  size_t first = out.size();
  auto push = [&](Span span) { out.push_back(span); };
  switch (behavior) {
  case SplitBehavior::Removed:
    for (const Part &part : parts)
      if (!part.match)
        push(part.span);
    break;
  case SplitBehavior::Isolated:
    for (const Part &part : parts)
      push(part.span);
    break;
  case SplitBehavior::Contiguous:
    for (size_t i = 0; i < parts.size(); ++i) {
      if (i && parts[i].match == parts[i - 1].match)
        out.back().end = parts[i].span.end;
      else
        push(parts[i].span);
    }
    break;
  case SplitBehavior::MergedWithPrevious:
    for (size_t i = 0; i < parts.size(); ++i) {
      if (i && parts[i].match && !parts[i - 1].match)
        out.back().end = parts[i].span.end;
      else
        push(parts[i].span);
    }
    break;
  case SplitBehavior::MergedWithNext:
    for (size_t i = parts.size(); i-- > 0;) {
      if (i + 1 < parts.size() && parts[i].match && !parts[i + 1].match)
        out.back().begin = parts[i].span.begin;
      else
        push(parts[i].span);
    }
    std::reverse(out.begin() + first, out.end());
    break;
  }
  out.erase(std::remove_if(out.begin() + first, out.end(), [](Span s) { return s.empty(); }),
            out.end());
}

/// Cuts \p piece of \p text at the matches of \p pattern.
Status splitPiece(std::string_view text, Span piece, const PipelineStep &spec,
                  const Pattern &pattern, PatternScratch &scratch, std::vector<Part> &parts,
                  std::vector<Span> &out) {
  size_t from = piece.begin;
  auto push = [&](size_t begin, size_t end) {
    if (begin < end)
      out.push_back({begin, end});
  };
  if (spec.behavior == SplitBehavior::Isolated) { // the usual one: matches and gaps alike
    LLMRT_RETURN_IF_ERROR(
        pattern.forEachMatch(text.substr(piece.begin, piece.size()), scratch, [&](Span match) {
          push(from, piece.begin + match.begin);
          push(piece.begin + match.begin, from = piece.begin + match.end);
        }));
    push(from, piece.end);
    return Status::ok();
  }
  parts.clear();
  auto add = [&](size_t begin, size_t end, bool match) {
    parts.push_back({{begin, end}, match != spec.invert});
  };
  LLMRT_RETURN_IF_ERROR(
      pattern.forEachMatch(text.substr(piece.begin, piece.size()), scratch, [&](Span match) {
        size_t begin = piece.begin + match.begin, end = piece.begin + match.end;
        if (begin > from)
          add(from, begin, false);
        add(begin, end, true);
        from = end;
      }));
  if (from < piece.end)
    add(from, piece.end, false);
  joinParts(parts, spec.behavior, out);
  return Status::ok();
}

/// Rewrites every piece with \p rewrite(text, index), which appends to its third argument.
template <typename Rewrite> void rewritePieces(PieceList &list, Rewrite rewrite) {
  std::string text;
  text.reserve(list.text().size() + list.pieces.size());
  std::vector<Span> pieces;
  pieces.reserve(list.pieces.size());
  for (size_t i = 0; i < list.pieces.size(); ++i) {
    size_t begin = text.size();
    rewrite(list.piece(i), i, text);
    if (text.size() > begin)
      pieces.push_back({begin, text.size()});
  }
  list.rewritten = std::move(text);
  list.pieces = std::move(pieces);
}

} // namespace

Result<PreTokenizer> PreTokenizer::create(std::vector<PipelineStep> specs) {
  PreTokenizer result;
  result.mapsBytes = !specs.empty() && specs.back().kind == StepKind::ByteMap;
  if (result.mapsBytes)
    specs.pop_back();
  for (PipelineStep &spec : specs) {
    if (spec.kind == StepKind::Metaspace) {
      // Cut before each replacement character, which then begins the next piece.
      spec.pattern = spec.content;
      spec.regex = false;
      spec.invert = false;
      spec.behavior = SplitBehavior::MergedWithNext;
    }
    LLMRT_ASSIGN_OR_RETURN(Pattern pattern, compileStepPattern(spec));
    result.steps.push_back({std::move(spec), std::move(pattern)});
  }
  return result;
}

Result<PieceList> PreTokenizer::apply(std::string_view text, bool atStart,
                                      PatternScratch &scratch) const {
  PieceList list;
  list.given = text;
  if (!text.empty())
    list.pieces.push_back({0, text.size()});
  std::vector<Part> parts;
  static const Pattern space = Pattern::literal(" ");
  for (const Step &step : steps) {
    const PipelineStep &spec = step.spec;
    bool splits = spec.kind == StepKind::Split;
    if (spec.kind == StepKind::ByteMap) {
      rewritePieces(list, [](std::string_view piece, size_t, std::string &out) {
        appendMappedBytes(piece, out);
      });
    } else if (spec.kind == StepKind::PrefixSpace) {
      rewritePieces(list, [](std::string_view piece, size_t, std::string &out) {
        if (!piece.starts_with(' '))
          out += ' ';
        out += piece;
      });
    } else if (spec.kind == StepKind::Metaspace) {
      Status failure;
      rewritePieces(list, [&](std::string_view piece, size_t index, std::string &out) {
        Result<std::string> replaced = replaceMatches(piece, space, spec.content, scratch);
        if (!replaced) {
          failure = replaced.status();
          return;
        }
        bool prefix = spec.scheme == PrefixScheme::Always ||
                      (spec.scheme == PrefixScheme::First && index == 0 && atStart);
        if (prefix && !replaced->starts_with(spec.content))
          out += spec.content;
        out += *replaced;
      });
      LLMRT_RETURN_IF_ERROR(failure);
      splits = spec.split;
    } else if (!splits) {
      return internalError("a step that is no pre-tokenizer");
    }
    if (splits) {
      std::vector<Span> pieces;
      pieces.reserve(list.pieces.size() == 1 ? list.text().size() / 4 : list.pieces.size() * 2);
      for (Span piece : list.pieces)
        LLMRT_RETURN_IF_ERROR(
            splitPiece(list.text(), piece, spec, step.pattern, scratch, parts, pieces));
      list.pieces = std::move(pieces);
      atStart &= !list.pieces.empty() && list.pieces[0].begin == 0;
    }
  }
  return list;
}

} // namespace llmrt
