//===- Tests.h - value is name(...) -------------------------------------------------------===//
#ifndef LLMRT_TEXT_CHAT_JINJA_TESTS_H
#define LLMRT_TEXT_CHAT_JINJA_TESTS_H

#include "runtime/text/chat/jinja/Value.h"

namespace llmrt::jinja {

struct TestEntry {
  std::string_view name;
  bool (*body)(Evaluator &, const Value &input, Args &);
};

/// Null if there is no test of that name.
const TestEntry *findTest(std::string_view name);

} // namespace llmrt::jinja

#endif // LLMRT_TEXT_CHAT_JINJA_TESTS_H
