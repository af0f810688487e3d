// `explain --gpu`: what the CUDA kernels of a plan ask of a GPU, from their launches alone.
#include "compiler/target/CudaTraffic.h"
#include "compiler/target/Target.h"
#include "runtime/plan/ArenaLayout.h"
#include "runtime/plan/Plan.h"
#include "runtime/plan/Roofline.h"
#include "tools/common/Explain.h"
#include "tools/common/JsonWriter.h"
#include "tools/common/Table.h"

#include <algorithm>
#include <cstdio>
#include <map>

namespace llmc::tools {

using namespace llmrt;

namespace {

constexpr int64_t defaultContext = 512;

/// One launch a command, added up over the commands that make it; or one of the draws.
struct Launch {
  std::string entry;
  const fbs::CudaKernel *kernel = nullptr;
  const CudaTraffic *traffic = nullptr; ///< null: nobody counted
  int64_t used = 0, blocks = 0;         ///< blocks of one launch
  double bytes = 0, leastBytes = 0;     ///< asked for by the blocks; with everything moved once
  double operations = 0, leastOperations = 0; ///< with tiles padded; of the rows that exist
  double seconds = 0;                         ///< by the roofline, of the least
};

struct Step {
  std::string name;
  StepShape shape;
  std::vector<Launch> launches = {};
  double seconds = 0;
  int64_t count = 0;
};

int64_t constant(const fbs::Kernel &k, std::string_view name) {
  for (const fbs::Constant *c : *k.constants())
    if (c->name()->string_view() == name)
      return c->value();
  return 0;
}

/// Hopper's attention has the name of its instruction.
bool isWgmma(const fbs::CudaKernel &k) {
  return k.entry()->string_view().find("_wgmma") != std::string_view::npos;
}

/// What a launch of the draws does with the logits of a row that asks for top-p and has neither
/// biases nor bans (codegen/cuda/kernels/sampling.cuh).
struct DrawCost {
  std::string_view entry;
  double passes;     ///< over the logits; once would do
  double operations; ///< a logit, in all passes
};
constexpr DrawCost drawCosts[] = {
    {"sample_top", 1, 1},
    {"sample_select", 4, 29}, // bands and three digits of the threshold, an exponential a logit
    {"sample_draw", 1, 9},    // most tokens can't win and need no logarithm
    {"sample_pick", 0, 0}};

int64_t divideUp(int64_t value, int64_t by) { return (value + by - 1) / by; }

/// What `explain` computes for one GPU and one step.
class Estimate {
public:
  Estimate(const fbs::Plan &plan, const CudaGpu &gpu, Step &step)
      : plan(plan), gpu(gpu), step(step) {
    dims.T = step.shape.tokens;
    dims.S = 1;
    dims.R = step.shape.rows;
    dims.Q = divideUp(dims.T, plan.limits()->query_tile());
  }

  void run() {
    for (const fbs::Command *command : *plan.commands())
      for (const fbs::CudaKernel *k : launchesOf(*command))
        add(*command, *k);
    if (plan.cuda_sampling())
      for (const fbs::CudaKernel *k : *plan.cuda_sampling())
        if (k->sm()->string_view() == gpu.arch)
          addDraw(*k);
    for (const Launch &l : step.launches)
      step.seconds += l.seconds, step.count += l.used;
    std::sort(step.launches.begin(), step.launches.end(), [](const Launch &a, const Launch &b) {
      return a.seconds != b.seconds ? a.seconds > b.seconds : a.entry < b.entry;
    });
  }

private:
  int64_t rowsOf(const fbs::Kernel &k) const { return constant(k, "rows") == 1 ? dims.R : dims.T; }

