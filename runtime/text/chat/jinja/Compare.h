//===- Compare.h - truth, equality, order and hashes, as in Python -------------===//
#ifndef LLMRT_TEXT_CHAT_JINJA_COMPARE_H
#define LLMRT_TEXT_CHAT_JINJA_COMPARE_H

#include "runtime/text/chat/jinja/Session.h"

namespace llmrt::jinja {

bool isTrue(Session &session, const Value &v);
bool equals(Session &session, const Value &a, const Value &b);
/// a < b; fails for types without an order. \p symbol is the operator that the message names.
bool lessThan(Session &session, const Value &a, const Value &b, const char *symbol = "<");
/// Fails for values that can't be keys.
size_t hashOf(Session &session, const Value &v);
size_t hashText(std::string_view text);
/// `needle in haystack`.
bool contains(Session &session, const Value &haystack, const Value &needle);

/// Stable merge sort by \p less, which may throw and need not be a consistent order.
void sortStable(Session &session, std::vector<Value> &items,
                const std::function<bool(const Value &, const Value &)> &less);

} // namespace llmrt::jinja

#endif // LLMRT_TEXT_CHAT_JINJA_COMPARE_H
