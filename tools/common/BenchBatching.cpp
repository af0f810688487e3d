#include "tools/common/BenchBatching.h"

#include "runtime/engine/DeviceEngine.h"
#include "tools/common/BenchSupport.h"
#include "tools/common/Table.h"

#include <algorithm>
#include <array>
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

constexpr int64_t rounds = 12, longAnswer = 256, standardRepetitions = 3;
struct Range {
  int64_t low, high;
};
constexpr Range promptTokens{16, 64}, shortAnswer{8, 24};

/// In a place of its own in every group, so that no batch is only short.
std::vector<Job> makeJobs(const Plan &plan, int64_t places, int64_t longest) {
  PromptSource source(plan.head().model()->vocab_size());
  std::vector<Job> jobs;
  for (int64_t round = 0; round < rounds; ++round) {
    int64_t longOne = source.between(0, places - 1);
    for (int64_t i = 0; i < places; ++i) {
      int64_t newTokens =
          i == longOne ? longest
                       : std::min(longest, source.between(shortAnswer.low, shortAnswer.high));
      jobs.push_back({source.next(source.between(promptTokens.low, promptTokens.high)), newTokens});
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
  int64_t measured = 0; ///< steps after which sequences were still running
  double occupancy = 0; ///< share of held KV memory with tokens of unfinished requests, summed
                        ///< over those
  double rows = 0;      ///< sequences, summed over those
  double finished = 0;  ///< of them such as had their answer and only padded the batch

  double tokensPerSecond() const { return static_cast<double>(tokens) / seconds; }
  double tokensPerStep() const { return static_cast<double>(tokens) / static_cast<double>(steps); }
  double meanOccupancy() const { return occupancy / static_cast<double>(measured); }
  double meanRows() const { return rows / static_cast<double>(measured); }
  double meanFinished() const { return finished / static_cast<double>(measured); }
};

/// What becomes of a sequence that has its answer while others of its batch have not.
enum class Finished { Leaves, PadsTheBatch };

/// The share of the running sequences' tokens that requests without their whole answer hold.
double unfinishedShare(std::span<const Job> jobs, std::span<const CountingListener> listeners,
                       int64_t &finished) {
  int64_t all = 0, unfinished = 0;
  finished = 0;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const int64_t held = static_cast<int64_t>(jobs[i].prompt.size()) + listeners[i].tokens;
    all += held;
    if (listeners[i].tokens < jobs[i].newTokens)
      unfinished += held;
    else
      ++finished;
  }
  return static_cast<double>(unfinished) / static_cast<double>(all);
}

/// Adds \p jobs at once and runs until all have ended; counts the tokens that they asked for.
Status runJobs(Engine &engine, std::span<const Job> jobs, Finished finished, Outcome &outcome) {
  const bool pads = finished == Finished::PadsTheBatch;
  int64_t longest = 0;
  for (const Job &job : jobs)
    longest = std::max(longest, job.newTokens);
  std::vector<CountingListener> listeners(jobs.size());
  int64_t stepsBefore = engine.metrics().steps;
  auto start = Clock::now();
  for (size_t i = 0; i < jobs.size(); ++i) {
    RequestOptions request;
    request.prompt = jobs[i].prompt;
    request.maxNewTokens = pads ? longest : jobs[i].newTokens;
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
    int64_t padding = 0;
    outcome.occupancy +=
        metrics.kvOccupancy() * (pads ? unfinishedShare(jobs, listeners, padding) : 1);
    outcome.rows += static_cast<double>(metrics.running);
    outcome.finished += static_cast<double>(padding);
    ++outcome.measured;
  }
  outcome.steps += engine.metrics().steps - stepsBefore;
  outcome.seconds += secondsBetween(start, Clock::now());
  for (size_t i = 0; i < jobs.size(); ++i) {
    LLMRT_RETURN_IF_ERROR(listeners[i].status);
    outcome.tokens += std::min(listeners[i].tokens, jobs[i].newTokens);
  }
  return Status::ok();
}

class BatchingBench {
public:
  Status run(const std::shared_ptr<const Plan> &plan, const BenchOptions &options) {
    places = options.continuousBatching;
    longest = options.newTokensGiven ? std::max<int64_t>(options.newTokens, 1) : longAnswer;
    repetitions = options.repetitions ? options.repetitions : standardRepetitions;
    jobs = makeJobs(*plan, places, longest);
    LLMRT_ASSIGN_OR_RETURN(engine, makeEngine(plan, options, places, false));
    std::vector<Job> warmUp(jobs.begin(), jobs.begin() + places);
    for (Job &job : warmUp)
      job.newTokens = 4;
    Outcome unused;
    LLMRT_RETURN_IF_ERROR(runJobs(*engine, warmUp, Finished::Leaves, unused));
    // One after the other, each of them first in turn: what slows the machine for a while slows
    // all.
    for (int64_t i = 0; i < repetitions; ++i) {
      std::array<Outcome, 3> outcomes;
      for (size_t turn = 0; turn < outcomes.size(); ++turn) {
        const size_t mode = (turn + static_cast<size_t>(i)) % outcomes.size();
        LLMRT_RETURN_IF_ERROR(mode == 0   ? runStatic(Finished::PadsTheBatch, outcomes[0])
                              : mode == 1 ? runStatic(Finished::Leaves, outcomes[1])
                                          : runJobs(*engine, jobs, Finished::Leaves, outcomes[2]));
      }
      padded.add(outcomes[0]);
      dropping.add(outcomes[1]);
      continuous.add(outcomes[2]);
    }
    return Status::ok();
  }

  /// Of all repetitions.
  struct Outcomes {
    Outcome newest; ///< its counts are those of every repetition
    std::vector<double> tokensPerSecond;
    void add(const Outcome &outcome) {
      newest = outcome;
      tokensPerSecond.push_back(outcome.tokensPerSecond());
    }
  };
  int64_t places = 0, longest = 0, repetitions = 0;
  Outcomes padded, dropping; ///< static batches, by what becomes of finished sequences
  Outcomes continuous;
  /// The median of the ratios of neighbouring runs.
  double continuousOver(const Outcomes &other) const {
    std::vector<double> ratios;
    for (size_t i = 0; i < other.tokensPerSecond.size(); ++i)
      ratios.push_back(continuous.tokensPerSecond[i] / other.tokensPerSecond[i]);
    return median(ratios);
  }
  /// What the ratio would be if a step took as long with one sequence as with all.
  double stepRatio() const {
    return continuous.newest.tokensPerStep() / dropping.newest.tokensPerStep();
  }

private:
  /// As many jobs as there are places; the next ones when all of them have ended.
  Status runStatic(Finished finished, Outcome &outcome) {
    for (size_t i = 0; i < jobs.size(); i += static_cast<size_t>(places))
      LLMRT_RETURN_IF_ERROR(runJobs(
          *engine, std::span(jobs).subspan(i, static_cast<size_t>(places)), finished, outcome));
    return Status::ok();
  }
  std::vector<Job> jobs;
  std::unique_ptr<Engine> engine;
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
    json["repetitions"] = bench.repetitions;
    json["mix"] = {{"requests", rounds * bench.places},
                   {"prompt_tokens", {promptTokens.low, promptTokens.high}},
                   {"short_tokens", {shortAnswer.low, shortAnswer.high}},
                   {"long_tokens", bench.longest},
                   {"long_requests", rounds}};
    for (auto [name, all] :
         {std::pair("static", &bench.padded), std::pair("static_dropping", &bench.dropping),
          std::pair("continuous", &bench.continuous)})
      json[name] = {{"tokens_per_s", median(all->tokensPerSecond)},
                    {"tokens", all->newest.tokens},
                    {"steps", all->newest.steps},
                    {"rows_per_step", all->newest.meanRows()},
                    {"finished_rows_per_step", all->newest.meanFinished()},
                    {"kv_occupancy", all->newest.meanOccupancy()}};
    json["ratio"] = bench.continuousOver(bench.padded);
    json["ratio_dropping"] = bench.continuousOver(bench.dropping);
    json["step_ratio"] = bench.stepRatio();
    out << json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << std::endl;
    return Status::ok();
  }
  Table table({"batching", "tokens/s", "steps", "rows a step", "of them finished",
               "KV memory with tokens"});
  auto add = [&](const char *name, const BatchingBench::Outcomes &all) {
    const Outcome &one = all.newest;
    table.add({name, fixed(median(all.tokensPerSecond)), std::to_string(one.steps),
               fixed(one.meanRows()), fixed(one.meanFinished()),
               fixed(100 * one.meanOccupancy(), " %")});
  };
  add("static", bench.padded);
  add("static, finished rows dropped", bench.dropping);
  add("continuous", bench.continuous);
  table.print(out);
  out << "\n"
      << rounds * bench.places << " requests, " << bench.places << " at a time; prompts of "
      << promptTokens.low << " to " << promptTokens.high << " tokens; of every " << bench.places
      << " answers one of " << bench.longest << " tokens, the others of " << shortAnswer.low
      << " to " << shortAnswer.high
      << "\ncontinuous over static: " << fixed(bench.continuousOver(bench.padded), "", 2)
      << "; with finished rows dropped: " << fixed(bench.continuousOver(bench.dropping), "", 2)
      << " (medians of " << bench.repetitions
      << "); tokens a step: " << fixed(bench.stepRatio(), "", 2) << "\n";
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
