//===- Json.h - JSON into values and values into JSON -------------------------------------===//
#ifndef LLMRT_TEXT_CHAT_JINJA_JSON_H
#define LLMRT_TEXT_CHAT_JINJA_JSON_H

#include "runtime/text/chat/jinja/Session.h"

#include <nlohmann/json_fwd.hpp>

namespace llmrt::jinja {

/// The arguments of json.dumps.
struct JsonStyle {
  bool ensureAscii = false;
  bool sortKeys = false;
  std::string itemSeparator = ", ";
  std::string keySeparator = ": ";
  std::optional<std::string> indent;
};

/// Appends \p v as Python's json.dumps writes it. Fails for what JSON can't hold.
void appendJson(TextBuilder &out, Session &session, const Value &v, const JsonStyle &style);

/// A value of the context. Its strings are not charged to the session, as they are the caller's.
/// Fails if it nests too deeply.
Value fromJson(Session &session, const nlohmann::ordered_json &json);

/// Whether arrays and objects nest more than \p levels deep. Takes no stack, unlike most of what
/// one can do with such JSON, copies included.
bool nestsDeeperThan(const nlohmann::ordered_json &json, size_t levels);

/// Bytes of text in \p json, roughly.
size_t textSize(const nlohmann::ordered_json &json);

} // namespace llmrt::jinja

#endif // LLMRT_TEXT_CHAT_JINJA_JSON_H