  /// What a runtime launches: codegen/cuda/kernels/README.md.
  std::vector<const fbs::CudaKernel *> launchesOf(const fbs::Command &command) const {
    std::vector<const fbs::CudaKernel *> chosen;
    std::vector<fbs::CudaWhen> done;
    const int64_t rows = rowsOf(*plan.kernels()->Get(command.kernel()));
    const bool single = dims.T == 1;
    for (const fbs::CudaKernel *k : *plan.cuda_kernels()) {
      if (k->kernel() != command.kernel() || k->sm()->string_view() != gpu.arch ||
          (k->max_rows() != 0 && k->max_rows() < rows) ||
          std::find(done.begin(), done.end(), k->when()) != done.end() ||
          (k->when() == fbs::CudaWhen::LongTiles && single) ||
          (k->when() == fbs::CudaWhen::SingleTiles && !single))
        continue;
      done.push_back(k->when());
      chosen.push_back(k);
    }
    return chosen;
  }

  int64_t grid(const fbs::Affine *size, uint32_t divide) const {
    return divideUp(evaluate(*size, dims), std::max(1u, divide));
  }

  /// Bytes of what a command is bound to; of a table only the rows that are read.
  double boundBytes(const fbs::Command &command, const fbs::Kernel &kernel) const {
    double bytes = 0;
    for (const fbs::Binding *b : *command.bindings()) {
      if (b->kind() == fbs::BindingKind::Weight) {
        const fbs::Weight &w = *plan.weights()->Get(b->index());
        double share =
            kernel.kind()->string_view() == "embed" ? double(dims.T) / double(w.rows()) : 1;
        bytes += double(w.size()) * share;
      } else {
        const fbs::Affine *size = b->kind() == fbs::BindingKind::Buffer
                                      ? plan.buffers()->Get(b->index())->size()
                                      : plan.outputs()->Get(b->index())->size();
        bytes += double(evaluate(*size, dims));
      }
    }
    return bytes;
  }

  void add(const fbs::Command &command, const fbs::CudaKernel &k) {
    const fbs::Kernel &kernel = *plan.kernels()->Get(command.kernel());
    const std::string_view kind = kernel.kind()->string_view();
    const int64_t x = grid(k.grid_x(), k.divide_x()), y = grid(k.grid_y(), k.divide_y());
    int64_t z = grid(k.grid_z(), k.divide_z());
    const int64_t context = step.shape.context + dims.T;
    if (k.context_split())
      z *= divideUp(context, k.context_split());
    MachineLimits limits;
    limits.bytesPerSecond = gpu.bytesPerSecond;
    limits.floatOperationsPerSecond = limits.intOperationsPerSecond = gpu.operationsPerSecond;
    Prediction p = predictCommand(plan, command, limits, step.shape);
    double least = boundBytes(command, kernel), bytes = least;
    double operations = p.floatOperations + p.intOperations, padded = operations;
    if (kind == "gemm") {
      // Every column of blocks reads the weights, every row of blocks the activations.
      const double weight = command.cost() ? double(command.cost()->weight_bytes()) : 0;
      const double rows = double(rowsOf(kernel));
      bytes += weight * double(y - 1) + 4 * rows * double(constant(kernel, "k")) * double(x - 1);
      padded *= double(y * k.divide_y()) / rows;
    } else if (kind == "attention") {
      // Keys and values once a query tile; in a prompt once for each block of rows of a tile.
      const int64_t heads = constant(kernel, "heads"), kvHeads = constant(kernel, "kv_heads");
      const double kv =
          p.bytes - 4 * double(dims.T * heads) *
                        double(constant(kernel, "key_size") + constant(kernel, "value_size"));
      least += kv;
      const int64_t rowBlocks = k.context_split() ? 1 : z;
      bytes += kv * double(rowBlocks);
      // Rows of a product: 16 of an mma, 64 of a wgmma.
      const int64_t rows = isWgmma(k) ? 64 : 16;
      if (k.context_split())
        padded *= double(divideUp(heads / kvHeads, rows) * rows) / double(heads / kvHeads);
    }
    Launch *launch = nullptr;
    for (Launch &l : step.launches)
      if (l.kernel == &k)
        launch = &l;
    if (!launch) {
      const bool isNarrow = k.max_rows() != 0 || k.when() == fbs::CudaWhen::SingleTiles;
      auto named = [&](std::string_view name) { return constant(kernel, name); };
      const CudaTraffic *traffic =
          findCudaTraffic(cudaTrafficName(kind, named, isNarrow, isWgmma(k)));
      step.launches.push_back({k.entry()->str(), &k, traffic});
      launch = &step.launches.back();
    }
    ++launch->used;
    launch->blocks = x * y * z;
    launch->bytes += bytes;
    launch->leastBytes += least;
    launch->operations += padded;
    launch->leastOperations += operations;
    launch->seconds += std::max(least / gpu.bytesPerSecond, operations / gpu.operationsPerSecond);
  }

