//===- Macro.h - a macro with the scope it was defined in --------------------------===//
#ifndef LLMRT_TEXT_CHAT_JINJA_MACRO_H
#define LLMRT_TEXT_CHAT_JINJA_MACRO_H

#include "runtime/text/chat/jinja/Scope.h"

namespace llmrt::jinja {

struct Macro : Object {
  Macro(const MacroDefinition *definition, Scope *closure)
      : Object(Kind::Macro), definition(definition), closure(closure) {}
  const MacroDefinition *definition;
  Scope *closure;
  const std::string &name() const { return definition->name; }
};

} // namespace llmrt::jinja

#endif // LLMRT_TEXT_CHAT_JINJA_MACRO_H
