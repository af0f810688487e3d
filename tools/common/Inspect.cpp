#include "tools/common/Inspect.h"

#include "runtime/device/cpu/CpuLevel.h"
#include "runtime/device/cpu/ThreadCount.h"
#include "runtime/plan/ArenaLayout.h"
#include "tools/common/InspectGraph.h"
#include "tools/common/InspectPrinters.h"
#include "tools/common/MeasureLimits.h"

#include <algorithm>

namespace llmc::tools {

using namespace llmrt;

MachineLimits machineLimits(const Plan &plan, const InspectOptions &options) {
  unsigned threads = chooseThreadCount(options.threads);
  MachineLimits limits;
  if (options.measure) {
    limits = measureLimits(threads);
  } else {
    // The best level that this machine would run; a plan for another one is judged at its first.
    CpuLevel best = CpuLevel::None;
    for (const fbs::CodeModule *m : *plan.head().modules())
      if (auto level = parseCpuLevel(m->level()->string_view());
          m->target() == fbs::Target::Cpu && level && runsLevel(machineCpuLevel(), *level))
        best = std::max(best, *level);
    limits = defaultLimits(cpuLevelName(best), threads);
  }
  auto given = [&](double value, double &limit) {
    if (value > 0) {
      limit = value;
      if (limits.source.find("given") == std::string::npos)
        limits.source += ", some given";
    }
  };
  given(options.bandwidth, limits.bytesPerSecond);
  given(options.intOperations, limits.intOperationsPerSecond);
  given(options.floatOperations, limits.floatOperationsPerSecond);
  return limits;
}

Prediction predictDecode(const fbs::Plan &plan, const MachineLimits &limits, int64_t context) {
  int64_t last = static_cast<int64_t>(plan.model()->max_context()) - 1;
  return predictStep(plan, limits, {1, 1, std::clamp<int64_t>(context, 0, last)});
}

Prediction predictPrefill(const fbs::Plan &plan, const MachineLimits &limits, int64_t prompt) {
  Prediction sum;
  prompt = std::clamp<int64_t>(prompt, 1, plan.model()->max_context());
  for (int64_t done = 0; done < prompt;) {
    int64_t chunk = std::min<int64_t>(prompt - done, plan.limits()->max_tokens());
    bool last = done + chunk == prompt;
    Prediction p = predictStep(plan, limits, {chunk, last ? 1 : 0, done});
    sum.seconds += p.seconds;
    sum.bytes += p.bytes;
    sum.intOperations += p.intOperations;
    sum.floatOperations += p.floatOperations;
    done += chunk;
  }
  sum.tokensPerSecond = sum.seconds > 0 ? static_cast<double>(prompt) / sum.seconds : 0;
  return sum;
}

int inspectMain(const std::string &path, const InspectOptions &options, std::ostream &out,
                std::ostream &err) {
  // Looking runs no code, so a file that others may write can be looked at.
  PlanOptions open;
  open.allowWritableByOthers = true;
  auto plan = Plan::open(path, open);
  if (!plan) {
    err << "error: " << plan.status().message() << '\n';
    return 1;
  }
  if ((*plan)->head().main()) {
    printGraph(**plan, options.json, out);
    out.flush();
    if (!out) {
      err << "error: can't write the output\n";
      return 1;
    }
    return 0;
  }
  Inspection i;
  i.plan = plan->get();
  i.limits = machineLimits(**plan, options);
  i.summary = summarize((*plan)->head(), i.limits.threads);
  i.context = std::clamp<int64_t>(options.context, 0, (*plan)->head().model()->max_context() - 1);
  i.prompt = std::clamp<int64_t>(options.prompt, 1, (*plan)->head().model()->max_context());
  i.decode = predictDecode((*plan)->head(), i.limits, i.context);
  i.prefill = predictPrefill((*plan)->head(), i.limits, i.prompt);
  (options.json ? printInspectionJson : printInspectionText)(i, out);
  out.flush();
  if (!out) {
    err << "error: can't write the output\n";
    return 1;
  }
  return 0;
}

} // namespace llmc::tools
