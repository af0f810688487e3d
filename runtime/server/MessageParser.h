//===- MessageParser.h - an answer's text to content, reasoning and tool calls ===//
//
// Models write all three into one text:
//
//   <think>...</think>            reasoning (DeepSeek-R1, Qwen3, ...)
//   <tool_call>{"name": "f", "arguments": {...}}</tool_call>      Hermes, Qwen
//   <|python_tag|>{"name": "f", "parameters": {...}}; {...}       Llama 3 (the tag may be missing)
//   [TOOL_CALLS][{"name": "f", "arguments": {...}}]               Mistral
//   [TOOL_CALLS]f{...}   and   [TOOL_CALLS]f[ARGS]{...}           Mistral, later versions
//
// The text comes in pieces of any size, and the joined result does not depend on them. A tail that
// may begin a marker is held back; arguments are passed on as they come.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_SERVER_MESSAGEPARSER_H
#define LLMRT_SERVER_MESSAGEPARSER_H

#include "runtime/server/ToolCallScanner.h"

#include <string>
#include <string_view>
#include <vector>

namespace llmrt::server {

enum class ToolForm { None, Hermes, Llama, Mistral };

struct MessageForm {
  ToolForm tools = ToolForm::None;
  bool reasoning = false;       ///< <think> begins reasoning
  bool startsReasoning = false; ///< the prompt ended with <think>
  bool singleCall = false;      ///< what follows the first call is dropped
};

struct MessagePiece {
  enum class Kind { Content, Reasoning, ToolName, ToolArguments };
  Kind kind;
  std::string text; ///< ToolName begins a new call
};

class MessageParser {
public:
  explicit MessageParser(const MessageForm &form);
  void push(std::string_view text, std::vector<MessagePiece> &pieces);
  /// What was held back when no more text comes.
  void finish(std::vector<MessagePiece> &pieces);
  /// Calls that came to their end.
  size_t completeCalls() const { return completeCalls_; }
  size_t calls() const { return calls_; }

private:
  enum class State { Start, Reasoning, AfterReasoning, Content, CallName, Call, BetweenCalls };
  bool advance(std::vector<MessagePiece> &pieces, bool final);
  bool advanceStart(bool final);
  bool advanceReasoning(std::vector<MessagePiece> &pieces, bool final);
  bool advanceContent(std::vector<MessagePiece> &pieces, bool final);
  bool advanceCallName(std::vector<MessagePiece> &pieces, bool final);
  bool advanceCall(std::vector<MessagePiece> &pieces, bool final);
  bool advanceBetween(std::vector<MessagePiece> &pieces, bool final);
  std::string_view marker() const;
  void emit(MessagePiece::Kind kind, std::string_view text, std::vector<MessagePiece> &pieces);

  const MessageForm form_;
  State state_;
  std::string held_;     ///< text that was not passed on
  std::string callText_; ///< of a call whose name is not known: content, if it is no call
  ToolCallScanner scanner_;
  bool nameSent_ = false;
  size_t calls_ = 0, completeCalls_ = 0;
  bool reasoningBegun_ = false;
  bool atMessageStart_ = true; ///< no content yet
};

} // namespace llmrt::server

#endif // LLMRT_SERVER_MESSAGEPARSER_H
