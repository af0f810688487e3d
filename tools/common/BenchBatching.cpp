#include "tools/common/BenchBatching.h"

#include "runtime/engine/DeviceEngine.h"
#include "tools/common/BenchSupport.h"
#include "tools/common/Table.h"

#include <nlohmann/json.hpp>
#include <numeric>
#include <span>

namespace llmc::tools {

using namespace llmrt;

namespace {

struct Job {
  std::vector<int32_t> prompt;
  int64_t newTokens;
};

constexpr int64_t rounds = 12, longAnswer = 512;

/// In a place of its own in every group, so that no batch is only short.
std::vector<Job> makeJobs(const Plan &plan, int64_t places, int64_t longest) {
  PromptSource source(plan.head().model()->vocab_size());
  std::vector<Job> jobs;
  for (int64_t round = 0; round < rounds; ++round) {
    int64_t longOne = source.between(0, places - 1);
    for (int64_t i = 0; i < places; ++i) {
      int64_t newTokens = i == longOne ? longest : std::min(longest, source.between(8, 24));
      jobs.push_back({source.next(source.between(16, 64)), newTokens});
    }
  }
  return jobs;
}

Result<std::unique_ptr<Engine>> makeEngine(const std::shared_ptr<const Plan> &plan,
                                           const BenchOptions &options, int64_t places,
                                           bool prefixCaching) {
  EngineOptions engine;
  LLMRT_ASSIGN_OR_RETURN(engine.device, parseDevice(options.device));
  engine.threads = options.threads;
  engine.maxSequences = places;
  engine.blockTokens = options.blockSize;
  engine.maxBatchedTokens = options.maxBatchedTokens;
  engine.prefixCaching = prefixCaching;
  return createEngine(plan, engine);
}

struct Outcome {
  double seconds = 0;
  int64_t tokens = 0, steps = 0;
  double occupancy = 0; ///< mean share of held KV memory with tokens in it
  double batch = 0;     ///< mean sequences a step

  double tokensPerSecond() const { return static_cast<double>(tokens) / seconds; }
};

/// Adds \p jobs at once and runs until all have ended.
Status runJobs(Engine &engine, std::span<const Job> jobs, Outcome &outcome) {
  std::vector<CountingListener> listeners(jobs.size());
  auto start = Clock::now();
  for (size_t i = 0; i < jobs.size(); ++i) {
    RequestOptions request;
    request.prompt = jobs[i].prompt;
    request.maxNewTokens = jobs[i].newTokens;
    request.ignoreEnd = true;
    request.listener = &listeners[i];
    LLMRT_ASSIGN_OR_RETURN(RequestId id, engine.add(std::move(request)));
    (void)id;
  }
  while (engine.busy()) {
    LLMRT_RETURN_IF_ERROR(engine.step());
    const EngineMetrics &metrics = engine.metrics();
    if (metrics.running == 0)
      continue;
    outcome.occupancy += metrics.kvOccupancy();
    outcome.batch += static_cast<double>(metrics.running);
    ++outcome.steps;
  }
  outcome.seconds += secondsBetween(start, Clock::now());
  for (const CountingListener &listener : listeners) {
    LLMRT_RETURN_IF_ERROR(listener.status);
    outcome.tokens += listener.tokens;
  }
  return Status::ok();
}

class BatchingBench {
public:
  Status run(const std::shared_ptr<const Plan> &plan, const BenchOptions &options) {
    places = options.continuousBatching;
    int64_t longest = options.newTokensGiven ? std::max<int64_t>(options.newTokens, 1) : longAnswer;
    std::vector<Job> jobs = makeJobs(*plan, places, longest);
    LLMRT_ASSIGN_OR_RETURN(auto engine, makeEngine(plan, options, places, false));
    std::vector<Job> warmUp(jobs.begin(), jobs.begin() + places);
    for (Job &job : warmUp)
      job.newTokens = 4;
    Outcome unused;
    LLMRT_RETURN_IF_ERROR(runJobs(*engine, warmUp, unused));
    for (size_t i = 0; i < jobs.size(); i += static_cast<size_t>(places))
      LLMRT_RETURN_IF_ERROR(
          runJobs(*engine, std::span(jobs).subspan(i, static_cast<size_t>(places)), staticBatches));
    LLMRT_RETURN_IF_ERROR(runJobs(*engine, jobs, continuous));
    for (Outcome *outcome : {&staticBatches, &continuous}) {
      outcome->occupancy /= static_cast<double>(outcome->steps);
      outcome->batch /= static_cast<double>(outcome->steps);
    }
    return Status::ok();
  }

