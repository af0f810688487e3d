#include "runtime/server/Generation.h"

#include "runtime/text/TextStream.h"

namespace llmrt::server {

/// Hears of the answers to one prompt, on the engine's thread.
class Generation::Listener final : public RequestListener {
public:
  Listener(Generation &owner, uint32_t firstChoice, uint32_t choices)
      : owner_(owner), firstChoice_(firstChoice), last_(choices) {}

  bool onToken(const TokenEvent &event) override {
    auto now = Clock::now();
    Clock::time_point &last = last_[static_cast<size_t>(event.choice)];
    std::chrono::duration<double> since =
        now - (event.index == 0 ? owner_.exchange_->request().arrival : last);
    (event.index == 0 ? owner_.host_.metrics.timeToFirstToken
                      : owner_.host_.metrics.interTokenLatency)
        .Observe(since.count());
    last = now;
    owner_.host_.metrics.generationTokens.Increment();
    Event passed;
    passed.choice = firstChoice_ + static_cast<uint32_t>(event.choice);
    passed.token = event.token;
    passed.text = event.text;
    owner_.push(std::move(passed));
    return true;
  }
  void onPromptToken(int64_t, const SampledToken &token) override {
    Event passed;
    passed.kind = Event::Kind::PromptToken;
    passed.choice = firstChoice_;
    passed.token = token;
    owner_.push(std::move(passed));
  }
  void onFinish(const FinishEvent &event) override {
    auto arrival = owner_.exchange_->request().arrival;
    std::chrono::duration<double> since = Clock::now() - arrival;
    owner_.host_.metrics.requestLatency.Observe(since.count());
    owner_.host_.metrics.requestFinished(event.reason);
    if (event.choice == 0 && event.stats.started != Clock::time_point())
      owner_.host_.metrics.queueTime.Observe(
          std::chrono::duration<double>(event.stats.started - arrival).count());
    Event passed;
    passed.choice = firstChoice_ + static_cast<uint32_t>(event.choice);
    passed.kind = Event::Kind::Finish;
    passed.reason = event.reason;
    passed.text = event.text;
    passed.stopString = event.stopString;
    passed.cachedTokens = event.choice == 0 ? event.stats.cachedTokens : 0;
    passed.status = event.status;
    owner_.push(std::move(passed));
  }

private:
  Generation &owner_;
  const uint32_t firstChoice_;
  std::vector<Clock::time_point> last_; ///< of each choice's tokens
};

/// The text of one sequence. The engine owns it as long as it may call the listener, so it keeps
/// the generation alive.
class Generation::Text final : public TextSink {
public:
  Text(std::shared_ptr<Generation> owner, std::vector<std::string> stops)
      : owner_(std::move(owner)), stops_(stops),
        stream_(owner_->host_.tokenizer,
                TextStreamOptions{.skipSpecial = owner_->request_.skipSpecial,
                                  .stops = std::move(stops)}) {}

