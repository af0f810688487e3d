//===- Iterate.h - walking over values ------------------------------------------===//
#ifndef LLMRT_TEXT_CHAT_JINJA_ITERATE_H
#define LLMRT_TEXT_CHAT_JINJA_ITERATE_H

#include "runtime/text/chat/jinja/Session.h"

namespace llmrt::jinja {

/// iter(v): the items of a sequence, the code points of a string, the keys of a mapping; nothing
/// for an undefined value. Fails for values that aren't iterable.
NextFn iterate(Session &session, const Value &v);
bool isIterable(const Value &v);
/// list(v), charged to the session.
std::vector<Value> collect(Session &session, const Value &v);
/// len(v), or -1 for values without a length.
Int lengthOf(Session &session, const Value &v);
/// Item \p i of a list, tuple, range or string (0 <= i < length).
Value itemAt(Session &session, const Value &sequence, Int i);

} // namespace llmrt::jinja

#endif // LLMRT_TEXT_CHAT_JINJA_ITERATE_H
