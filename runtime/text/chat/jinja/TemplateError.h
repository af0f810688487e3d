//===- TemplateError.h - what the template engine throws inside ---------------===//
//
// The engine's own exception. It never leaves the library: ChatTemplate::parse and
// ChatTemplate::render catch it and return a Status.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEXT_CHAT_JINJA_TEMPLATEERROR_H
#define LLMRT_TEXT_CHAT_JINJA_TEMPLATEERROR_H

#include "runtime/support/Status.h"

#include <exception>
#include <string>

namespace llmrt::jinja {

class TemplateError : public std::exception {
public:
  TemplateError(StatusCode code, int line, std::string message)
      : code_(code), line_(line), message_(std::move(message)) {}
  const char *what() const noexcept override { return message_.c_str(); }

  /// "line 3: 'foo' is undefined"; without the line where none is known.
  Status toStatus() const {
    return {code_, line_ > 0 ? "line " + std::to_string(line_) + ": " + message_ : message_};
  }

private:
  StatusCode code_;
  int line_;
  std::string message_;
};

} // namespace llmrt::jinja

#endif // LLMRT_TEXT_CHAT_JINJA_TEMPLATEERROR_H
