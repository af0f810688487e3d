#include "runtime/server/MessageParser.h"

#include <algorithm>
#include <utility>

namespace llmrt::server {
namespace {

using Kind = MessagePiece::Kind;
constexpr std::string_view thinkOpen = "<think>", thinkClose = "</think>";
constexpr std::string_view spaces = " \n\r\t";

/// The length of the longest end of \p text that begins \p marker and is not all of it.
size_t partialMarker(std::string_view text, std::string_view marker) {
  for (size_t length = std::min(text.size(), marker.size() - 1); length > 0; --length)
    if (text.substr(text.size() - length) == marker.substr(0, length))
      return length;
  return 0;
}

} // namespace

MessageParser::MessageParser(const MessageForm &form)
    : form_(form), state_(form.startsReasoning ? State::Reasoning : State::Start) {}

std::string_view MessageParser::marker() const {
  switch (form_.tools) {
  case ToolForm::Hermes:
    return "<tool_call>";
  case ToolForm::Llama:
    return "<|python_tag|>";
  case ToolForm::Mistral:
    return "[TOOL_CALLS]";
  case ToolForm::None:
    break;
  }
  return {};
}

void MessageParser::emit(Kind kind, std::string_view text, std::vector<MessagePiece> &pieces) {
  if (text.empty() && kind != Kind::ToolName)
    return;
  if (kind == Kind::Content)
    atMessageStart_ = false;
  if (!pieces.empty() && pieces.back().kind == kind && kind != Kind::ToolName)
    pieces.back().text += text;
  else
    pieces.push_back({kind, std::string(text)});
}

void MessageParser::push(std::string_view text, std::vector<MessagePiece> &pieces) {
  held_ += text;
  while (advance(pieces, false)) {
  }
}

void MessageParser::finish(std::vector<MessagePiece> &pieces) {
  while (advance(pieces, true)) {
  }
}

/// One move of the state machine; false if it needs more text.
bool MessageParser::advance(std::vector<MessagePiece> &pieces, bool final) {
  switch (state_) {
  case State::Start:
    return advanceStart(final);
  case State::Reasoning:
    return advanceReasoning(pieces, final);
  case State::AfterReasoning:
    held_.erase(0, std::min(held_.find_first_not_of("\n"), held_.size()));
    if (held_.empty())
      return false;
    state_ = State::Content;
    return true;
  case State::Content:
    return advanceContent(pieces, final);
  case State::CallName:
    return advanceCallName(pieces, final);
  case State::Call:
    return advanceCall(pieces, final);
  case State::BetweenCalls:
    return advanceBetween(pieces, final);
  }
  return false;
}

/// Reasoning begins an answer or never.
bool MessageParser::advanceStart(bool final) {
  if (!form_.reasoning) {
    state_ = State::Content;
    return true;
  }
  size_t begin = std::min(held_.find_first_not_of(spaces), held_.size());
  std::string_view text = std::string_view(held_).substr(begin);
  if (text.substr(0, thinkOpen.size()) == thinkOpen) {
    held_.erase(0, begin + thinkOpen.size());
    state_ = State::Reasoning;
    return true;
  }
  if (!final && thinkOpen.substr(0, text.size()) == text)
    return false; // may become the marker
  state_ = State::Content;
  return !held_.empty();
}

bool MessageParser::advanceReasoning(std::vector<MessagePiece> &pieces, bool final) {
  if (!reasoningBegun_) // newlines behind <think>
    held_.erase(0, std::min(held_.find_first_not_of("\n"), held_.size()));
  if (held_.empty())
    return false;
  reasoningBegun_ = true;
  size_t close = held_.find(thinkClose);
  if (close != std::string::npos) {
    std::string_view text = std::string_view(held_).substr(0, close);
    size_t last = text.find_last_not_of("\n");
    emit(Kind::Reasoning, text.substr(0, last == text.npos ? 0 : last + 1), pieces);
    held_.erase(0, close + thinkClose.size());
    state_ = State::AfterReasoning;
    return true;
  }
  // Newlines before the marker belong to it: keep them back.
  size_t safe = final ? held_.size() : held_.size() - partialMarker(held_, thinkClose);
  if (!final) {
    size_t last = std::string_view(held_).substr(0, safe).find_last_not_of("\n");
    safe = last == std::string::npos ? 0 : last + 1;
  }
  emit(Kind::Reasoning, std::string_view(held_).substr(0, safe), pieces);
  held_.erase(0, safe);
  return false;
}

bool MessageParser::advanceContent(std::vector<MessagePiece> &pieces, bool final) {
  if (form_.tools == ToolForm::None) {
    emit(Kind::Content, held_, pieces);
    held_.clear();
    return false;
  }
  size_t at = held_.find(marker());
  size_t first = held_.find_first_not_of(spaces);
  // Llama's calls may come without the tag, as the whole message.
  bool bareObject = form_.tools == ToolForm::Llama && atMessageStart_ &&
                    first != std::string::npos && held_[first] == '{' && calls_ == 0 &&
                    at == std::string::npos;
  if (bareObject || at != std::string::npos) {
    size_t length = bareObject ? first : at;
    std::string_view before = std::string_view(held_).substr(0, length);
    size_t last = before.find_last_not_of(spaces);
    emit(Kind::Content, before.substr(0, last == before.npos ? 0 : last + 1), pieces);
    callText_ = held_.substr(last == before.npos ? 0 : last + 1,
                             length - (last == before.npos ? 0 : last + 1));
    if (!bareObject) {
      callText_ += marker();
      length += marker().size();
    }
    held_.erase(0, length);
    nameSent_ = false;
    scanner_.reset(false);
    state_ = form_.tools == ToolForm::Mistral ? State::CallName : State::Call;
    return true;
  }
  size_t safe = held_.size();
  if (!final) {
    safe -= partialMarker(held_, marker());
    // Space before a call is dropped.
    size_t last = std::string_view(held_).substr(0, safe).find_last_not_of(spaces);
    safe = last == std::string::npos ? 0 : last + 1;
  }
  emit(Kind::Content, std::string_view(held_).substr(0, safe), pieces);
  held_.erase(0, safe);
  return false;
}

/// Mistral: after [TOOL_CALLS] an array of objects, or a name with its arguments behind.
bool MessageParser::advanceCallName(std::vector<MessagePiece> &pieces, bool final) {
  size_t first = held_.find_first_not_of(spaces);
  if (first == std::string::npos) {
    if (final) {
      emit(Kind::Content, callText_ + held_, pieces);
      held_.clear();
    }
    return false;
  }
  if (held_[first] == '[' || held_[first] == '{') {
    size_t skipped = first + (held_[first] == '[' ? 1 : 0);
    callText_ += held_.substr(0, skipped);
    held_.erase(0, skipped);
    state_ = State::Call;
    return true;
  }
  size_t brace = held_.find('{');
  if (brace == std::string::npos) {
    if (final) {
      emit(Kind::Content, callText_ + held_, pieces);
      held_.clear();
    }
    return false;
  }
  std::string name = held_.substr(first, brace - first);
  if (size_t arguments = name.find("[ARGS]"); arguments != std::string::npos)
    name.resize(arguments);
  if (size_t id = name.find("[CALL_ID]"); id != std::string::npos)
    name.resize(id);
  name.resize(name.find_last_not_of(spaces) + 1);
  held_.erase(0, brace);
  callText_.clear();
  ++calls_;
  nameSent_ = true;
  emit(Kind::ToolName, name, pieces);
  scanner_.reset(true);
  state_ = State::Call;
  return true;
}

bool MessageParser::advanceCall(std::vector<MessagePiece> &pieces, bool final) {
  if (held_.empty() && !final)
    return false;
  size_t used = 0;
  ToolCallScanner::Status status = scanner_.push(held_, used);
  if (!nameSent_)
    callText_ += held_.substr(0, used);
  held_.erase(0, used);
  if (scanner_.name() && !nameSent_) {
    nameSent_ = true;
    ++calls_;
    callText_.clear();
    emit(Kind::ToolName, *scanner_.name(), pieces);
  }
  if (nameSent_)
    emit(Kind::ToolArguments, scanner_.takeArguments(), pieces);
  if (status == ToolCallScanner::Status::Done && nameSent_) {
    if (!scanner_.hasArguments())
      emit(Kind::ToolArguments, "{}", pieces);
    ++completeCalls_;
    state_ = State::BetweenCalls;
    return true;
  }
  bool noCall = status != ToolCallScanner::Status::Open || (final && held_.empty());
  if (!noCall)
    return false;
  // No call after all: what was kept back is content, and so is the rest.
  emit(Kind::Content, std::exchange(callText_, {}), pieces);
  state_ = State::Content;
  return !held_.empty();
}

/// What stands between calls is dropped; text after the last one is content.
bool MessageParser::advanceBetween(std::vector<MessagePiece> &pieces, bool final) {
  if (form_.singleCall) {
    held_.clear();
    return false;
  }
  constexpr std::string_view close = "</tool_call>";
  std::string_view skipped = form_.tools == ToolForm::Mistral ? " \n\r\t,]"
                             : form_.tools == ToolForm::Llama ? " \n\r\t;"
                                                              : spaces;
  held_.erase(0, std::min(held_.find_first_not_of(skipped), held_.size()));
  if (held_.empty())
    return false;
  std::string_view text = held_;
  if (form_.tools == ToolForm::Hermes) {
    if (text.substr(0, close.size()) == close) {
      held_.erase(0, close.size());
      return true;
    }
    if (!final && close.substr(0, text.size()) == text)
      return false;
  }
  if (text.front() == '{' && form_.tools != ToolForm::Hermes) {
    nameSent_ = false;
    callText_.clear();
    scanner_.reset(false);
    state_ = State::Call;
    return true;
  }
  state_ = State::Content;
  return true;
}

} // namespace llmrt::server
