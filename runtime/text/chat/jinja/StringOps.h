//===- StringOps.h - what string methods and filters share ----------------------------===//
#ifndef LLMRT_TEXT_CHAT_JINJA_STRINGOPS_H
#define LLMRT_TEXT_CHAT_JINJA_STRINGOPS_H

#include "runtime/text/chat/jinja/Session.h"

namespace llmrt::jinja {

/// str.isupper() or str.islower(): there is a letter with case, and all of them have that one.
bool hasCase(std::string_view text, bool upper);

/// The parts of \p text between separators (white space if null), at most \p most cuts (all if
/// negative), from the left or the right end; in order.
void splitText(Session &session, std::string_view text, const std::string *separator, Int most,
               bool fromRight, const std::function<void(std::string_view)> &part);

/// str.replace(); at most \p count times, or all if negative.
std::string replaceText(Session &session, std::string_view text, std::string_view what,
                        std::string_view by, Int count);

/// The last place of \p what; charges what the search costs.
size_t findLast(Session &session, std::string_view text, std::string_view what);

/// str.center(), which puts an odd blank where CPython does.
std::string centerText(Session &session, std::string_view text, Int width, std::string_view fill);

} // namespace llmrt::jinja

#endif // LLMRT_TEXT_CHAT_JINJA_STRINGOPS_H
