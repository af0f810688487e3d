//===- ValueText.h - values as text: str(), repr(), numbers --------------------===//
#ifndef LLMRT_TEXT_CHAT_JINJA_VALUETEXT_H
#define LLMRT_TEXT_CHAT_JINJA_VALUETEXT_H

#include "runtime/text/chat/jinja/Session.h"

#include <optional>

namespace llmrt::jinja {

std::string formatInt(Int value, unsigned base = 10);
/// repr(float) of Python: the shortest digits that read back, "1e+20", "0.1", "inf".
std::string formatFloat(double value);

/// int(text, base) of Python (white space around, a sign, single underscores, 0x/0o/0b prefixes
/// where the base allows them). \p overflow is set when the number is too large for an Int.
std::optional<Int> parseInt(std::string_view text, int base, bool &overflow);
/// float(text) of Python.
std::optional<double> parseFloat(std::string_view text);

/// str(v): what `{{ v }}` prints.
void appendStr(TextBuilder &out, Session &session, const Value &v);
/// repr(v): how a value looks inside a printed list or mapping.
void appendRepr(TextBuilder &out, Session &session, const Value &v);
std::string strOf(Session &session, const Value &v);
/// The text of a string or of anything else's str(), as a string value; keeps markup.
Value toStr(Session &session, const Value &v);
/// repr of a scalar; the type's name of anything else.
std::string shortRepr(const Value &v);

/// Replaces & < > ' " by their HTML entities.
std::string escapeHtml(Session &session, std::string_view text);

/// The repr of a string; \p asciiOnly as ascii() does.
void appendQuoted(TextBuilder &out, std::string_view text, bool asciiOnly = false);

} // namespace llmrt::jinja

#endif // LLMRT_TEXT_CHAT_JINJA_VALUETEXT_H
