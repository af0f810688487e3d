//===- Attributes.h - object.name, object[key], object[a:b] -------------------------===//
//
// What exists here is all that a template can reach: there are no attributes of the host. A
// method that would change its object is known as such and refused.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEXT_CHAT_JINJA_ATTRIBUTES_H
#define LLMRT_TEXT_CHAT_JINJA_ATTRIBUTES_H

#include "runtime/text/chat/jinja/Session.h"

namespace llmrt::jinja {

/// The method \p name of \p object, or null.
Function::Body findMethod(const Value &object, std::string_view name);

/// object.name: an attribute or method, else the item of that key, else undefined. \p key is the
/// name as a value.
Value attributeOf(Session &session, const Value &object, std::string_view name, const Value &key);
/// object[key]: the item, else, for a string, the attribute or method of that name, else undefined.
Value itemOf(Session &session, const Value &object, const Value &key);
/// object[start:stop:step], None for what is left out.
Value sliceOf(Session &session, const Value &object, const Value &start, const Value &stop,
              const Value &step);

/// The value at a path "a.b.0" of items, as the argument `attribute` of filters gives it. A
/// \p fallback, if there is one, stands for each undefined step.
Value followPath(Session &session, Value item, const Value &path, const Value *fallback = nullptr);

} // namespace llmrt::jinja

#endif // LLMRT_TEXT_CHAT_JINJA_ATTRIBUTES_H
