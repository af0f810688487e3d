//===- Loop.h - the variable `loop` -------------------------------------------------===//
#ifndef LLMRT_TEXT_CHAT_JINJA_LOOP_H
#define LLMRT_TEXT_CHAT_JINJA_LOOP_H

#include "runtime/text/chat/jinja/Scope.h"

#include <optional>

namespace llmrt::jinja {

/// A running loop: its items, read one ahead when the template asks for what follows.
class Loop : public Object {
public:
  Loop(Session &session, Value iterable, const ForStmt *statement, Scope *outer, int depth0);

  /// Moves to the next item.
  bool advance(Value &item);
  /// The loop is over; what would still come is dropped, since its scope is gone.
  void finish();

  /// The value of loop.\p name if that is no method.
  std::optional<Value> attribute(Session &session, std::string_view name);
  Int index0() const { return index0_; }
  /// The number of items; reads all of them if the iterable doesn't know.
  Int length(Session &session);
  /// Whether \p values differ from those of the last call.
  bool changed(Session &session, std::vector<Value> values);

  bool running() const { return running_; }
  const ForStmt *statement() const { return statement_; }
  Scope *outer() const { return outer_; }
  int depth0() const { return depth0_; }

private:
  bool peek();

  Value iterable_;
  NextFn next_;
  const ForStmt *statement_;
  Scope *outer_;
  int depth0_;
  bool running_ = true;
  Int index0_ = -1;
  std::optional<Int> length_;
  std::optional<Value> after_;
  Value before_, current_;
  std::optional<std::vector<Value>> lastChanged_;
};

} // namespace llmrt::jinja

#endif // LLMRT_TEXT_CHAT_JINJA_LOOP_H
