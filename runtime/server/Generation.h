//===- Generation.h - from a checked request to a sent answer ---------------===//
//
//   engine thread: tokens ─▶ pending events ─▶ connection's strand: Answer ─▶ bytes
//
// Events are collected while the strand is busy and written together. When the client goes, the
// sequences are cancelled.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_SERVER_GENERATION_H
#define LLMRT_SERVER_GENERATION_H

#include "runtime/server/Answer.h"
#include "runtime/server/EngineLoop.h"
#include "runtime/server/Exchange.h"
#include "runtime/server/GenerationRequest.h"
#include "runtime/server/Log.h"
#include "runtime/server/Metrics.h"
#include "runtime/text/Tokenizer.h"

#include <memory>
#include <mutex>

namespace llmrt::server {

/// What generations share; it outlives them.
struct GenerationHost {
  EngineLoop &engine;
  Metrics &metrics;
  Log &log;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<int32_t> endIds;
};

class Generation : public std::enable_shared_from_this<Generation> {
public:
  ~Generation();
  Generation(GenerationHost &host, std::shared_ptr<Exchange> exchange, GenerationRequest request,
             std::unique_ptr<Answer> answer, EngineLoop::Ticket ticket);

  /// Hands the sequences to the engine. The answer, or the error, follows.
  void start();

private:
  class Listener;
  class Text;
  using Clock = std::chrono::steady_clock;
  struct Event {
    uint32_t choice = 0;
    enum class Kind { PromptToken, Token, Finish } kind = Kind::Token;
    FinishReason reason = FinishReason::None;
    SampledToken token;
    std::string text, stopString;
    int64_t cachedTokens = 0;
    Status status;
  };

  void onAccepted(Result<std::vector<RequestId>> ids);
  void push(Event event);
  void drain();
  void fail(const ApiError &error);
  void cancel();

  GenerationHost &host_;
  const std::shared_ptr<Exchange> exchange_;
  GenerationRequest request_;
  const std::unique_ptr<Answer> answer_;
  EngineLoop::Ticket ticket_;
  std::vector<std::unique_ptr<Listener>> listeners_; ///< one a prompt

  std::mutex mutex_; ///< guards what follows
  std::vector<Event> pending_;
  bool scheduled_ = false, cancelled_ = false;
  std::vector<RequestId> ids_;

  // On the strand only.
  std::vector<Event> draining_;
  uint32_t open_ = 0; ///< choices that have not ended
  Usage usage_;
  bool failed_ = false;
};

} // namespace llmrt::server

#endif // LLMRT_SERVER_GENERATION_H
