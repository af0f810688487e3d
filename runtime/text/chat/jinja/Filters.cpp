#include "runtime/text/chat/jinja/Filters.h"

#include "runtime/text/chat/jinja/Methods.h"

namespace llmrt::jinja {

const FilterEntry *findFilter(std::string_view name) {
  for (std::span<const FilterEntry> table :
       {stringFilters(), sequenceFilters(), selectionFilters(), numberFilters()})
    if (const FilterEntry *entry = findByName(table, name))
      return entry;
  return nullptr;
}

} // namespace llmrt::jinja
