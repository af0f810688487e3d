#include "runtime/engine/StreamSink.h"

namespace llmrt {

Result<std::unique_ptr<StreamSink>> StreamSink::create(std::shared_ptr<const Tokenizer> tokenizer,
                                                       std::vector<std::string> stopStrings) {
  for (const std::string &stop : stopStrings)
    if (stop.empty())
      return invalidArgument("a stop string is empty; it would end every answer at once");
  return std::unique_ptr<StreamSink>(new StreamSink(std::move(tokenizer), std::move(stopStrings)));
}

Result<TextSink::Piece> StreamSink::push(int32_t id) {
  text_ = stream_.push(id);
  Piece piece;
  piece.text = text_;
  piece.stopped = stream_.stopped();
  if (std::optional<size_t> index = stream_.stopIndex())
    piece.stopString = stops_[*index];
  return piece;
}

Result<std::string_view> StreamSink::finish() {
  text_ = stream_.finish();
  return std::string_view(text_);
}

} // namespace llmrt
