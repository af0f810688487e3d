#include "runtime/server/Metrics.h"

#include <prometheus/text_serializer.h>

namespace llmrt::server {

using namespace prometheus;

namespace {

/// Seconds: fine enough for a token a millisecond, wide enough for a queue of an hour.
const Histogram::BucketBoundaries buckets = {0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08,
                                             0.1,   0.25,   0.5,   0.75, 1,    2.5,  5,    7.5,
                                             10,    20,     40,    80,   160,  640,  2560};

const char *reasonLabel(FinishReason reason) {
  switch (reason) {
  case FinishReason::Stop:
    return "stop";
  case FinishReason::Length:
    return "length";
  case FinishReason::Cancelled:
    return "abort";
  default:
    return "error";
  }
}

} // namespace

Counter &Metrics::counter(const char *name, const char *help) {
  return BuildCounter().Name(prefix_ + name).Help(help).Register(registry_).Add(labels_);
}
Gauge &Metrics::gauge(const char *name, const char *help) {
  return BuildGauge().Name(prefix_ + name).Help(help).Register(registry_).Add(labels_);
}
Histogram &Metrics::histogram(const char *name, const char *help) {
  return BuildHistogram().Name(prefix_ + name).Help(help).Register(registry_).Add(labels_, buckets);
}

Metrics::Metrics(const std::string &prefix, const std::string &model)
    : prefix_(prefix), labels_{{"model_name", model}},
      promptTokens(counter("prompt_tokens_total", "Tokens of prompts that were taken.")),
      generationTokens(counter("generation_tokens_total", "Tokens that were generated.")),
      timeToFirstToken(
          histogram("time_to_first_token_seconds", "From a request's arrival to its first token.")),
      interTokenLatency(histogram("inter_token_latency_seconds", "Between tokens of an answer.")),
      requestLatency(
          histogram("e2e_request_latency_seconds", "From a request's arrival to its last token.")),
      queueTime(histogram("request_queue_time_seconds",
                          "From a request's arrival to the step that begins it.")),
      rejected(counter("requests_rejected_total", "Requests refused because the queue was full.")),
      finished_(BuildCounter()
                    .Name(prefix_ + "request_success_total")
                    .Help("Choices that ended, by reason.")
                    .Register(registry_)),
      windowUsage_(BuildGauge()
                       .Name(prefix_ + "kv_window_usage_perc")
                       .Help("Part of the KV blocks in use, 0 to 1, of layers that see only a "
                             "window of tokens, by the window, where others see more.")
                       .Register(registry_)),
      running_(gauge("num_requests_running", "Sequences that take part in steps.")),
      waiting_(gauge("num_requests_waiting", "Sequences that wait for their first step.")),
      kvUsage_(gauge("kv_cache_usage_perc", "Part of the KV blocks in use, 0 to 1.")),
      kvOccupancy_(gauge("kv_cache_occupancy_perc",
                         "Part of the KV memory in use that holds live tokens, 0 to 1.")),
      stepTimeRatio_(gauge("step_time_ratio", "Measured over predicted time of the steps.")),
      connections_(gauge("connections", "Open connections.")),
      steps_(counter("engine_steps_total", "Steps that the engine has run.")),
      prefixQueries_(counter("prefix_cache_queries_total", "Prompt tokens looked up.")),
      prefixHits_(counter("prefix_cache_hits_total", "Prompt tokens found in the prefix cache.")),
      preemptions_(counter("num_preemptions_total", "Sequences that gave up their KV blocks.")),
      swaps_(counter("num_swaps_total", "Preempted sequences whose KV went to host memory.")),
      drafts_(counter("spec_decode_num_drafts_total", "Windows that a drafter proposed.")),
      draftTokens_(counter("spec_decode_num_draft_tokens_total", "Tokens in those windows.")),
      acceptedTokens_(counter("spec_decode_num_accepted_tokens_total", "Those that were kept.")),
      decodeAllocations_(
          counter("decode_allocations_total", "Allocations in steps that only decode.")) {
  auto &family = BuildCounter()
                     .Name(prefix_ + "slow_fallbacks_total")
                     .Help("What could not go the fast way, by kind.")
                     .Register(registry_);
  for (size_t kind = 0; kind < slowFallbackKinds; ++kind) {
    Labels labels = labels_;
    labels["kind"] = slowFallbackNames[kind];
    slowFallbacks_[kind] = &family.Add(labels);
  }
}

void Metrics::requestFinished(FinishReason reason) {
  Labels labels = labels_;
  labels["finished_reason"] = reasonLabel(reason);
  finished_.Add(labels).Increment();
}

std::string Metrics::text(const EngineMetrics &engine, size_t connections) {
  std::lock_guard lock(mutex_);
  running_.Set(static_cast<double>(engine.running));
  waiting_.Set(static_cast<double>(engine.waiting));
  kvUsage_.Set(engine.kvUsage());
  kvOccupancy_.Set(engine.kvOccupancy());
  for (size_t i = 0; i < engine.windowBlocks.size() && engine.windowBlocks[i] > 0; ++i) {
    Labels labels = labels_;
    labels["window"] = std::to_string(engine.windowTokens[i]);
    windowUsage_.Add(labels).Set(static_cast<double>(engine.windowBlocksUsed[i]) /
                                 static_cast<double>(engine.windowBlocks[i]));
  }
  stepTimeRatio_.Set(engine.stepTimeRatio());
  connections_.Set(static_cast<double>(connections));
  auto raise = [](Counter &counter, int64_t to) {
    counter.Increment(std::max(0.0, static_cast<double>(to) - counter.Value()));
  };
  raise(steps_, engine.steps);
  raise(prefixQueries_, engine.prefixQueries);
  raise(prefixHits_, engine.prefixHits);
  raise(preemptions_, engine.preemptions);
  raise(swaps_, engine.swaps);
  raise(drafts_, engine.drafts);
  raise(draftTokens_, engine.draftTokens);
  raise(acceptedTokens_, engine.acceptedTokens);
  raise(decodeAllocations_, engine.decodeAllocations);
  for (size_t kind = 0; kind < slowFallbackKinds; ++kind)
    raise(*slowFallbacks_[kind], engine.slowFallbacks[kind]);
  return TextSerializer().Serialize(registry_.Collect());
}

} // namespace llmrt::server
