#include "runtime/text/chat/jinja/Loop.h"

#include "runtime/text/chat/jinja/Compare.h"
#include "runtime/text/chat/jinja/Iterate.h"

namespace llmrt::jinja {

Loop::Loop(Session &session, Value iterable, const ForStmt *statement, Scope *outer, int depth0)
    : Object(Kind::Loop), iterable_(std::move(iterable)), next_(iterate(session, iterable_)),
      statement_(statement), outer_(outer), depth0_(depth0) {}

bool Loop::peek() {
  if (after_)
    return true;
  Value item;
  if (!next_ || !next_(item))
    return false;
  after_ = std::move(item);
  return true;
}

bool Loop::advance(Value &item) {
  if (!peek())
    return false;
  item = std::move(*after_);
  after_.reset();
  ++index0_;
  before_ = std::move(current_);
  current_ = item;
  return true;
}

void Loop::finish() {
  running_ = false;
  next_ = nullptr;
  after_.reset();
}

Int Loop::length(Session &session) {
  if (length_)
    return *length_;
  Int known = lengthOf(session, iterable_);
  if (known >= 0) {
    length_ = known;
    return known;
  }
  std::vector<Value> rest;
  if (next_) {
    Value item;
    while (next_(item)) {
      session.step();
      session.push(rest, std::move(item));
    }
  }
  length_ = static_cast<Int>(rest.size()) + index0_ + 1 + (after_ ? 1 : 0);
  next_ = [rest = std::move(rest), i = size_t(0)](Value &out) mutable {
    if (i >= rest.size())
      return false;
    out = rest[i++];
    return true;
  };
  return *length_;
}

std::optional<Value> Loop::attribute(Session &session, std::string_view name) {
  if (name == "index")
    return Value::integer(index0_ + 1);
  if (name == "index0")
    return Value::integer(index0_);
  if (name == "first")
    return Value::boolean(index0_ == 0);
  if (name == "last")
    return Value::boolean(!peek());
  if (name == "length")
    return Value::integer(length(session));
  if (name == "revindex")
    return Value::integer(length(session) - index0_);
  if (name == "revindex0")
    return Value::integer(length(session) - index0_ - 1);
  if (name == "previtem")
    return index0_ == 0 ? session.undefinedHint("there is no previous item") : before_;
  if (name == "nextitem")
    return peek() ? *after_ : session.undefinedHint("there is no next item");
  if (name == "depth")
    return Value::integer(depth0_ + 1);
  if (name == "depth0")
    return Value::integer(depth0_);
  return std::nullopt;
}

bool Loop::changed(Session &session, std::vector<Value> values) {
  bool same = lastChanged_ && lastChanged_->size() == values.size();
  for (size_t i = 0; same && i < values.size(); ++i)
    same = equals(session, (*lastChanged_)[i], values[i]);
  if (!same)
    lastChanged_ = std::move(values);
  return !same;
}

} // namespace llmrt::jinja
