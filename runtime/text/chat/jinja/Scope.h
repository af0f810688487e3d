//===- Scope.h - the variables of one level ---------------------------------------===//
#ifndef LLMRT_TEXT_CHAT_JINJA_SCOPE_H
#define LLMRT_TEXT_CHAT_JINJA_SCOPE_H

#include "runtime/text/chat/jinja/Ast.h"
#include "runtime/text/chat/jinja/Session.h"

namespace llmrt::jinja {

/// The template itself, each round of a loop, each call of a macro and each block have a scope.
/// What is set in one is seen by the scopes inside it, and gone when it ends; `if` has none.
class Scope : public Owned {
public:
  /// \p kept: the scope belongs to the session, as a macro may refer to it later.
  Scope(Scope *parent, bool kept) : parent_(parent), kept_(kept) {}

  const Value *find(Session &session, NameId name) const {
    for (const Scope *s = this; s; s = s->parent_) {
      session.step(1 + s->variables_.size() / 32);
      for (const auto &[id, value] : s->variables_)
        if (id == name)
          return &value;
    }
    return nullptr;
  }

  void set(Session &session, NameId name, Value value) {
    session.step(1 + variables_.size() / 32);
    for (auto &[id, old] : variables_)
      if (id == name) {
        old = std::move(value);
        return;
      }
    if (kept_)
      session.charge(sizeof(std::pair<NameId, Value>));
    variables_.emplace_back(name, std::move(value));
  }

  void clear() { variables_.clear(); }

private:
  Scope *parent_;
  bool kept_;
  std::vector<std::pair<NameId, Value>> variables_;
};

} // namespace llmrt::jinja

#endif // LLMRT_TEXT_CHAT_JINJA_SCOPE_H
