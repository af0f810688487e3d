#include "tools/common/StepProfile.h"

#include "runtime/plan/WeightFormat.h"

#include <algorithm>

namespace llmc::tools {

using namespace llmrt;

namespace {

constexpr int prefillRuns = 5;

class Listener final : public RequestListener {
public:
  bool onToken(const TokenEvent &) override { return ++tokens, true; }
  void onFinish(const FinishEvent &event) override { status = event.status; }
  int64_t tokens = 0;
  Status status;
};

/// Which ids they are decides nothing about the speed, only that they are many different rows of
/// the embedding: multiples of a prime (the golden ratio's, Knuth 6.4), modulo the vocabulary.
std::vector<int32_t> someIds(int64_t n, int64_t vocabulary) {
  std::vector<int32_t> ids(static_cast<size_t>(n));
  for (size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<int32_t>((i + 1) * 2654435761u % static_cast<uint64_t>(vocabulary));
  return ids;
}

Status addRequest(Engine &engine, Listener &listener, int64_t prompt, int64_t newTokens) {
  RequestOptions request;
  request.prompt = someIds(prompt, engine.shape().vocabulary);
  request.maxNewTokens = newTokens;
  request.ignoreEnd = true;
  request.listener = &listener;
  LLMRT_ASSIGN_OR_RETURN(RequestId id, engine.add(std::move(request)));
  (void)id;
  return Status::ok();
}

/// Measures the executor's commands while it lives.
class Measurement {
public:
  Measurement(Engine &engine, size_t commands)
      : executor_(static_cast<CpuExecutor &>(engine.executor())), seconds_(commands) {
    executor_.measureCommands(seconds_);
  }
  ~Measurement() { executor_.measureCommands({}); }
  /// What was measured since the last call.
  std::vector<double> take() {
    std::vector<double> taken = seconds_;
    std::fill(seconds_.begin(), seconds_.end(), 0);
    return taken;
  }

private:
  CpuExecutor &executor_;
  std::vector<double> seconds_;
};

/// Of each command the median over the steps: what the system does beside us falls on few of them.
std::vector<double> medians(const std::vector<std::vector<double>> &steps) {
  std::vector<double> result(steps.front().size()), one(steps.size());
  for (size_t c = 0; c < result.size(); ++c) {
    for (size_t s = 0; s < steps.size(); ++s)
      one[s] = steps[s][c];
    auto middle = one.begin() + static_cast<ptrdiff_t>(one.size() / 2);
    std::nth_element(one.begin(), middle, one.end());
    result[c] = *middle;
  }
  return result;
}

std::string shapeOf(const fbs::Kernel &kernel) {
  auto constant = [&](std::string_view name) -> std::string {
    for (const fbs::Constant *c : *kernel.constants())
      if (c->name()->string_view() == name)
        return std::to_string(c->value());
    return {};
  };
  auto product = [&](const char *a, const char *b) -> std::string {
    std::string left = constant(a), right = constant(b);
    return left.empty() || right.empty() ? std::string() : left + " x " + right;
  };
  for (std::string shape : {product("k", "n"), product("heads", "key_size"),
                            product("heads", "head_size"), constant("k"), constant("d")})
    if (!shape.empty())
      return shape;
  return {};
}

/// Of the first matrix among the command's weights.
std::string formatOf(const fbs::Plan &plan, const fbs::Command &command) {
  for (const fbs::Binding *b : *command.bindings())
    if (b->kind() == fbs::BindingKind::Weight)
      if (const fbs::Weight *w = plan.weights()->Get(b->index()); w->columns() > 1)
        return WeightFormat(*w->format()).name();
  return {};
}

void add(Prediction &sum, const Prediction &p) {
  sum.seconds += p.seconds;
  sum.bytes += p.bytes;
  sum.intOperations += p.intOperations;
  sum.floatOperations += p.floatOperations;
}

/// Sorts the measured commands by kernel; \p steps are those that \p seconds is the sum of.
StepProfile profileOf(const fbs::Plan &plan, const MachineLimits &limits,
                      const std::vector<StepShape> &steps, const std::vector<double> &seconds) {
  StepProfile profile;
  profile.context = steps.front().context;
  profile.tokens = 0;
  for (const StepShape &step : steps)
    profile.tokens += step.tokens;
  std::vector<KernelProfile> kernels(plan.kernels()->size());
  profile.total.name = "all";
  for (uint32_t c = 0; c < plan.commands()->size(); ++c) {
    const fbs::Command &command = *plan.commands()->Get(c);
    const fbs::Kernel &kernel = *plan.kernels()->Get(command.kernel());
    KernelProfile &k = kernels[command.kernel()];
    if (k.used == 0) {
      k.name = kernel.symbol()->str();
      k.kind = kernel.kind()->str();
      k.shape = shapeOf(kernel);
      k.format = formatOf(plan, command);
    }
    for (KernelProfile *row : {&k, &profile.total}) {
      ++row->used;
      row->seconds += seconds[c];
      for (const StepShape &step : steps)
        add(row->bound, predictCommand(plan, command, limits, step));
    }
  }
  for (KernelProfile &k : kernels)
    if (k.used)
      profile.kernels.push_back(std::move(k));
  std::sort(profile.kernels.begin(), profile.kernels.end(), [](const auto &a, const auto &b) {
    return a.seconds != b.seconds ? a.seconds > b.seconds : a.name < b.name;
  });
  return profile;
}

} // namespace

Result<StepProfile> profileDecode(Engine &engine, const fbs::Plan &plan,
                                  const MachineLimits &limits, int64_t context) {
  Listener listener;
  LLMRT_RETURN_IF_ERROR(addRequest(engine, listener, context, decodeProfileTokens));
  while (engine.busy() && listener.tokens < 2) // the prompt, and a step to warm up
    LLMRT_RETURN_IF_ERROR(engine.step());
  Measurement measurement(engine, plan.commands()->size());
  std::vector<std::vector<double>> steps;
  while (engine.busy()) {
    LLMRT_RETURN_IF_ERROR(engine.step());
    steps.push_back(measurement.take());
  }
  LLMRT_RETURN_IF_ERROR(listener.status);
  StepProfile profile = profileOf(plan, limits, {{1, 1, context}}, medians(steps));
  profile.name = "decode";
  return profile;
}

Result<StepProfile> profilePrefill(Engine &engine, const fbs::Plan &plan,
                                   const MachineLimits &limits, int64_t tokens) {
  std::vector<std::vector<double>> runs;
  Measurement measurement(engine, plan.commands()->size());
  for (int run = -1; run < prefillRuns; ++run) { // the first warms up
    Listener listener;
    LLMRT_RETURN_IF_ERROR(addRequest(engine, listener, tokens, 1));
    while (engine.busy())
      LLMRT_RETURN_IF_ERROR(engine.step());
    LLMRT_RETURN_IF_ERROR(listener.status);
    std::vector<double> seconds = measurement.take();
    if (run >= 0)
      runs.push_back(std::move(seconds));
  }
  std::vector<StepShape> steps;
  for (int64_t done = 0; done < tokens;) {
    int64_t chunk = std::min(tokens - done, engine.limits().maxBatchedTokens);
    steps.push_back({chunk, done + chunk == tokens ? 1 : 0, done});
    done += chunk;
  }
  StepProfile profile = profileOf(plan, limits, steps, medians(runs));
  profile.name = "prefill";
  return profile;
}

} // namespace llmc::tools
