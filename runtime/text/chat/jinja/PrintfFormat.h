//===- PrintfFormat.h - text % values ------------------------------------------------===//
#ifndef LLMRT_TEXT_CHAT_JINJA_PRINTFFORMAT_H
#define LLMRT_TEXT_CHAT_JINJA_PRINTFFORMAT_H

#include "runtime/text/chat/jinja/Session.h"

namespace llmrt::jinja {

/// '%s, %5.1f' % (a, b), '%(name)s' % mapping. \p format is a string; if it is marked as HTML,
/// the values are escaped.
Value formatPrintf(Session &session, const Value &format, const Value &values);

/// '{} {0.name!r:>8}'.format(...). Fields are looked up as the template itself would.
Value formatBraces(Session &session, const Value &format, const std::vector<Value> &positional,
                   const std::vector<std::pair<std::string, Value>> &keyword);

} // namespace llmrt::jinja

#endif // LLMRT_TEXT_CHAT_JINJA_PRINTFFORMAT_H
