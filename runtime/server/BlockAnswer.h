//===- BlockAnswer.h - answers that are a list of blocks --------------------===//
#ifndef LLMRT_SERVER_BLOCKANSWER_H
#define LLMRT_SERVER_BLOCKANSWER_H

#include "runtime/server/ChatAnswer.h"

namespace llmrt::server {

/// One choice, as blocks of reasoning, text and calls that follow each other: what /v1/responses
/// and /v1/messages have in common.
class BlockAnswer : public Answer {
public:
  BlockAnswer(AnswerHead head, const MessageForm &form) : head_(std::move(head)), parser_(form) {}

  bool stream() const final { return head_.stream; }
  void token(size_t choice, const SampledToken &token, std::string_view text, const Usage &usage,
             std::string &events) final;
  void finish(size_t choice, FinishReason reason, std::string_view text,
              std::string_view stopString, std::string &events) final;

protected:
  struct Block {
    enum class Kind { Reasoning, Text, Call } kind;
    std::string id;   ///< of a call: what its result names
    std::string name; ///< of a call
    std::string text; ///< of a call: its arguments
  };
  /// A block begins, grows, ends: events of a stream.
  virtual void open(size_t index, std::string &events) = 0;
  virtual void grow(size_t index, std::string_view text, std::string &events) = 0;
  virtual void close(size_t index, std::string &events) = 0;

  const AnswerHead head_;
  std::vector<Block> blocks_;
  FinishReason reason_ = FinishReason::None;
  std::string stopString_;
  bool called_ = false; ///< it ended with calls that are complete

private:
  void take(std::string &events);
  MessageParser parser_;
  std::vector<MessagePiece> pieces_;
};

} // namespace llmrt::server

#endif // LLMRT_SERVER_BLOCKANSWER_H
