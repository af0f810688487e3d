#include "runtime/engine/SelfTest.h"

#include "runtime/engine/CpuEngine.h"
#include "runtime/plan/Xxh64.h"

#include <algorithm>
#include <string>
#include <vector>

namespace llmrt {
namespace {

class Recorder final : public RequestListener {
public:
  explicit Recorder(std::span<int32_t> tokens) : tokens_(tokens) {}
  bool onToken(const TokenEvent &event) override {
    if (count_ < tokens_.size())
      tokens_[count_++] = event.token.id;
    return true;
  }
  void onFinish(const FinishEvent &event) override { failure_ = event.status; }
  void onPromptLogits(int64_t, std::span<const float> logits, int64_t) override {
    hash_.update(logits.data(), logits.size_bytes());
  }
  Status status() const {
    LLMRT_RETURN_IF_ERROR(failure_);
    return count_ == tokens_.size()
               ? Status::ok()
               : internalError("the self-test ended after " + std::to_string(count_) + " tokens");
  }
  uint64_t fingerprint() { return hash_.digest(); }

private:
  std::span<int32_t> tokens_;
  size_t count_ = 0;
  Xxh64 hash_;
  Status failure_;
};

std::string listed(std::span<const int32_t> tokens) {
  std::string text;
  for (int32_t token : tokens)
    text += (text.empty() ? "" : ",") + std::to_string(token);
  return text;
}

std::string hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

} // namespace

Status runSelfTest(std::shared_ptr<const Plan> plan, std::span<const int32_t> prompt,
                   std::span<int32_t> tokens, uint64_t &fingerprint) {
  const fbs::Limits &limits = *plan->head().limits();
  CpuEngineOptions options;
  options.kvTokens = static_cast<int64_t>(prompt.size() + tokens.size());
  options.promptLogits = true;
  options.maxBatchedTokens = std::min<int64_t>(
      {static_cast<int64_t>(prompt.size()), limits.max_tokens(), limits.max_rows()});
  LLMRT_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, createCpuEngine(plan, options));
  Recorder recorder(tokens);
  RequestOptions request;
  request.prompt.assign(prompt.begin(), prompt.end());
  request.sampling.temperature = 0;
  request.maxNewTokens = static_cast<int64_t>(tokens.size());
  request.ignoreEnd = true;
  request.promptLogits = true;
  request.listener = &recorder;
  LLMRT_ASSIGN_OR_RETURN([[maybe_unused]] RequestId id, engine->add(std::move(request)));
  while (engine->busy())
    LLMRT_RETURN_IF_ERROR(engine->step());
  LLMRT_RETURN_IF_ERROR(recorder.status());
  fingerprint = recorder.fingerprint();
  return Status::ok();
}

Status checkSelfTest(std::shared_ptr<const Plan> plan) {
  const fbs::SelfTest *test = plan->head().self_test();
  if (!test || !test->tokens())
    return unsupported("the plan has no self-test");
  const std::span<const int32_t> prompt(test->prompt()->data(), test->prompt()->size());
  const std::span<const int32_t> expected(test->tokens()->data(), test->tokens()->size());
  std::vector<int32_t> tokens(expected.size());
  uint64_t fingerprint = 0;
  LLMRT_RETURN_IF_ERROR(runSelfTest(plan, prompt, tokens, fingerprint));
  if (!std::ranges::equal(tokens, expected))
    return internalError("self-test: this machine generates " + listed(tokens) +
                         " where the plan records " + listed(expected));
  if (fingerprint != test->logits_fingerprint())
    return internalError("self-test: the logits of the prompt have fingerprint " +
                         hex(fingerprint) + " on this machine, the plan records " +
                         hex(test->logits_fingerprint()));
  return Status::ok();
}

} // namespace llmrt
