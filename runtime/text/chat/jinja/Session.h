//===- Session.h - one rendering: what it owns and what it may use -------------===//
//
// A template comes with a model file and is not trusted. Everything it does is charged to the
// session of its rendering: steps (time), bytes (memory), depth (stack). What runs out ends the
// rendering with an error that names the limit.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEXT_CHAT_JINJA_SESSION_H
#define LLMRT_TEXT_CHAT_JINJA_SESSION_H

#include "runtime/text/chat/ChatTemplate.h"
#include "runtime/text/chat/jinja/TemplateError.h"
#include "runtime/text/chat/jinja/Value.h"

#include <memory>
#include <vector>

namespace llmrt::jinja {

class Session {
public:
  explicit Session(const TemplateLimits &limits) : limits_(limits) {}
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  /// The line that errors name; the evaluator keeps it.
  int line = 0;

  [[noreturn]] void fail(std::string message) const {
    throw TemplateError(StatusCode::InvalidArgument, line, std::move(message));
  }
  [[noreturn]] void failUndefined(const Value &v) const;

  /// Charges \p count units of time.
  void step(uint64_t count = 1) {
    steps_ += count;
    if (steps_ > limits_.steps)
      outOfSteps();
  }
  /// Charges the time of one pass over \p bytes.
  void stepBytes(size_t bytes) { step(bytes / 64); }

  /// Charges memory that the session keeps until its end.
  void charge(uint64_t bytes) {
    checkRoom(bytes);
    account_.used += bytes;
  }
  /// Gives back what was charged for something that is gone.
  void refund(uint64_t bytes) { account_.used -= bytes; }
  /// Fails if \p bytes more would not fit; to be asked before they are made.
  void checkRoom(uint64_t bytes) const {
    if (bytes > limits_.memoryBytes || account_.used > limits_.memoryBytes - bytes)
      outOfMemory();
  }

  Value makeString(std::string text, bool markup = false);
  Value makeString(std::string_view text, bool markup = false) {
    checkRoom(text.size());
    return makeString(std::string(text), markup);
  }
  Value makeString(const char *text) { return makeString(std::string_view(text)); }

  template <typename T, typename... A> T *make(A &&...args) {
    charge(sizeof(T) + 2 * sizeof(void *));
    return makeUncharged<T>(std::forward<A>(args)...);
  }
  /// For what the caller brings: it is as large as it is, whatever the template does.
  template <typename T, typename... A> T *makeUncharged(A &&...args) {
    auto owned = std::make_unique<T>(std::forward<A>(args)...);
    T *raw = owned.get();
    objects_.push_back(std::move(owned));
    return raw;
  }
  void push(std::vector<Value> &items, Value v) {
    charge(sizeof(Value));
    items.push_back(std::move(v));
  }
  Value makeList(std::vector<Value> items, Kind kind = Kind::List);
  Value makePair(Value first, Value second);

  Value undefinedVariable(std::string_view name);
  Value undefinedMember(const Value &owner, const Value &key);
  Value undefinedHint(std::string hint);

  /// Counts one level of recursion while it lives.
  class Depth {
  public:
    explicit Depth(Session &s) : session_(s) {
      if (++session_.depth_ > session_.limits_.depth) {
        --session_.depth_;
        session_.tooDeep();
      }
    }
    ~Depth() { --session_.depth_; }
    Depth(const Depth &) = delete;

  private:
    Session &session_;
  };

  const TemplateLimits &limits() const { return limits_; }

private:
  [[noreturn]] void outOfSteps() const;
  [[noreturn]] void outOfMemory() const;
  [[noreturn]] void tooDeep() const;

  TemplateLimits limits_;
  uint64_t steps_ = 0;
  unsigned depth_ = 0;
  MemoryAccount account_; // outlives objects_, whose strings refund to it
  std::vector<std::unique_ptr<Owned>> objects_;
};

/// Text that grows piece by piece within the session's memory.
class TextBuilder {
public:
  explicit TextBuilder(Session &session) : session_(session) {}
  TextBuilder &append(std::string_view piece) {
    session_.checkRoom(text_.size() + piece.size());
    text_ += piece;
    return *this;
  }
  TextBuilder &append(char c) { return append(std::string_view(&c, 1)); }
  /// \p count copies of \p piece.
  TextBuilder &repeat(std::string_view piece, Int count);
  size_t size() const { return text_.size(); }
  std::string take() { return std::move(text_); }
  Value value(bool markup = false) { return session_.makeString(std::move(text_), markup); }

private:
  Session &session_;
  std::string text_;
};

} // namespace llmrt::jinja

#endif // LLMRT_TEXT_CHAT_JINJA_SESSION_H
