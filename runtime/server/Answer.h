//===- Answer.h - tokens to the JSON of an endpoint -------------------------===//
#ifndef LLMRT_SERVER_ANSWER_H
#define LLMRT_SERVER_ANSWER_H

#include "runtime/engine/Request.h"
#include "runtime/server/ApiError.h"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace llmrt::server {

struct Usage {
  int64_t promptTokens = 0, completionTokens = 0, cachedTokens = 0;
};

/// The form of one endpoint's answers, streamed or whole. Both come from the same calls, so that a
/// stream joined is the whole. Events are appended to \p events in wire form; a whole answer
/// ignores it.
class Answer {
public:
  virtual ~Answer() = default;
  virtual bool stream() const = 0;
  virtual void begin(std::string &events) = 0;
  /// The next token of a prompt, from its second on, before all tokens of its choices, of which
  /// \p choice is the first. Only where prompt logprobs were asked for.
  virtual void promptToken(size_t choice, const SampledToken &token) {}
  /// \p text is what may be shown now; it need not be that of \p token alone.
  virtual void token(size_t choice, const SampledToken &token, std::string_view text,
                     const Usage &usage, std::string &events) = 0;
  /// The end of a choice, with what was held back.
  virtual void finish(size_t choice, FinishReason reason, std::string_view text,
                      std::string_view stopString, std::string &events) = 0;
  /// After the last choice.
  virtual void end(const Usage &usage, std::string &events) = 0;
  virtual std::string whole(const Usage &usage) = 0;
  /// A failure after the stream has begun.
  virtual void error(const ApiError &error, std::string &events);
};

using Json = nlohmann::ordered_json;

/// One line of JSON; ill-formed text becomes U+FFFD.
std::string dump(const Json &json);
/// `data: {...}` and an empty line.
void appendEvent(std::string &events, const Json &json);
/// With a line `event: NAME` before it.
void appendEvent(std::string &events, std::string_view name, const Json &json);

} // namespace llmrt::server

#endif // LLMRT_SERVER_ANSWER_H