  int64_t places = 0;
  Outcome staticBatches, continuous;
  double ratio() const { return continuous.tokensPerSecond() / staticBatches.tokensPerSecond(); }
};

int report(Status status, std::ostream &out, std::ostream &err) {
  if (status && !out.good())
    status = ioError("writing the output failed");
  if (!status)
    err << "error: " << status.message() << std::endl;
  return status ? 0 : 1;
}

Status batching(const std::string &path, const BenchOptions &options, std::ostream &out) {
  LLMRT_ASSIGN_OR_RETURN(auto plan, Plan::open(path));
  BatchingBench bench;
  LLMRT_RETURN_IF_ERROR(bench.run(plan, options));
  if (options.json) {
    nlohmann::ordered_json json;
    json["model"] = plan->head().model()->name()->str();
    json["places"] = bench.places;
    for (auto [name, outcome] :
         {std::pair("static", &bench.staticBatches), std::pair("continuous", &bench.continuous)})
      json[name] = {{"tokens_per_s", outcome->tokensPerSecond()},
                    {"sequences_per_step", outcome->batch},
                    {"kv_occupancy", outcome->occupancy}};
    json["ratio"] = bench.ratio();
    out << json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << std::endl;
    return Status::ok();
  }
  Table table({"batching", "tokens/s", "sequences a step", "KV memory with tokens"});
  auto add = [&](const char *name, const Outcome &outcome) {
    table.add({name, fixed(outcome.tokensPerSecond()), fixed(outcome.batch),
               fixed(100 * outcome.occupancy, " %")});
  };
  add("static", bench.staticBatches);
  add("continuous", bench.continuous);
  table.print(out);
  out << "\n"
      << rounds * bench.places << " requests, " << bench.places
      << " at a time; continuous over static: " << fixed(bench.ratio(), "", 2) << "\n";
  return Status::ok();
}

/// Seconds from add() to the first token.
Result<double> firstToken(Engine &engine, std::vector<int32_t> prompt) {
  CountingListener listener;
  RequestOptions request;
  request.prompt = std::move(prompt);
  request.maxNewTokens = 1;
  request.ignoreEnd = true;
  request.listener = &listener;
  LLMRT_ASSIGN_OR_RETURN(RequestId id, engine.add(std::move(request)));
  (void)id;
  while (engine.busy())
    LLMRT_RETURN_IF_ERROR(engine.step());
  LLMRT_RETURN_IF_ERROR(listener.status);
  return secondsBetween(listener.stats.added, listener.stats.firstToken);
}

Status prefix(const std::string &path, const BenchOptions &options, std::ostream &out) {
  constexpr int64_t tail = 16;
  LLMRT_ASSIGN_OR_RETURN(auto plan, Plan::open(path));
  int64_t context = int64_t(plan->head().model()->max_context());
  if (options.prefixTokens + tail + 1 > context)
    return invalidArgument("--prefix-cache " + std::to_string(options.prefixTokens) +
                           " and 16 tokens after it are beyond the model's context of " +
                           std::to_string(context));
  LLMRT_ASSIGN_OR_RETURN(auto engine, makeEngine(plan, options, 1, true));
  PromptSource source(plan->head().model()->vocab_size());
  LLMRT_RETURN_IF_ERROR(
      firstToken(*engine, source.next(std::min<int64_t>(64, context - 1))).status());
  std::vector<double> first, second, ratios;
  for (int64_t i = 0; i < (options.repetitions ? options.repetitions : 3); ++i) {
    std::vector<int32_t> shared = source.next(options.prefixTokens);
    for (std::vector<double> *times : {&first, &second}) {
      std::vector<int32_t> prompt = shared, end = source.next(tail);
      prompt.insert(prompt.end(), end.begin(), end.end());
      LLMRT_ASSIGN_OR_RETURN(double seconds, firstToken(*engine, std::move(prompt)));
      times->push_back(seconds * 1e3);
    }
    ratios.push_back(second.back() / first.back());
  }
  if (options.json) {
    nlohmann::ordered_json json;
    json["model"] = plan->head().model()->name()->str();
    json["prefix_tokens"] = options.prefixTokens;
    json["first_ttft_ms"] = median(first);
    json["second_ttft_ms"] = median(second);
    json["ratio"] = median(ratios);
    out << json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << std::endl;
    return Status::ok();
  }
  Table table({"request", "time to first token"});
  table.add({"first", fixed(median(first), " ms")});
  table.add({"second, same prefix", fixed(median(second), " ms")});
  table.print(out);
  out << "\na shared prefix of " << options.prefixTokens << " tokens and 16 others; second over "
      << "first: " << fixed(100 * median(ratios), " %") << "\n";
  return Status::ok();
}

} // namespace

int benchBatchingMain(const std::string &plan, const BenchOptions &options, std::ostream &out,
                      std::ostream &err) {
  return report(batching(plan, options, out), out, err);
}

int benchPrefixMain(const std::string &plan, const BenchOptions &options, std::ostream &out,
                    std::ostream &err) {
  return report(prefix(plan, options, out), out, err);
}

} // namespace llmc::tools
