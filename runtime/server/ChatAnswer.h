//===- ChatAnswer.h - what /v1/chat/completions answers ---------------------===//
#ifndef LLMRT_SERVER_CHATANSWER_H
#define LLMRT_SERVER_CHATANSWER_H

#include "runtime/server/CompletionAnswer.h"
#include "runtime/server/MessageParser.h"

namespace llmrt::server {

struct ToolCall {
  std::string id, name, arguments;
};

/// An id that no other call has.
std::string newToolCallId();

class ChatAnswer final : public Answer {
public:
  /// With \p namedTool the call was asked for by name, and an answer that is one ends with "stop".
  ChatAnswer(AnswerHead head, std::shared_ptr<const Tokenizer> tokenizer, size_t choices,
             const MessageForm &form, bool namedTool);

  bool stream() const override { return head_.stream; }
  void begin(std::string &events) override;
  void token(size_t choice, const SampledToken &token, std::string_view text, const Usage &usage,
             std::string &events) override;
  void finish(size_t choice, FinishReason reason, std::string_view text,
              std::string_view stopString, std::string &events) override;
  void end(const Usage &usage, std::string &events) override;
  std::string whole(const Usage &usage) override;

private:
  struct Choice {
    explicit Choice(const MessageForm &form) : parser(form) {}
    MessageParser parser;
    std::string content, reasoning;
    std::vector<ToolCall> calls;
    Json logprobs = nullptr; ///< entries, in order
    Json finishReason = nullptr, stopReason = nullptr;
  };
  Json chunk() const;
  Json logprobEntry(const SampledToken &token) const;
  /// Keeps a piece, and gives the delta that a stream has for it.
  Json take(Choice &choice, MessagePiece &piece) const;
  void appendDelta(size_t choice, Json delta, Json logprobs, const Usage *usage,
                   std::string &events) const;

  const AnswerHead head_;
  const std::shared_ptr<const Tokenizer> tokenizer_;
  const bool namedTool_;
  std::vector<Choice> choices_;
  std::vector<MessagePiece> pieces_;
};

} // namespace llmrt::server

#endif // LLMRT_SERVER_CHATANSWER_H