  /// Each block reads or writes its row's workspace.
  void addDraw(const fbs::CudaKernel &k) {
    const double rows = double(dims.R), logits = 4 * double(plan.outputs()->Get(0)->columns());
    const double workspace = double(evaluate(*k.scratch(), dims)) / rows;
    Launch l{k.entry()->str(), &k};
    l.used = 1;
    l.blocks = grid(k.grid_x(), k.divide_x()) * grid(k.grid_y(), k.divide_y()) *
               grid(k.grid_z(), k.divide_z());
    l.bytes = double(l.blocks) * workspace;
    l.leastBytes = rows * workspace;
    for (const DrawCost &cost : drawCosts)
      if (l.entry == cost.entry) {
        l.bytes += rows * cost.passes * logits;
        l.leastBytes += rows * std::min(cost.passes, 1.0) * logits;
        l.operations = l.leastOperations = rows * cost.operations * logits / 4;
      }
    l.seconds =
        std::max(l.leastBytes / gpu.bytesPerSecond, l.leastOperations / gpu.operationsPerSecond);
    step.launches.push_back(std::move(l));
  }

  const fbs::Plan &plan;
  const CudaGpu &gpu;
  Step &step;
  StepDims dims;
};

template <typename... T> std::string format(const char *text, T... values) {
  char line[128];
  std::snprintf(line, sizeof line, text, values...);
  return line;
}

double ratio(double a, double b) { return b > 0 ? a / b : 1; }

void printText(const CudaGpu &gpu, const Step &step, std::ostream &out) {
  const CudaArch &arch = *findCudaArch(gpu.arch);
  out << format("\n%s, %s of %lld token%s at context %lld on %s (%s, %.0f GB/s, %.0f TFLOPS f16): ",
                step.name.c_str(), "step", static_cast<long long>(step.shape.tokens),
                step.shape.tokens == 1 ? "" : "s", static_cast<long long>(step.shape.context),
                std::string(gpu.name).c_str(), std::string(gpu.arch).c_str(),
                gpu.bytesPerSecond / 1e9, gpu.operationsPerSecond / 1e12)
      << format("%.1f us by the roofline in %lld launches, at most %.0f tokens/s\n",
                step.seconds * 1e6, static_cast<long long>(step.count),
                ratio(double(step.shape.tokens), step.seconds));
  Table table({"kernel", "used", "blocks", "bytes", "x least", "GFLOP", "x least", "us", "bound by",
               "registers", "shared", "blocks/SM", "occupancy", "limited by", "banks", "sectors"});
  for (const Launch &l : step.launches) {
    Occupancy o =
        occupancy(arch, l.kernel->block(), l.kernel->registers(), l.kernel->shared_bytes());
    const bool memory =
        l.leastBytes / gpu.bytesPerSecond >= l.leastOperations / gpu.operationsPerSecond;
    table.add({l.entry, std::to_string(l.used), std::to_string(l.blocks), formatBytes(l.leastBytes),
               format("%.2f", ratio(l.bytes, l.leastBytes)),
               format("%.4f", l.leastOperations / 1e9),
               format("%.2f", ratio(l.operations, l.leastOperations)),
               format("%.2f", l.seconds * 1e6), memory ? "memory" : "arithmetic",
               std::to_string(l.kernel->registers()), std::to_string(l.kernel->shared_bytes()),
               std::to_string(o.blocks), format("%.0f %%", 100 * o.warps), std::string(o.limit),
               l.traffic ? format("%.2f", l.traffic->banks) : "-",
               l.traffic ? format("%.2f", l.traffic->sectors) : "-"});
  }
  table.print(out);
}

void printJson(JsonWriter &j, const CudaGpu &gpu, const Step &step) {
  const CudaArch &arch = *findCudaArch(gpu.arch);
  j.object([&] {
    j.key("gpu").value(gpu.name);
    j.key("target").value(gpu.arch);
    j.key("step").value(step.name);
    j.key("tokens").value(step.shape.tokens);
    j.key("context").value(step.shape.context);
    j.key("launches").value(step.count);
    j.key("predicted_s").value(step.seconds);
    j.key("kernels").array([&] {
      for (const Launch &l : step.launches)
        j.object([&] {
          Occupancy o =
              occupancy(arch, l.kernel->block(), l.kernel->registers(), l.kernel->shared_bytes());
          j.key("name").value(l.entry);
          j.key("used").value(l.used);
          j.key("blocks").value(l.blocks);
          j.key("bytes").value(l.bytes);
          j.key("least_bytes").value(l.leastBytes);
          j.key("operations").value(l.operations);
          j.key("least_operations").value(l.leastOperations);
          j.key("predicted_s").value(l.seconds);
          j.key("registers").value(l.kernel->registers());
          j.key("shared_bytes").value(l.kernel->shared_bytes());
          j.key("blocks_per_sm").value(o.blocks);
          j.key("occupancy").value(o.warps);
          if (l.traffic) {
            j.key("bank_wavefronts_over_least").value(l.traffic->banks);
            j.key("sectors_over_least").value(l.traffic->sectors);
          }
        });
    });
  });
}

} // namespace

int explainCudaMain(const std::string &path, const ExplainOptions &options, std::ostream &out,
                    std::ostream &err) {
  auto fail = [&](const std::string &what) {
    err << "error: " << what << std::endl;
    return 1;
  };
  auto opened = Plan::open(path);
  if (!opened)
    return fail(opened.status().message());
  const fbs::Plan &head = (*opened)->head();
  const int64_t most = int64_t(head.model()->max_context()) - 1;
  if (options.context > most || options.tokens > int64_t(head.model()->max_context()))
    return fail("--context and --tokens are beyond the model's context of " +
                std::to_string(head.model()->max_context()));
  std::vector<std::pair<const CudaGpu *, Step>> steps;
  for (const std::string &name : options.gpus)
    for (const CudaGpu &gpu : cudaGpus()) {
      if (gpu.name != name)
        continue;
      bool has = false;
      if (head.cuda_kernels())
        for (const fbs::CudaKernel *k : *head.cuda_kernels())
          has |= k->sm()->string_view() == gpu.arch;
      if (!has)
        return fail(path + ": has no code for " + std::string(gpu.arch) + ", which " + name +
                    " runs; compile the model with --target cuda:" + std::string(gpu.arch));
      const int64_t context =
          options.context >= 0 ? options.context : std::min(defaultContext, most);
      steps.push_back({&gpu, {"decode", {1, 1, context}}});
      if (options.tokens > 0)
        steps.push_back({&gpu, {"prefill", {options.tokens, 1, 0}}});
    }
  for (auto &[gpu, step] : steps)
    Estimate(head, *gpu, step).run();
  if (options.json) {
    JsonWriter j(out);
    j.object([&] {
      j.key("steps").array([&] {
        for (auto &[gpu, step] : steps)
          printJson(j, *gpu, step);
      });
    });
  } else {
    for (auto &[gpu, step] : steps)
      printText(*gpu, step, out);
  }
  if (!out.flush())
    return fail("writing the output failed");
  return 0;
}

} // namespace llmc::tools
