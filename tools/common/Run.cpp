#include "tools/common/Run.h"

#include "runtime/decode/grammar/Grammar.h"
#include "runtime/engine/DeviceEngine.h"
#include "runtime/engine/Model.h"
#include "runtime/engine/SetSpeculation.h"
#include "runtime/engine/StreamSink.h"
#include "tools/common/Npy.h"
#include "tools/common/RunGraph.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

namespace llmc::tools {

using namespace llmrt;
using Clock = std::chrono::steady_clock;

namespace {

double milliseconds(Clock::duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}
/// 0 where nothing was timed.
double perSecond(int64_t n, Clock::duration d) {
  double seconds = std::chrono::duration<double>(d).count();
  return n > 0 && seconds > 0 ? static_cast<double>(n) / seconds : 0;
}

/// Takes the one request's events: shows text at once, keeps the rest for the end.
class RunListener final : public RequestListener {
public:
  RunListener(std::ostream *stream, bool showIds) : stream_(stream), showIds_(showIds) {}

  bool onToken(const TokenEvent &event) override {
    last = Clock::now();
    if (ids.empty())
      first = last;
    ids.push_back(event.token.id);
    if (keepLogprobs)
      tokens.push_back(event.token);
    if (stream_ && showIds_)
      *stream_ << (ids.size() > 1 ? " " : "") << event.token.id << std::flush;
    show(event.text);
    // Nobody reads any more (`| head`): stop working.
    return !stream_ || stream_->good();
  }
  void onFinish(const FinishEvent &event) override {
    show(event.text);
    reason = event.reason;
    status = event.status;
  }
  void onPromptLogits(int64_t, std::span<const float> values, int64_t) override {
    logits.append(values);
  }

