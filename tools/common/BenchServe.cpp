#include "tools/common/BenchServe.h"

#include "tools/common/StreamClient.h"
#include "tools/common/Table.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <thread>

namespace llmc::tools {

using llmrt::Result;
using llmrt::Status;
using Clock = StreamTimes::Clock;

namespace {

/// "N" or "LOW:HIGH".
std::optional<LengthRange> parseLength(const std::string &text) {
  LengthRange range;
  const char *end = text.data() + text.size();
  auto [at, error] = std::from_chars(text.data(), end, range.low);
  range.high = range.low;
  if (error == std::errc() && at != end && *at == ':') {
    auto second = std::from_chars(at + 1, end, range.high);
    at = second.ptr;
    error = second.ec;
  }
  if (error != std::errc() || at != end || range.low < 1 || range.high < range.low ||
      range.high > 10'000'000)
    return std::nullopt;
  return range;
}

/// Bodies of all requests, so that making them takes no time from the load.
std::vector<std::string> makeBodies(const BenchServeOptions &options, LengthRange prompt,
                                    LengthRange output, std::mt19937_64 &generator) {
  static constexpr const char *words[] = {
      "time",  "river", "paper", "light", "stone", "green", "music", "water", "house", "cloud",
      "table", "north", "train", "glass", "bread", "field", "night", "plant", "voice", "horse"};
  auto draw = [&](LengthRange range) {
    return std::uniform_int_distribution<int64_t>(range.low, range.high)(generator);
  };
  std::vector<std::string> bodies;
  for (int64_t i = 0; i < options.requests; ++i) {
    // The number comes first, so that no two prompts share a beginning in a prefix cache.
    std::string text = std::to_string(generator() % 1'000'000);
    for (int64_t n = draw(prompt); n > 1; --n)
      text += std::string(" ") + words[generator() % std::size(words)];
    nlohmann::ordered_json body = {
        {"prompt", text},   {"max_tokens", draw(output)},
        {"temperature", 0}, {"ignore_eos", true},
        {"stream", true},   {"stream_options", {{"include_usage", true}}}};
    if (!options.model.empty())
      body["model"] = options.model;
    bodies.push_back(body.dump());
  }
  return bodies;
}

/// What one test gave.
struct LoadResult {
  std::string name;
  std::vector<StreamTimes> answers;
  std::vector<std::string> failures;
  double seconds = 0;
};

class Load {
public:
  Load(const BenchServeOptions &options, const ServerUrl &url, std::vector<std::string> bodies)
      : options_(options), url_(url), bodies_(std::move(bodies)) {}

  /// \p clients at a time, each with its next request when the last one is answered.
  void closedLoop(int clients) {
    std::atomic<size_t> next{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < clients; ++i)
      threads.emplace_back([&] {
        for (size_t n; (n = next.fetch_add(1)) < bodies_.size();)
          ask(bodies_[n]);
      });
    for (std::thread &thread : threads)
      thread.join();
  }
  /// Requests come when they come, whatever the server does: gaps are exponential.
  void openLoop(double rate, std::mt19937_64 &generator) {
    std::exponential_distribution<double> gap(rate);
    std::vector<std::thread> threads;
    auto at = Clock::now();
    for (const std::string &body : bodies_) {
      threads.emplace_back([this, &body] { ask(body); });
      at += std::chrono::duration_cast<Clock::duration>(
          std::chrono::duration<double>(gap(generator)));
      std::this_thread::sleep_until(at);
    }
    for (std::thread &thread : threads)
      thread.join();
  }
  LoadResult result;

private:
  void ask(const std::string &body) {
    Result<StreamTimes> answer = streamCompletion(url_, options_.apiKey, body, options_.timeout);
    std::lock_guard lock(mutex_);
    if (answer)
      result.answers.push_back(std::move(*answer));
    else
      result.failures.push_back(answer.status().message());
  }

