//===- Filters.h - value | name(...) ----------------------------------------------------===//
//
// Every filter of Jinja that makes sense for prompts. Missing on purpose: `random` (a prompt must
// be the same each time), `pprint`, `urlize`, `striptags` and `wordwrap`. `tojson` is Hugging
// Face's, without HTML escapes.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEXT_CHAT_JINJA_FILTERS_H
#define LLMRT_TEXT_CHAT_JINJA_FILTERS_H

#include "runtime/text/chat/jinja/Value.h"

#include <span>
#include <string_view>

namespace llmrt::jinja {

struct FilterEntry {
  std::string_view name;
  Function::Body body; ///< called with the value on the left as `self`
};

/// Null if there is no filter of that name.
const FilterEntry *findFilter(std::string_view name);

// The tables, one a file, each sorted by name.
std::span<const FilterEntry> stringFilters();
std::span<const FilterEntry> sequenceFilters();
std::span<const FilterEntry> selectionFilters();
std::span<const FilterEntry> numberFilters();

} // namespace llmrt::jinja

#endif // LLMRT_TEXT_CHAT_JINJA_FILTERS_H
