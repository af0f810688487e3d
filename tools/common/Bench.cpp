#include "tools/common/Bench.h"

#include "runtime/engine/DeviceEngine.h"
#include "runtime/engine/Model.h"
#include "runtime/engine/SetSpeculation.h"
#include "tools/common/BenchSupport.h"
#include "tools/common/Inspect.h"
#include "tools/common/Table.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

namespace llmc::tools {

using namespace llmrt;

namespace {

struct Speed {
  double prefill = 0; ///< tokens/s to the first token of all
  double decode = 0;  ///< tokens/s after it, all sequences together
};

/// Runs \p batch requests to their ends and times them between steps.
Result<Speed> timeRequests(Engine &engine, PromptSource &prompts, int64_t batch,
                           int64_t promptTokens, int64_t newTokens) {
  std::vector<CountingListener> listeners(static_cast<size_t>(batch));
  for (CountingListener &listener : listeners) {
    RequestOptions request;
    request.prompt = prompts.next(promptTokens);
    request.maxNewTokens = newTokens;
    request.ignoreEnd = true;
    request.listener = &listener;
    LLMRT_ASSIGN_OR_RETURN(RequestId id, engine.add(std::move(request)));
    (void)id;
  }
  auto total = [&] {
    return std::accumulate(listeners.begin(), listeners.end(), int64_t(0),
                           [](int64_t sum, const CountingListener &l) { return sum + l.tokens; });
  };
  auto all = [&](auto what) { return std::all_of(listeners.begin(), listeners.end(), what); };
  auto any = [&](auto what) { return std::any_of(listeners.begin(), listeners.end(), what); };
  auto finished = [](const CountingListener &l) { return l.finished; };

  auto start = Clock::now(), first = start, last = start;
  int64_t tokensAtFirst = 0, tokensAtLast = 0;
  while (engine.busy()) {
    LLMRT_RETURN_IF_ERROR(engine.step());
    auto now = Clock::now();
    if (tokensAtFirst == 0 && all([](const CountingListener &l) { return l.tokens > 0; })) {
      first = now;
      tokensAtFirst = total();
    }
    // The last step in which all took part.
    if (tokensAtLast == 0 && any(finished)) {
      last = now;
      tokensAtLast = total();
    }
  }
  for (const CountingListener &listener : listeners)
    LLMRT_RETURN_IF_ERROR(listener.status);
  Speed speed;
  speed.prefill = static_cast<double>(batch * promptTokens) / secondsBetween(start, first);
  if (tokensAtLast > tokensAtFirst)
    speed.decode = static_cast<double>(tokensAtLast - tokensAtFirst) / secondsBetween(first, last);
  return speed;
}

struct Row {
  std::string key;  ///< in the JSON object
  std::string test; ///< in the table
  double tokensPerSecond;
  double roofline; ///< tokens/s at the machine's limits
};

class Bench {
public:
  Bench(const BenchOptions &options, std::shared_ptr<const Plan> plan)
      : options_(options), plan_(std::move(plan)), prompts_(plan_->head().model()->vocab_size()) {}

  Status run() {
    if (options_.depth + options_.newTokens > plan_->head().model()->max_context())
      return invalidArgument("--depth " + std::to_string(options_.depth) + " and -n " +
                             std::to_string(options_.newTokens) +
                             " are beyond the model's context of " +
                             std::to_string(plan_->head().model()->max_context()));
    InspectOptions machine;
    machine.measure = options_.measure;
    machine.threads = options_.threads;
    LLMRT_ASSIGN_OR_RETURN(device_, parseDevice(options_.device));
    LLMRT_ASSIGN_OR_RETURN(device_, resolveDevice(*plan_, device_));
    onCpu_ = device_.kind == DeviceChoice::Kind::Cpu;
    if (onCpu_)
      limits_ = machineLimits(*plan_, machine);
    else
      limits_.source = "not known for this device";
    auto start = Clock::now();
    LLMRT_ASSIGN_OR_RETURN(auto engine, makeEngine(1));
    loadSeconds += secondsBetween(start, Clock::now());
    int64_t warmUp = std::max<int64_t>(1, std::min<int64_t>(128, maxPrompt(4)));
    LLMRT_ASSIGN_OR_RETURN(Speed unused, timeRequests(*engine, prompts_, 1, warmUp, 4));
    (void)unused;
    for (int64_t n : options_.prompts)
      LLMRT_RETURN_IF_ERROR(prefill(*engine, n));
    if (options_.newTokens > 0)
      LLMRT_RETURN_IF_ERROR(decode(*engine, 1, "decode"));
    device = deviceName(*engine);
    if (auto *cpu = dynamic_cast<CpuExecutor *>(&engine->executor())) {
      threads = cpu->threads();
      level = cpu->level();
    }
    engine.reset(); // its threads and memory, before the next
    for (int64_t batch : options_.batches) {
      LLMRT_ASSIGN_OR_RETURN(auto batched, makeEngine(batch));
      LLMRT_ASSIGN_OR_RETURN(unused, timeRequests(*batched, prompts_, batch, depth(), 2));
      LLMRT_RETURN_IF_ERROR(decode(*batched, batch, "batch" + std::to_string(batch)));
    }
    return Status::ok();
  }

  std::vector<Row> rows;
  double loadSeconds = 0;
  unsigned threads = 0;
  CpuLevel level = CpuLevel::None; ///< None: not a CPU
  std::string device;
  const MachineLimits &limits() const { return limits_; }

private:
  int64_t depth() const { return std::max<int64_t>(options_.depth, 1); }
  int64_t maxPrompt(int64_t newTokens) const {
    return int64_t(plan_->head().model()->max_context()) - newTokens;
  }

