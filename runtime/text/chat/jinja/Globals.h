//===- Globals.h - the functions that every template has ------------------------------------===//
#ifndef LLMRT_TEXT_CHAT_JINJA_GLOBALS_H
#define LLMRT_TEXT_CHAT_JINJA_GLOBALS_H

namespace llmrt::jinja {

class Evaluator;

/// Jinja's range, dict, namespace, cycler and joiner; Hugging Face's raise_exception and
/// strftime_now. Variables of the context hide them.
void defineGlobals(Evaluator &evaluator);

/// The longest range(), as in Jinja's sandbox.
inline constexpr int maxRange = 100'000;

} // namespace llmrt::jinja

#endif // LLMRT_TEXT_CHAT_JINJA_GLOBALS_H
