#include "runtime/plan/Roofline.h"

#include "runtime/plan/KvLayout.h"
#include "runtime/plan/WeightFormat.h"

#include <algorithm>

namespace llmrt {

MachineLimits defaultLimits(std::string_view level, unsigned threads) {
  struct Row {
    std::string_view level;
    double f32, int8; // operations a second and core
  };
  static constexpr Row kRows[] = {
      {"x86-64-v3", 96e9, 128e9},       {"x86-64-v4", 192e9, 768e9},
      {"x86-64-v4-amx", 192e9, 768e9},  // tiles serve prefill only: at least VNNI's
      {"aarch64-dotprod", 48e9, 192e9}, // two pipes of 128 bits at 3 GHz
      {"aarch64-i8mm", 96e9, 384e9},    // four
  };
  const Row *row = &kRows[0];
  for (const Row &r : kRows)
    if (r.level == level)
      row = &r;
  MachineLimits m;
  m.threads = std::max(1u, threads);
  m.bytesPerSecond = std::min(12e9 * m.threads, 40e9);
  m.floatOperationsPerSecond = row->f32 * m.threads;
  m.intOperationsPerSecond = row->int8 * m.threads;
  m.source = "defaults for " + std::string(row->level);
  return m;
}

/// Does the kernel run on the rows that need logits (constant `rows` is 1, or its tasks count them)
/// rather than on all tokens?
static bool runsOnRows(const fbs::Kernel &kernel, const fbs::Command &command) {
  for (const fbs::Constant *c : *kernel.constants())
    if (c->name()->string_view() == "rows")
      return c->value() == 1;
  return command.tasks()->per_row() != 0;
}

Prediction predictCommand(const fbs::Plan &plan, const fbs::Command &command,
                          const MachineLimits &limits, const StepShape &shape) {
  Prediction p;
  const fbs::Cost *cost = command.cost();
  if (!cost)
    return p;
  double tokens = static_cast<double>(shape.tokens), rows = static_cast<double>(shape.rows);
  int64_t tile = plan.limits()->query_tile();
  auto tiles = static_cast<double>((shape.tokens + tile - 1) / tile);
  // Token i of the step sees context + i + 1 keys.
  double keys = static_cast<double>(shape.context) + (tokens + 1) / 2;
  double queriesPerKv = double(plan.model()->heads()) / plan.model()->kv_heads();
  const fbs::KvLayer &kv = *plan.kv()->layers()->Get(0);
  double elementBytes = double(kvBytesPerToken(kv)) / double(kvElementsPerToken(kv));

  double m = runsOnRows(*plan.kernels()->Get(command.kernel()), command) ? rows : tokens;
  auto kvBytes = static_cast<double>(cost->kv_bytes_per_context());
  double operations = static_cast<double>(cost->operations_per_row()) * m;
  double attention = 2 * kvBytes / elementBytes * queriesPerKv * keys * tokens;
  p.bytes = static_cast<double>(cost->weight_bytes()) +
            static_cast<double>(cost->bytes_per_row()) * m + kvBytes * keys * tiles;
  p.intOperations = cost->integer_operations() ? operations : 0;
  p.floatOperations = operations - p.intOperations + attention;
  p.seconds = std::max(p.bytes / limits.bytesPerSecond,
                       p.intOperations / limits.intOperationsPerSecond +
                           p.floatOperations / limits.floatOperationsPerSecond);
  p.tokensPerSecond = p.seconds > 0 ? tokens / p.seconds : 0;
  return p;
}

Prediction predictStep(const fbs::Plan &plan, const MachineLimits &limits, const StepShape &shape) {
  Prediction sum;
  for (const fbs::Command *command : *plan.commands()) {
    Prediction p = predictCommand(plan, *command, limits, shape);
    sum.seconds += p.seconds;
    sum.bytes += p.bytes;
    sum.intOperations += p.intOperations;
    sum.floatOperations += p.floatOperations;
  }
  sum.tokensPerSecond = sum.seconds > 0 ? static_cast<double>(shape.tokens) / sum.seconds : 0;
  return sum;
}

} // namespace llmrt
