//===- StreamSink.h - a request's text through a TextStream -----------------===//
#ifndef LLMRT_ENGINE_STREAMSINK_H
#define LLMRT_ENGINE_STREAMSINK_H

#include "runtime/engine/Request.h"
#include "runtime/text/TextStream.h"

#include <memory>
#include <string>
#include <vector>

namespace llmrt {

class StreamSink final : public TextSink {
public:
  /// An error for an empty stop string, which would match everywhere.
  static Result<std::unique_ptr<StreamSink>> create(std::shared_ptr<const Tokenizer> tokenizer,
                                                    std::vector<std::string> stopStrings);

  Result<Piece> push(int32_t id) override;
  Result<std::string_view> finish() override;

private:
  StreamSink(std::shared_ptr<const Tokenizer> tokenizer, std::vector<std::string> stopStrings)
      : stops_(stopStrings),
        stream_(std::move(tokenizer), TextStreamOptions{.stops = std::move(stopStrings)}) {}
  std::vector<std::string> stops_;
  TextStream stream_;
  std::string text_;
};

} // namespace llmrt

#endif // LLMRT_ENGINE_STREAMSINK_H
