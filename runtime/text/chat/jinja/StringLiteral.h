//===- StringLiteral.h - escapes in string literals -----------------------------===//
#ifndef LLMRT_TEXT_CHAT_JINJA_STRINGLITERAL_H
#define LLMRT_TEXT_CHAT_JINJA_STRINGLITERAL_H

#include <optional>
#include <string>
#include <string_view>

namespace llmrt::jinja {

/// The value of a literal whose body, between the quotes, is \p body: Python's escapes \n \t \xhh
/// \uhhhh \Uhhhhhhhh and octal ones; an unknown escape keeps its backslash. On failure returns
/// nothing and says why in \p error.
std::optional<std::string> unescapeLiteral(std::string_view body, std::string &error);

} // namespace llmrt::jinja

#endif // LLMRT_TEXT_CHAT_JINJA_STRINGLITERAL_H