  const BenchServeOptions &options_;
  const ServerUrl &url_;
  const std::vector<std::string> bodies_;
  std::mutex mutex_;
};

/// The value below which a share \p p of the sorted \p values lies (nearest rank); 0 if there are
/// none.
double percentile(const std::vector<double> &values, double p) {
  if (values.empty())
    return 0;
  auto rank = static_cast<size_t>(std::ceil(p * static_cast<double>(values.size())));
  return values[std::clamp<size_t>(rank, 1, values.size()) - 1];
}

double milliseconds(Clock::duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

struct Percentiles {
  double mean = 0, p50 = 0, p90 = 0, p99 = 0;
};
Percentiles summarize(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  Percentiles p{0, percentile(values, 0.5), percentile(values, 0.9), percentile(values, 0.99)};
  for (double v : values)
    p.mean += v / static_cast<double>(values.size());
  return p;
}

nlohmann::ordered_json toJson(const LoadResult &result) {
  std::vector<double> first, between, total;
  int64_t prompt = 0, output = 0;
  for (const StreamTimes &a : result.answers) {
    prompt += a.promptTokens;
    // Servers that give no usage: an event is a token.
    output += a.outputTokens > 0 ? a.outputTokens : static_cast<int64_t>(a.tokens.size());
    if (!a.tokens.empty())
      first.push_back(milliseconds(a.tokens.front() - a.sent));
    for (size_t i = 1; i < a.tokens.size(); ++i)
      between.push_back(milliseconds(a.tokens[i] - a.tokens[i - 1]));
    total.push_back(milliseconds(a.done - a.sent));
  }
  auto part = [](const Percentiles &p) -> nlohmann::ordered_json {
    return {{"mean", p.mean}, {"p50", p.p50}, {"p90", p.p90}, {"p99", p.p99}};
  };
  double seconds = std::max(result.seconds, 1e-9);
  return {{"test", result.name},
          {"requests", result.answers.size() + result.failures.size()},
          {"failed", result.failures.size()},
          {"seconds", result.seconds},
          {"requests_per_s", static_cast<double>(result.answers.size()) / seconds},
          {"prompt_tokens", prompt},
          {"output_tokens", output},
          {"prompt_tokens_per_s", static_cast<double>(prompt) / seconds},
          {"output_tokens_per_s", static_cast<double>(output) / seconds},
          {"ttft_ms", part(summarize(first))},
          {"inter_token_ms", part(summarize(between))},
          {"e2e_ms", part(summarize(total))}};
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value);
  return text;
}

void printTable(const std::vector<nlohmann::ordered_json> &tests, std::ostream &out) {
  Table table({"test", "failed", "req/s", "out tok/s", "TTFT p50", "p90", "p99", "ITL p50", "p90",
               "p99", "e2e p50", "p99 ms"});
  for (const auto &t : tests) {
    auto of = [&](const char *name, const char *p) { return number(t[name][p].get<double>()); };
    table.add({t["test"].get<std::string>(), std::to_string(t["failed"].get<int64_t>()),
               number(t["requests_per_s"].get<double>()),
               number(t["output_tokens_per_s"].get<double>()), of("ttft_ms", "p50"),
               of("ttft_ms", "p90"), of("ttft_ms", "p99"), of("inter_token_ms", "p50"),
               of("inter_token_ms", "p90"), of("inter_token_ms", "p99"), of("e2e_ms", "p50"),
               of("e2e_ms", "p99")});
  }
  table.print(out);
}

} // namespace

int benchServeMain(const BenchServeOptions &options, std::ostream &out, std::ostream &err) {
  Result<ServerUrl> url = parseUrl(options.url);
  std::optional<LengthRange> prompt = parseLength(options.promptLength),
                             output = parseLength(options.outputLength);
  if (!url || !prompt || !output) {
    err << "error: "
        << (!url      ? url.status().message()
            : !prompt ? "--input-len must be N or LOW:HIGH, not " + options.promptLength
                      : "--output-len must be N or LOW:HIGH, not " + options.outputLength)
        << std::endl;
    return 2;
  }
  std::mt19937_64 generator(options.seed);
  std::vector<nlohmann::ordered_json> tests;
  bool failed = false;
  auto run = [&](const std::string &name, const auto &drive) {
    Load load(options, *url, makeBodies(options, *prompt, *output, generator));
    auto begin = Clock::now();
    drive(load);
    load.result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    load.result.name = name;
    if (!load.result.failures.empty()) {
      failed = true;
      err << "error: " << name << ": " << load.result.failures.size() << " of " << options.requests
          << " requests failed, the first: " << load.result.failures.front() << std::endl;
    }
    tests.push_back(toJson(load.result));
  };
  std::vector<int> clients = options.concurrency;
  if (clients.empty() && options.rates.empty())
    clients = {1, 8};
  for (int n : clients)
    run(std::to_string(n) + (n == 1 ? " client" : " clients"),
        [&](Load &load) { load.closedLoop(n); });
  for (double rate : options.rates)
    run(number(rate) + " req/s", [&](Load &load) { load.openLoop(rate, generator); });
  if (options.json)
    out << nlohmann::ordered_json{{"url", options.url}, {"tests", tests}}.dump(2) << std::endl;
  else
    printTable(tests, out);
  return failed ? 1 : 0;
}

} // namespace llmc::tools
