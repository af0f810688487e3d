// llmrt_parrot_server PLAN NAME=VALUE...: a server over the scripted model of the engine's tests.
//
// The plan gives tokenizer and chat template. The model answers with what stands between the last
// "[[" and "]]" of the prompt, token by token, and ends; without such a place, with ever the same
// word. Names: sequences, queue, context, delay (milliseconds a step), hang (a step that never
// ends), key, tools, reasoning, request_timeout, step_timeout, body, ping.
#include "runtime/server/Server.h"
#include "test/unit/engine/ScriptedExecutor.h"

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>

using namespace llmrt;

namespace {

/// A step that takes a while, or for ever.
class SlowExecutor final : public StepExecutor {
public:
  SlowExecutor(std::unique_ptr<StepExecutor> inner, int64_t milliseconds, int64_t hangAt)
      : inner_(std::move(inner)), milliseconds_(milliseconds), hangAt_(hangAt) {}
  const ModelShape &shape() const override { return inner_->shape(); }
  Status createKvPool(int64_t blocks, int64_t blockTokens) override {
    return inner_->createKvPool(blocks, blockTokens);
  }
  void clearKvBlock(int32_t block, uint32_t group) override { inner_->clearKvBlock(block, group); }
  Status copyKvBlock(int32_t from, int32_t to, uint32_t group) override {
    return inner_->copyKvBlock(from, to, group);
  }
  Status execute(LlmrtStep &step) override {
    if (++steps_ == hangAt_)
      std::this_thread::sleep_for(std::chrono::hours(1));
    if (milliseconds_ > 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds_));
    return inner_->execute(step);
  }
  const float *logits() const override { return inner_->logits(); }

private:
  std::unique_ptr<StepExecutor> inner_;
  const int64_t milliseconds_, hangAt_;
  int64_t steps_ = 0;
};

/// The token after \p context: the next one of the text in brackets.
int32_t parrot(const Tokenizer &tokenizer, const std::vector<int32_t> &context) {
  Result<std::string> text = tokenizer.decode(context, {.skipSpecial = false});
  size_t close = text ? text->rfind("]]") : std::string::npos;
  size_t open = close == std::string::npos ? close : text->rfind("[[", close);
  if (open == std::string::npos)
    return tokenizer.encode("a", {.parseSpecial = false, .addSpecial = false}).operator*().back();
  std::string wanted = text->substr(open + 2, close - open - 2);
  Result<std::vector<int32_t>> ids =
      tokenizer.encode(wanted, {.parseSpecial = true, .addSpecial = false});
  // So many tokens of it stand at the end already.
  size_t said = std::min(ids->size(), context.size());
  while (said > 0 &&
         !std::equal(ids->begin(), ids->begin() + long(said), context.end() - long(said)))
    --said;
  return said < ids->size() ? (*ids)[said] : tokenizer.eosId().value_or(0);
}

} // namespace

int main(int argc, char **argv) {
  std::map<std::string, std::string> values;
  for (int i = 2; i < argc; ++i) {
    std::string text = argv[i];
    size_t at = text.find('=');
    values[text.substr(0, at)] = at == std::string::npos ? "" : text.substr(at + 1);
  }
  auto number = [&](const char *name, int64_t otherwise) {
    return values.count(name) ? std::atoll(values[name].c_str()) : otherwise;
  };
  server::ServerOptions options;
  options.port = 0;
  options.servedNames = {"parrot", "other/name"};
  options.maxQueuedRequests = uint32_t(number("queue", 256));
  options.requestTimeout = unsigned(number("request_timeout", 60));
  options.stepTimeout = unsigned(number("step_timeout", 60));
  options.pingInterval = unsigned(number("ping", 15));
  options.maxBodyBytes = uint64_t(number("body", 32 << 20));
  options.toolCallParser = values.count("tools") ? values["tools"] : "auto";
  options.reasoningParser = values.count("reasoning") ? values["reasoning"] : "auto";
  options.allowedOrigins = {"http://page.example"};
  if (values.count("key"))
    options.apiKeys = {values["key"]};

  server::Log log(std::cerr, server::Log::Level::Info, false);
  Status status = server::Server::run(options, log, [&]() -> Result<server::LoadedModel> {
    server::LoadedModel loaded;
    LLMRT_ASSIGN_OR_RETURN(loaded.model, Model::open(argc > 1 ? argv[1] : ""));
    LLMRT_ASSIGN_OR_RETURN(auto tokenizer, loaded.model->tokenizer());
    ModelShape shape;
    shape.vocabulary = int32_t(loaded.model->plan()->head().model()->vocab_size());
    shape.maxContext = number("context", 4096);
    shape.maxTokens = 512;
    shape.maxSequences = 64;
    shape.maxRows = 512;
    shape.queryTile = 64;
    shape.kvBytesPerToken = 4;
    EngineLimits limits;
    limits.maxSequences = number("sequences", 16);
    limits.maxRows = limits.maxSequences;
    limits.kvBlocks = limits.maxSequences * (shape.maxContext / limits.blockTokens + 1);
    LLMRT_ASSIGN_OR_RETURN(limits.sampledVocabulary, loaded.model->sampledVocabulary());
    auto scripted =
        std::make_unique<ScriptedExecutor>(shape, [tokenizer](const std::vector<int32_t> &context) {
          return parrot(*tokenizer, context);
        });
    LLMRT_ASSIGN_OR_RETURN(
        loaded.engine,
        Engine::create(std::make_unique<SlowExecutor>(std::move(scripted), number("delay", 0),
                                                      number("hang", -1)),
                       limits));
    loaded.description = "scripted";
    return loaded;
  });
  if (!status)
    std::cerr << "error: " << status.message() << std::endl;
  return status ? 0 : 1;
}