  Result<Piece> push(int32_t id) override {
    text_ = stream_.push(id);
    Piece piece;
    piece.stopped = stream_.stopped();
    if (std::optional<size_t> index = stream_.stopIndex()) {
      piece.stopString = stops_[*index];
      if (owner_->request_.includeStop)
        text_ += stops_[*index];
    }
    piece.text = text_;
    return piece;
  }
  Result<std::string_view> finish() override {
    text_ = stream_.finish();
    return std::string_view(text_);
  }

private:
  std::shared_ptr<Generation> owner_;
  std::vector<std::string> stops_;
  TextStream stream_;
  std::string text_;
};

Generation::Generation(GenerationHost &host, std::shared_ptr<Exchange> exchange,
                       GenerationRequest request, std::unique_ptr<Answer> answer,
                       EngineLoop::Ticket ticket)
    : host_(host), exchange_(std::move(exchange)), request_(std::move(request)),
      answer_(std::move(answer)), ticket_(std::move(ticket)) {}

Generation::~Generation() = default;

void Generation::start() {
  std::vector<RequestOptions> list;
  auto makeText = [&] { return std::make_unique<Text>(shared_from_this(), request_.stops); };
  for (std::vector<int32_t> &prompt : request_.prompts) {
    usage_.promptTokens += static_cast<int64_t>(prompt.size());
    RequestOptions options;
    options.prompt = std::move(prompt);
    options.sampling = request_.sampling;
    options.maxNewTokens = request_.maxNewTokens;
    options.endIds = host_.endIds;
    options.ignoreEnd = request_.ignoreEnd;
    options.stopIds = request_.stopIds;
    options.choices = static_cast<int32_t>(request_.choices);
    options.beams = request_.beams;
    options.promptLogprobs = request_.promptLogprobs;
    options.grammar = request_.grammar;
    options.vocabularyTrie = request_.vocabularyTrie;
    options.priority = request_.priority;
    options.cacheSalt = request_.cacheSalt;
    if (request_.timeout)
      options.deadline =
          exchange_->request().arrival + std::chrono::duration_cast<Clock::duration>(
                                             std::chrono::duration<double>(*request_.timeout));
    options.text = makeText();
    for (uint32_t n = 1; n < request_.choices; ++n)
      options.moreTexts.push_back(makeText());
    listeners_.push_back(std::make_unique<Listener>(*this, open_, request_.choices));
    open_ += request_.choices;
    options.listener = listeners_.back().get();
    list.push_back(std::move(options));
  }
  exchange_->onDisconnect([weak = weak_from_this()] {
    auto self = weak.lock();
    if (!self)
      return;
    self->cancel();
    self->host_.log.info("client disconnected", {{"request_id", self->exchange_->request().id}});
  });
  host_.engine.submit(std::move(list),
                      [self = shared_from_this()](Result<std::vector<RequestId>> ids) {
                        self->onAccepted(std::move(ids));
                      });
}

void Generation::onAccepted(Result<std::vector<RequestId>> ids) {
  if (!ids) {
    ticket_.release();
    ApiError error = fromStatus(ids.status(), request_.promptField);
    if (ids.status().code() == StatusCode::Cancelled)
      error = {503, ids.status().message(), "server_error", "", "stopping", 5};
    else if (error.status == 400)
      error.code = "context_length_exceeded";
    exchange_->post([self = shared_from_this(), error] {
      self->failed_ = true;
      self->exchange_->respond(error);
    });
    return;
  }
  host_.metrics.promptTokens.Increment(static_cast<double>(usage_.promptTokens));
  bool gone = false;
  {
    std::lock_guard lock(mutex_);
    ids_ = *ids;
    gone = cancelled_;
  }
  if (gone)
    return host_.engine.cancel(*ids);
  if (!answer_->stream())
    return;
  exchange_->post([self = shared_from_this()] {
    self->exchange_->startStream();
    std::string events;
    self->answer_->begin(events);
    self->exchange_->write(std::move(events));
  });
}

void Generation::cancel() {
  std::vector<RequestId> ids;
  {
    std::lock_guard lock(mutex_);
    cancelled_ = true;
    ids = ids_;
  }
  if (!ids.empty())
    host_.engine.cancel(ids);
}

void Generation::push(Event event) {
  {
    std::lock_guard lock(mutex_);
    pending_.push_back(std::move(event));
    if (scheduled_)
      return;
    scheduled_ = true;
  }
  exchange_->post([self = shared_from_this()] { self->drain(); });
}

void Generation::drain() {
  draining_.clear();
  bool gone = false;
  {
    std::lock_guard lock(mutex_);
    draining_.swap(pending_);
    scheduled_ = false;
    gone = cancelled_;
  }
  if (failed_ || gone)
    return;
  std::string events;
  for (const Event &event : draining_) {
    if (event.kind == Event::Kind::PromptToken) {
      answer_->promptToken(event.choice, event.token);
      continue;
    }
    if (event.kind == Event::Kind::Token) {
      ++usage_.completionTokens;
      answer_->token(event.choice, event.token, event.text, usage_, events);
      continue;
    }
    if (event.reason == FinishReason::Error)
      return fail(fromStatus(event.status));
    if (event.reason == FinishReason::Cancelled)
      return fail({503, "the server is stopping", "server_error", "", "stopping", 5});
    usage_.cachedTokens += event.cachedTokens;
    answer_->finish(event.choice, event.reason, event.text, event.stopString, events);
    --open_;
  }
  if (open_ == 0) {
    ticket_.release();
    if (answer_->stream()) {
      answer_->end(usage_, events);
      exchange_->write(std::move(events));
      exchange_->endStream();
    } else {
      exchange_->respond(HttpResponse{200, "application/json", answer_->whole(usage_)});
    }
    std::chrono::duration<double> seconds = Clock::now() - exchange_->request().arrival;
    host_.log.info("answered", {{"request_id", exchange_->request().id},
                                {"path", exchange_->request().path},
                                {"prompt_tokens", usage_.promptTokens},
                                {"completion_tokens", usage_.completionTokens},
                                {"seconds", seconds.count()}});
  } else if (answer_->stream()) {
    exchange_->write(std::move(events));
  }
}

void Generation::fail(const ApiError &error) {
  failed_ = true;
  ticket_.release();
  cancel();
  host_.log.error("request failed",
                  {{"request_id", exchange_->request().id}, {"message", error.message}});
  if (!answer_->stream())
    return exchange_->respond(error);
  std::string events;
  answer_->error(error, events);
  exchange_->write(std::move(events));
  exchange_->endStream();
}

} // namespace llmrt::server
