#include "runtime/server/BlockAnswer.h"

namespace llmrt::server {

void BlockAnswer::take(std::string &events) {
  for (MessagePiece &piece : pieces_) {
    bool isCall = piece.kind == MessagePiece::Kind::ToolName;
    Block::Kind kind = piece.kind == MessagePiece::Kind::Reasoning ? Block::Kind::Reasoning
                       : piece.kind == MessagePiece::Kind::Content ? Block::Kind::Text
                                                                   : Block::Kind::Call;
    if (isCall || blocks_.empty() || blocks_.back().kind != kind) {
      if (!blocks_.empty() && head_.stream)
        close(blocks_.size() - 1, events);
      blocks_.push_back({kind, newToolCallId(), isCall ? piece.text : "", ""});
      if (head_.stream)
        open(blocks_.size() - 1, events);
    }
    if (isCall)
      continue;
    blocks_.back().text += piece.text;
    if (head_.stream)
      grow(blocks_.size() - 1, piece.text, events);
  }
  pieces_.clear();
}

void BlockAnswer::token(size_t, const SampledToken &, std::string_view text, const Usage &,
                        std::string &events) {
  parser_.push(text, pieces_);
  take(events);
}

void BlockAnswer::finish(size_t, FinishReason reason, std::string_view text,
                         std::string_view stopString, std::string &events) {
  parser_.push(text, pieces_);
  parser_.finish(pieces_);
  take(events);
  if (!blocks_.empty() && head_.stream)
    close(blocks_.size() - 1, events);
  reason_ = reason;
  stopString_ = stopString;
  called_ = reason == FinishReason::Stop && parser_.calls() > 0 &&
            parser_.calls() == parser_.completeCalls();
}

} // namespace llmrt::server
