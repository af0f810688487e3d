// Requests, tokens and results of the C API as the engine's, and back.
#include "runtime/api/Handles.h"
#include "runtime/decode/grammar/Grammar.h"
#include "runtime/engine/StreamSink.h"

#include <algorithm>
#include <chrono>

namespace llmrt::capi {

llmrt_token tokenOf(const TokenEvent &event, llmrt_token_logprob *top) {
  llmrt_token token = {};
  token.request = event.request;
  token.index = event.index;
  token.id = event.token.id;
  token.logprob = event.token.logprob;
  for (int32_t i = 0; i < event.token.topCount; ++i)
    top[i] = {event.token.top[size_t(i)].id, event.token.top[size_t(i)].logprob};
  token.top = event.token.topCount ? top : nullptr;
  token.top_count = static_cast<size_t>(event.token.topCount);
  token.choice = event.choice;
  return token;
}

llmrt_result resultOf(const FinishEvent &event, std::string &stopString) {
  auto seconds = [](RequestStats::Clock::duration d) {
    return std::chrono::duration<double>(d).count();
  };
  const RequestStats &stats = event.stats;
  auto now = RequestStats::Clock::now();
  bool started = stats.started != RequestStats::Clock::time_point();
  stopString = event.stopString;
  llmrt_result result = {};
  result.size = sizeof(result);
  result.request = event.request;
  result.reason = static_cast<llmrt_finish_reason>(event.reason);
  result.status = static_cast<llmrt_status>(event.status.code());
  result.stop_string = stopString.empty() ? nullptr : stopString.c_str();
  result.prompt_tokens = stats.promptTokens;
  result.output_tokens = event.outputTokens;
  result.prefill_seconds = seconds((event.outputTokens ? stats.firstToken : now) - stats.added);
  result.decode_seconds = event.outputTokens ? seconds(stats.lastToken - stats.firstToken) : 0;
  result.choice = event.choice;
  result.last = event.last;
  result.cached_tokens = stats.cachedTokens;
  result.preemptions = stats.preemptions;
  result.draft_tokens = stats.draftTokens;
  result.accepted_tokens = stats.acceptedTokens;
  result.sum_logprob = event.sumLogprob;
  result.queue_seconds = seconds((started ? stats.started : now) - stats.added);
  return result;
}

bool ApiRequest::onToken(const TokenEvent &event) {
  bool goOn = true;
  if (options_.on_token) {
    llmrt_token_logprob top[maxLogprobs];
    llmrt_token token = tokenOf(event, top);
    goOn = options_.on_token(options_.user, &token) == 0;
  }
  return giveText(event.choice, event.text) && goOn;
}

void ApiRequest::onFinish(const FinishEvent &event) {
  giveText(event.choice, event.text);
  status_ = event.status;
  result_ = resultOf(event, stopString_);
  if (options_.on_finish)
    options_.on_finish(options_.user, &result_);
  finished_ = event.last;
}

llmrt_generate_options defaultOptions(const llmrt_plan *plan) {
  SamplingParams sampling = plan ? plan->model->samplingDefaults() : SamplingParams();
  llmrt_generate_options options = {};
  options.size = sizeof(options);
  options.max_new_tokens = -1;
  options.temperature = sampling.temperature;
  options.top_k = sampling.topK;
  options.top_p = sampling.topP;
  options.min_p = sampling.minP;
  options.repetition_penalty = sampling.repetitionPenalty;
  options.logprobs = -1;
  options.choices = 1;
  options.typical_p = sampling.typicalP;
  options.dry_base = sampling.dryBase;
  options.dry_allowed_length = sampling.dryAllowedLength;
  options.xtc_threshold = sampling.xtcThreshold;
  options.mirostat_tau = sampling.mirostatTau;
  options.mirostat_eta = sampling.mirostatEta;
  return options;
}

static Status setSampling(const llmrt_generate_options &o, SamplingParams &s) {
  s.temperature = o.temperature;
  s.topK = o.top_k;
  s.topP = o.top_p;
  s.minP = o.min_p;
  s.repetitionPenalty = o.repetition_penalty;
  s.presencePenalty = o.presence_penalty;
  s.frequencyPenalty = o.frequency_penalty;
  s.seed = o.seed;
  s.logprobs = o.logprobs;
  s.minTokens = o.min_tokens;
  s.typicalP = o.typical_p;
  s.dryMultiplier = o.dry_multiplier;
  s.dryBase = o.dry_base;
  s.dryAllowedLength = o.dry_allowed_length;
  s.xtcProbability = o.xtc_probability;
  s.xtcThreshold = o.xtc_threshold;
  s.mirostat = o.mirostat;
  s.mirostatTau = o.mirostat_tau;
  s.mirostatEta = o.mirostat_eta;
  if (o.logit_bias_count && !o.logit_bias)
    return missing("logit_bias");
  for (size_t i = 0; i < o.logit_bias_count; ++i)
    s.logitBias.push_back({o.logit_bias[i].id, o.logit_bias[i].bias});
  return Status::ok();
}

static Status setGrammar(const Model &model, const llmrt_generate_options &o,
                         RequestOptions &request) {
  int given = !!o.json_schema + !!o.regex + !!o.grammar;
  if (given == 0)
    return Status::ok();
  if (given > 1)
    return invalidArgument("give one of json_schema, regex and grammar");
  Result<std::shared_ptr<const Grammar>> made = o.json_schema
                                                    ? Grammar::fromJsonSchema(o.json_schema)
                                                : o.regex ? Grammar::fromRegex(o.regex)
                                                          : Grammar::fromGbnf(o.grammar);
  LLMRT_ASSIGN_OR_RETURN(request.grammar, std::move(made));
  LLMRT_ASSIGN_OR_RETURN(request.vocabularyTrie, model.vocabularyTrie());
  return Status::ok();
}

Result<RequestOptions> requestOf(const Model &model, const llmrt_generate_options &o,
                                 const int32_t *prompt, size_t count, bool wantText) {
  if (!prompt && count > 0)
    return missing("prompt");
  RequestOptions request;
  request.prompt.assign(prompt, prompt + count);
  request.maxNewTokens = o.max_new_tokens;
  LLMRT_RETURN_IF_ERROR(setSampling(o, request.sampling));
  LLMRT_RETURN_IF_ERROR(setGrammar(model, o, request));
  LLMRT_ASSIGN_OR_RETURN(request.endIds, model.endIds());
  request.ignoreEnd = o.ignore_eos != 0;
  request.choices = o.choices == 0 ? 1 : o.choices;
  request.priority = o.priority;
  request.cacheSalt = o.cache_salt ? o.cache_salt : "";
  if (!(o.timeout_seconds >= 0 && o.timeout_seconds <= 1e9))
    return invalidArgument("timeout_seconds must be from 0 (none) to 1e9");
  if (o.timeout_seconds > 0)
    request.deadline =
        RequestStats::Clock::now() + std::chrono::duration_cast<RequestStats::Clock::duration>(
                                         std::chrono::duration<double>(o.timeout_seconds));
  if ((o.stop_id_count && !o.stop_ids) || (o.stop_string_count && !o.stop_strings))
    return missing("an array of stops");
  request.stopIds.assign(o.stop_ids, o.stop_ids + o.stop_id_count);
  std::vector<std::string> stops;
  for (size_t i = 0; i < o.stop_string_count; ++i) {
    if (!o.stop_strings[i])
      return missing("a stop string");
    stops.push_back(o.stop_strings[i]);
  }
  if (wantText || o.on_text || o.on_choice_text || !stops.empty()) {
    LLMRT_ASSIGN_OR_RETURN(auto tokenizer, model.tokenizer());
    LLMRT_ASSIGN_OR_RETURN(request.text, StreamSink::create(tokenizer, stops));
    for (int32_t i = 1; i < std::min(request.choices, 128); ++i) {
      LLMRT_ASSIGN_OR_RETURN(auto text, StreamSink::create(tokenizer, stops));
      request.moreTexts.push_back(std::move(text));
    }
  }
  return request;
}

} // namespace llmrt::capi
