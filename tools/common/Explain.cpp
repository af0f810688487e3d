#include "tools/common/Explain.h"

#include "runtime/engine/CpuEngine.h"
#include "tools/common/Inspect.h"
#include "tools/common/JsonWriter.h"
#include "tools/common/StepProfile.h"
#include "tools/common/Table.h"

#include <algorithm>

namespace llmc::tools {

using namespace llmrt;

namespace {

constexpr int64_t defaultContext = 512;

struct Explanation {
  std::shared_ptr<const Plan> plan;
  MachineLimits limits;
  unsigned threads = 0;
  CpuLevel level = CpuLevel::None;
  std::vector<StepProfile> steps;
};

Status explain(const std::string &path, const ExplainOptions &options, Explanation &e) {
  LLMRT_ASSIGN_OR_RETURN(e.plan, Plan::open(path));
  const fbs::Plan &head = e.plan->head();
  int64_t most = int64_t(head.model()->max_context()) - decodeProfileTokens;
  if (options.context > most)
    return invalidArgument("--context " + std::to_string(options.context) + " and the " +
                           std::to_string(decodeProfileTokens) +
                           " tokens that are decoded after it are beyond the model's context of " +
                           std::to_string(head.model()->max_context()));
  int64_t context = options.context >= 0 ? options.context : std::min(defaultContext, most);
  InspectOptions machine;
  machine.measure = options.measure;
  machine.threads = options.threads;
  e.limits = machineLimits(*e.plan, machine);

  CpuEngineOptions engineOptions;
  engineOptions.threads = options.threads;
  engineOptions.prefixCaching = false; // the same prompt is timed several times
  engineOptions.kvTokens = std::max(context + decodeProfileTokens, options.tokens + 1);
  LLMRT_ASSIGN_OR_RETURN(auto engine, createCpuEngine(e.plan, engineOptions));
  const auto &executor = static_cast<const CpuExecutor &>(engine->executor());
  e.threads = executor.threads();
  e.level = executor.level();
  LLMRT_ASSIGN_OR_RETURN(StepProfile decode,
                         profileDecode(*engine, head, e.limits, std::max<int64_t>(1, context)));
  e.steps.push_back(std::move(decode));
  if (options.tokens > 0) {
    LLMRT_ASSIGN_OR_RETURN(StepProfile prefill,
                           profilePrefill(*engine, head, e.limits, options.tokens));
    e.steps.push_back(std::move(prefill));
  }
  return Status::ok();
}

template <typename... T> std::string format(const char *text, T... values) {
  char line[96];
  std::snprintf(line, sizeof line, text, values...);
  return line;
}

double ratio(double a, double b) { return b > 0 ? a / b : 0; }

void printStep(const StepProfile &step, std::ostream &out) {
  out << '\n'
      << step.name << " of " << step.tokens << " token" << (step.tokens == 1 ? "" : "s")
      << " at context " << step.context << ": " << format("%.3f ms", step.total.seconds * 1e3)
      << ", " << format("%.1f tokens/s", ratio(double(step.tokens), step.total.seconds)) << '\n';
  Table table({"kernel", "shape", "weight", "used", "memory", "GOP", "predicted ms", "measured ms",
               "GB/s", "GOPS", "of roofline", "share"});
  auto row = [&](const KernelProfile &k) {
    auto orDash = [](const std::string &text) { return text.empty() ? "-" : text; };
    table.add({k.name, orDash(k.shape), orDash(k.format), std::to_string(k.used),
               formatBytes(k.bound.bytes), format("%.4f", k.operations() / 1e9),
               format("%.3f", k.bound.seconds * 1e3), format("%.3f", k.seconds * 1e3),
               format("%.2f", ratio(k.bound.bytes, k.seconds) / 1e9),
               format("%.2f", ratio(k.operations(), k.seconds) / 1e9),
               format("%.1f %%", 100 * ratio(k.bound.seconds, k.seconds)),
               format("%.1f %%", 100 * ratio(k.seconds, step.total.seconds))});
  };
  for (const KernelProfile &k : step.kernels)
    row(k);
  row(step.total);
  table.print(out);
}

void printText(const Explanation &e, std::ostream &out) {
  const MachineLimits &l = e.limits;
  out << e.plan->head().model()->name()->string_view() << ", " << cpuLevelName(e.level) << ", "
      << e.threads << " thread" << (e.threads == 1 ? "" : "s") << "; roofline (" << l.source
      << format("): memory %.1f GB/s, int8 %.0f GOPS, f32 %.0f GFLOPS\n", l.bytesPerSecond / 1e9,
                l.intOperationsPerSecond / 1e9, l.floatOperationsPerSecond / 1e9);
  for (const StepProfile &step : e.steps)
    printStep(step, out);
}

void printKernel(JsonWriter &j, const KernelProfile &k) {
  j.key("used").value(k.used);
  j.key("bytes").value(k.bound.bytes);
  j.key("int_operations").value(k.bound.intOperations);
  j.key("float_operations").value(k.bound.floatOperations);
  j.key("predicted_s").value(k.bound.seconds);
  j.key("measured_s").value(k.seconds);
}

void printJson(const Explanation &e, std::ostream &out) {
  JsonWriter j(out);
  j.object([&] {
    j.key("model").value(e.plan->head().model()->name()->string_view());
    j.key("threads").value(e.threads);
    j.key("cpu_level").value(cpuLevelName(e.level));
    j.key("roofline").object([&] {
      j.key("source").value(e.limits.source);
      j.key("bytes_per_s").value(e.limits.bytesPerSecond);
      j.key("int_operations_per_s").value(e.limits.intOperationsPerSecond);
      j.key("float_operations_per_s").value(e.limits.floatOperationsPerSecond);
    });
    for (const StepProfile &step : e.steps)
      j.key(step.name).object([&] {
        j.key("tokens").value(step.tokens);
        j.key("context").value(step.context);
        j.key("tokens_per_s").value(ratio(double(step.tokens), step.total.seconds));
        j.key("total").object([&] { printKernel(j, step.total); });
        j.key("kernels").array([&] {
          for (const KernelProfile &k : step.kernels)
            j.object([&] {
              j.key("name").value(k.name);
              j.key("kind").value(k.kind);
              j.key("shape").value(k.shape);
              j.key("format").value(k.format);
              printKernel(j, k);
            });
        });
      });
  });
}

} // namespace

int explainMain(const std::string &path, const ExplainOptions &options, std::ostream &out,
                std::ostream &err) {
  Explanation explanation;
  if (Status status = explain(path, options, explanation); !status) {
    err << "error: " << status.message() << std::endl;
    return 1;
  }
  (options.json ? printJson : printText)(explanation, out);
  if (!out.flush()) {
    err << "error: writing the output failed" << std::endl;
    return 1;
  }
  return 0;
}

} // namespace llmc::tools