  std::vector<int32_t> ids;
  std::vector<SampledToken> tokens;
  bool keepLogprobs = false;
  std::string text;
  FinishReason reason = FinishReason::None;
  Status status;
  Clock::time_point first{}, last{};
  NpyWriter logits;

private:
  void show(std::string_view piece) {
    text += piece;
    if (stream_ && !showIds_ && !piece.empty())
      *stream_ << piece << std::flush;
  }
  std::ostream *stream_;
  bool showIds_;
};

struct Timings {
  Clock::duration load{}, prefill{}, decode{};
};

Status checkActivations(const Plan &plan, const std::string &wanted) {
  if (wanted.empty())
    return Status::ok();
  bool isInt8 = plan.head().activations() == fbs::ElementType::I8;
  if ((wanted == "int8") == isInt8)
    return Status::ok();
  return invalidArgument(plan.name() + ": the plan was compiled with --activations " +
                         (isInt8 ? "int8" : "f32") + "; compile it again with --activations " +
                         wanted);
}

Result<std::vector<int32_t>> promptOf(const Model &model, const RunOptions &options) {
  if (!options.prompt)
    return options.promptIds;
  if (!options.chat)
    return model.encodePrompt(*options.prompt);
  std::vector<ChatMessage> messages;
  if (options.system)
    messages.push_back({"system", *options.system});
  messages.push_back({"user", *options.prompt});
  return model.encodeChat(messages, true);
}

SamplingParams samplingOf(const Model &model, const RunOptions &options) {
  SamplingParams params = model.samplingDefaults();
  auto set = [](auto &value, const auto &given) {
    if (given)
      value = *given;
  };
  set(params.temperature, options.temperature);
  set(params.topK, options.topK);
  set(params.topP, options.topP);
  set(params.minP, options.minP);
  set(params.typicalP, options.typicalP);
  set(params.dryMultiplier, options.dryMultiplier);
  set(params.dryBase, options.dryBase);
  set(params.dryAllowedLength, options.dryAllowedLength);
  set(params.xtcProbability, options.xtcProbability);
  set(params.xtcThreshold, options.xtcThreshold);
  set(params.mirostat, options.mirostat);
  set(params.mirostatTau, options.mirostatTau);
  set(params.mirostatEta, options.mirostatEta);
  set(params.minTokens, options.minTokens);
  set(params.repetitionPenalty, options.repetitionPenalty);
  set(params.presencePenalty, options.presencePenalty);
  set(params.frequencyPenalty, options.frequencyPenalty);
  params.seed = options.seed;
  params.logprobs = options.logprobs;
  return params;
}

nlohmann::ordered_json logprobsJson(const std::vector<SampledToken> &tokens) {
  auto list = nlohmann::ordered_json::array();
  for (const SampledToken &token : tokens) {
    auto top = nlohmann::ordered_json::array();
    for (int32_t i = 0; i < token.topCount; ++i)
      top.push_back({{"id", token.top[size_t(i)].id}, {"logprob", token.top[size_t(i)].logprob}});
    list.push_back({{"id", token.id}, {"logprob", token.logprob}, {"top", std::move(top)}});
  }
  return list;
}

/// A flag's text; "@FILE" stands for a file's.
Result<std::string> textOf(const std::string &value) {
  if (!value.starts_with("@"))
    return value;
  std::ifstream in(value.substr(1), std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in)
    return ioError(value.substr(1) + ": can't be read");
  return text;
}

Status addGrammar(const Model &model, const RunOptions &options, RequestOptions &request) {
  using Compile = Result<std::shared_ptr<const Grammar>> (*)(std::string_view);
  const std::pair<const std::string &, Compile> given[] = {
      {options.jsonSchema, Grammar::fromJsonSchema},
      {options.regex, Grammar::fromRegex},
      {options.grammar, Grammar::fromGbnf}};
  for (auto [value, compile] : given) {
    if (value.empty())
      continue;
    LLMRT_ASSIGN_OR_RETURN(std::string text, textOf(value));
    LLMRT_ASSIGN_OR_RETURN(request.grammar, compile(text));
    LLMRT_ASSIGN_OR_RETURN(request.vocabularyTrie, model.vocabularyTrie());
  }
  return Status::ok();
}

void printJson(const std::vector<int32_t> &prompt, const RunListener &listener, bool hasText,
               const Timings &t, Engine &engine, std::ostream &out) {
  int64_t n = static_cast<int64_t>(listener.ids.size());
  nlohmann::ordered_json json;
  json["prompt_ids"] = prompt;
  json["ids"] = listener.ids;
  json["text"] = hasText ? nlohmann::ordered_json(listener.text) : nullptr;
  json["finish_reason"] = finishReasonName(listener.reason);
  json["logprobs"] =
      listener.keepLogprobs ? logprobsJson(listener.tokens) : nlohmann::ordered_json(nullptr);
  json["timings"] = {
      {"load_ms", milliseconds(t.load)},
      {"ttft_ms", milliseconds(t.prefill)},
      {"prefill_tokens_per_s", perSecond(int64_t(prompt.size()), t.prefill)},
      {"decode_tokens_per_s", perSecond(n - 1, t.decode)},
      {"total_ms", milliseconds(t.load + t.prefill + t.decode)},
      {"device", deviceName(engine)},
  };
  if (auto *cpu = dynamic_cast<CpuExecutor *>(&engine.executor())) {
    json["timings"]["threads"] = cpu->threads();
    json["timings"]["cpu_level"] = cpuLevelName(cpu->level());
  }
  const EngineMetrics &metrics = engine.metrics();
  if (metrics.draftTokens > 0)
    json["speculation"] = {{"drafts", metrics.drafts.get()},
                           {"draft_tokens", metrics.draftTokens.get()},
                           {"accepted_tokens", metrics.acceptedTokens.get()},
                           {"steps", metrics.steps.get()}};
  out << json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << std::endl;
}

void printSpeeds(const std::string &name, size_t prompt, const RunListener &listener,
                 const Timings &t, std::ostream &err) {
  char line[256];
  int64_t n = static_cast<int64_t>(listener.ids.size());
  std::snprintf(line, sizeof(line),
                "prefill %zu tokens at %.1f tokens/s, decode %lld tokens at %.1f tokens/s, "
                "first token %.0f ms after %.0f ms of loading",
                prompt, perSecond(int64_t(prompt), t.prefill),
                static_cast<long long>(std::max<int64_t>(n - 1, 0)), perSecond(n - 1, t.decode),
                milliseconds(t.prefill), milliseconds(t.load));
  err << "\n" << (name.empty() ? "model" : name) << ": " << line << std::endl;
}

Status run(const std::string &path, const RunOptions &options, std::ostream &out,
           std::ostream &err) {
  auto start = Clock::now();
  LLMRT_ASSIGN_OR_RETURN(auto model, Model::open(path));
  const Plan &plan = *model->plan();
  LLMRT_RETURN_IF_ERROR(checkActivations(plan, options.activations));
  LLMRT_ASSIGN_OR_RETURN(std::vector<int32_t> prompt, promptOf(*model, options));

  EngineOptions engineOptions;
  LLMRT_ASSIGN_OR_RETURN(engineOptions.device, parseDevice(options.device));
  engineOptions.threads = options.threads;
  engineOptions.maxBatchedTokens = options.maxBatchedTokens;
  engineOptions.blockTokens = options.blockSize;
  engineOptions.promptLogits = !options.logitsOut.empty();
  LLMRT_ASSIGN_OR_RETURN(engineOptions.sampledVocabulary, model->sampledVocabulary());
  if (!options.speculativeConfig.empty())
    LLMRT_RETURN_IF_ERROR(setSpeculation(*model, options.speculativeConfig, engineOptions));
  LLMRT_ASSIGN_OR_RETURN(auto engine, createEngine(model->plan(), engineOptions));

  bool hasText = model->hasTokenizer();
  RunListener listener(options.json ? nullptr : &out, !hasText);
  RequestOptions request;
  request.prompt = prompt;
  request.sampling = samplingOf(*model, options);
  request.maxNewTokens = options.newTokens;
  LLMRT_ASSIGN_OR_RETURN(request.endIds, model->endIds());
  request.ignoreEnd = options.ignoreEos;
  request.promptLogits = !options.logitsOut.empty();
  request.listener = &listener;
  LLMRT_RETURN_IF_ERROR(addGrammar(*model, options, request));
  listener.keepLogprobs = options.logprobs >= 0;
  if (hasText || !options.stop.empty()) {
    LLMRT_ASSIGN_OR_RETURN(auto tokenizer, model->tokenizer());
    LLMRT_ASSIGN_OR_RETURN(request.text, StreamSink::create(tokenizer, options.stop));
  }
  Timings timings;
  auto loaded = Clock::now();
  timings.load = loaded - start;
  LLMRT_ASSIGN_OR_RETURN(RequestId id, engine->add(std::move(request)));
  (void)id;
  if (!options.logitsOut.empty())
    LLMRT_RETURN_IF_ERROR(listener.logits.open(options.logitsOut, int64_t(prompt.size()),
                                               plan.head().model()->vocab_size()));
  while (engine->busy())
    LLMRT_RETURN_IF_ERROR(engine->step());
  if (!options.json)
    out << std::endl;
  LLMRT_RETURN_IF_ERROR(listener.status);
  timings.prefill = (listener.ids.empty() ? Clock::now() : listener.first) - loaded;
  timings.decode = listener.last - listener.first;
  if (!options.logitsOut.empty())
    LLMRT_RETURN_IF_ERROR(listener.logits.commit());
  if (options.json)
    printJson(prompt, listener, hasText, timings, *engine, out);
  else
    printSpeeds(plan.head().model()->name()->str(), prompt.size(), listener, timings, err);
  if (!out.good())
    return ioError("writing the output failed");
  return Status::ok();
}

} // namespace

int runMain(const std::string &path, const RunOptions &options, std::ostream &out,
            std::ostream &err) {
  auto usage = [&](const char *message) {
    err << "error: " << message << std::endl;
    return 2;
  };
  bool hasPrompt = options.prompt || !options.promptIds.empty();
  if (hasPrompt && (!options.inputs.empty() || !options.outputDir.empty()))
    return usage("give either a prompt (-p, --prompt-ids) or tensors (--input, --output-dir)");
  // A graph may have no inputs at all, so its plan says what is meant.
  if (!hasPrompt)
    if (auto plan = Plan::open(path);
        !options.inputs.empty() || !options.outputDir.empty() || (plan && (*plan)->head().main()))
      return runGraphMain(path, {options.inputs, options.outputDir, options.json}, out, err);
  if (options.prompt && !options.promptIds.empty())
    return usage("give either a text (-p) or token ids (--prompt-ids)");
  if (!options.prompt && options.promptIds.empty())
    return usage("give a prompt: -p TEXT, or --prompt-ids 1,2,3");
  if ((options.chat || options.system) && !options.prompt)
    return usage("--chat and --system need a text (-p)");
  if (options.system && !options.chat)
    return usage("--system needs --chat");
  if (!options.jsonSchema.empty() + !options.regex.empty() + !options.grammar.empty() > 1)
    return usage("give one of --json-schema, --regex and --grammar");
  Status status = run(path, options, out, err);
  if (!status) {
    err << "error: " << status.message() << std::endl;
    return 1;
  }
  return 0;
}

} // namespace llmc::tools