  Result<std::unique_ptr<Engine>> makeEngine(int64_t batch) {
    EngineOptions engine;
    engine.device = device_;
    engine.threads = options_.threads;
    engine.maxSequences = batch;
    engine.blockTokens = options_.blockSize;
    engine.maxBatchedTokens = options_.maxBatchedTokens;
    engine.prefixCaching = false;                  // every token is to be computed
    if (engine.maxBatchedTokens == 0 && batch > 1) // all prompts in one step, where one holds them
      engine.maxBatchedTokens = std::min<int64_t>(std::max<int64_t>(512, batch * depth()),
                                                  modelShape(plan_->head()).maxTokens);
    if (!options_.speculativeConfig.empty()) {
      LLMRT_ASSIGN_OR_RETURN(auto model, Model::fromPlan(plan_));
      LLMRT_RETURN_IF_ERROR(setSpeculation(*model, options_.speculativeConfig, engine));
    }
    return createEngine(plan_, engine);
  }

  Status prefill(Engine &engine, int64_t n) {
    int64_t repetitions = options_.repetitions ? options_.repetitions : n <= 128 ? 3 : 2;
    std::vector<double> speeds;
    for (int64_t i = 0; i < repetitions; ++i) {
      LLMRT_ASSIGN_OR_RETURN(Speed speed, timeRequests(engine, prompts_, 1, n, 1));
      speeds.push_back(speed.prefill);
    }
    rows.push_back({"prefill" + std::to_string(n), "prefill " + std::to_string(n), median(speeds),
                    onCpu_ ? predictPrefill(plan_->head(), limits_, n).tokensPerSecond : 0});
    return Status::ok();
  }

  Status decode(Engine &engine, int64_t batch, std::string key) {
    std::vector<double> speeds;
    for (int64_t i = 0; i < std::max<int64_t>(1, options_.repetitions); ++i) {
      LLMRT_ASSIGN_OR_RETURN(Speed speed,
                             timeRequests(engine, prompts_, batch, depth(), options_.newTokens));
      speeds.push_back(speed.decode);
    }
    std::string test =
        "decode " + std::to_string(options_.newTokens) + " at depth " + std::to_string(depth());
    if (batch > 1)
      test += ", " + std::to_string(batch) + " at once";
    rows.push_back({std::move(key), test, median(speeds), decodeRoofline(batch)});
    return Status::ok();
  }

  /// A step of one token of each sequence: the linear layers once for all, attention for each.
  double decodeRoofline(int64_t batch) const {
    if (!onCpu_)
      return 0;
    int64_t context = depth() + options_.newTokens / 2;
    double shared = predictStep(plan_->head(), limits_, {batch, batch, 0}).seconds;
    double attention = predictStep(plan_->head(), limits_, {1, 1, context}).seconds -
                       predictStep(plan_->head(), limits_, {1, 1, 0}).seconds;
    double seconds = shared + static_cast<double>(batch) * attention;
    return seconds > 0 ? static_cast<double>(batch) / seconds : 0;
  }

  const BenchOptions &options_;
  std::shared_ptr<const Plan> plan_;
  PromptSource prompts_;
  DeviceChoice device_;
  bool onCpu_ = true; ///< whose limits are known
  MachineLimits limits_;
};

void printTable(const Plan &plan, const Bench &bench, std::ostream &out) {
  const fbs::Model &model = *plan.head().model();
  out << model.name()->string_view() << ", " << formatBytes(double(plan.fileSize())) << ", "
      << (bench.level == CpuLevel::None
              ? bench.device
              : std::string(cpuLevelName(bench.level)) + ", " + std::to_string(bench.threads) +
                    " thread" + (bench.threads == 1 ? "" : "s"))
      << ", loaded in " << fixed(bench.loadSeconds * 1e3, " ms") << "\n\n";
  Table table({"test", "tokens/s", "roofline", "of it"});
  for (const Row &row : bench.rows)
    table.add({row.test, fixed(row.tokensPerSecond), row.roofline > 0 ? fixed(row.roofline) : "-",
               row.roofline > 0 ? fixed(100 * row.tokensPerSecond / row.roofline, " %") : "-"});
  table.print(out);
  out << "\nroofline: " << bench.limits().source << "\n";
}

void printJson(const Plan &plan, const Bench &bench, std::ostream &out) {
  nlohmann::ordered_json json;
  json["model"] = plan.head().model()->name()->str();
  json["load_s"] = bench.loadSeconds;
  for (const Row &row : bench.rows)
    json[row.key] = row.tokensPerSecond;
  json["device"] = bench.device;
  if (bench.level != CpuLevel::None) {
    json["threads"] = bench.threads;
    json["cpu_level"] = cpuLevelName(bench.level);
  }
  auto &roofline = json["roofline"] = nlohmann::ordered_json::object();
  roofline["source"] = bench.limits().source;
  for (const Row &row : bench.rows)
    roofline[row.key] = row.roofline;
  out << json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << std::endl;
}

} // namespace

int benchMain(const std::string &path, const BenchOptions &options, std::ostream &out,
              std::ostream &err) {
  auto fail = [&](const Status &status) {
    err << "error: " << status.message() << std::endl;
    return 1;
  };
  auto start = Clock::now();
  Result<std::shared_ptr<const Plan>> plan = Plan::open(path);
  if (!plan)
    return fail(plan.status());
  Bench bench(options, *plan);
  bench.loadSeconds = secondsBetween(start, Clock::now());
  if (Status status = bench.run(); !status)
    return fail(status);
  if (options.json)
    printJson(**plan, bench, out);
  else
    printTable(**plan, bench, out);
  return out.good() ? 0 : fail(ioError("writing the output failed"));
}

} // namespace llmc::tools
