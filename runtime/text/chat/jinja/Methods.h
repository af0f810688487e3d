//===- Methods.h - the methods of strings, lists, mappings and loops -----------------===//
#ifndef LLMRT_TEXT_CHAT_JINJA_METHODS_H
#define LLMRT_TEXT_CHAT_JINJA_METHODS_H

#include "runtime/text/chat/jinja/Value.h"

#include <algorithm>
#include <string_view>

namespace llmrt::jinja {

// Each returns null if there is no such method.
Function::Body findStringMethod(std::string_view name);
Function::Body findListMethod(std::string_view name);
Function::Body findDictMethod(std::string_view name);
Function::Body findLoopMethod(std::string_view name);
Function::Body findCyclerMethod(std::string_view name);

/// One entry of a table of functions that is sorted by name.
template <typename Body> struct NamedFunction {
  std::string_view name;
  Body body;
};

/// The entry of \p name in a sorted table, or null.
template <typename Table> auto findByName(const Table &table, std::string_view name) {
  auto it = std::lower_bound(std::begin(table), std::end(table), name,
                             [](const auto &entry, std::string_view n) { return entry.name < n; });
  return it != std::end(table) && it->name == name ? &*it : nullptr;
}

/// Whether a table is sorted, for static_assert.
template <typename Table> constexpr bool isSortedByName(const Table &table) {
  return std::is_sorted(std::begin(table), std::end(table),
                        [](const auto &a, const auto &b) { return a.name < b.name; });
}

} // namespace llmrt::jinja

#endif // LLMRT_TEXT_CHAT_JINJA_METHODS_H
