//===- Metrics.h - what /metrics shows --------------------------------------===//
//
// Names follow vLLM's, with the prefix "llmc:" ("vllm:" where asked for, so that its dashboards
// work). Counters and histograms are updated as things happen, gauges when they are read.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_SERVER_METRICS_H
#define LLMRT_SERVER_METRICS_H

#include "runtime/engine/Request.h"
#include "runtime/server/EngineLoop.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <string>

namespace llmrt::server {

class Metrics {
  // Made first: the members below are references into the registry.
  prometheus::Registry registry_;
  const std::string prefix_;
  const prometheus::Labels labels_;

public:
  /// \p prefix stands before every name; \p model is the label model_name of all.
  Metrics(const std::string &prefix, const std::string &model);

  prometheus::Counter &promptTokens, &generationTokens;
  prometheus::Histogram &timeToFirstToken, &interTokenLatency, &requestLatency, &queueTime;
  prometheus::Counter &rejected; ///< requests that got 429

  void requestFinished(FinishReason reason);
  /// The text exposition format of Prometheus, version 0.0.4.
  std::string text(const EngineMetrics &engine, size_t connections);

private:
  prometheus::Family<prometheus::Counter> &finished_;
  prometheus::Family<prometheus::Gauge> &windowUsage_;
  prometheus::Gauge &running_, &waiting_, &kvUsage_, &kvOccupancy_, &stepTimeRatio_, &connections_;
  prometheus::Counter &steps_, &prefixQueries_, &prefixHits_, &preemptions_, &swaps_, &drafts_,
      &draftTokens_, &acceptedTokens_, &decodeAllocations_;
  std::array<prometheus::Counter *, slowFallbackKinds> slowFallbacks_;
  std::mutex mutex_;

  prometheus::Counter &counter(const char *name, const char *help);
  prometheus::Gauge &gauge(const char *name, const char *help);
  prometheus::Histogram &histogram(const char *name, const char *help);
};

} // namespace llmrt::server

#endif // LLMRT_SERVER_METRICS_H
