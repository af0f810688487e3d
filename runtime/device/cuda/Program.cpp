#include "runtime/device/cuda/Program.h"

#include "runtime/device/cuda/Architecture.h"
#include "runtime/plan/PlanFormat.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace llmrt::cuda {
namespace {

struct Grid {
  int64_t x, y, z;
};

int64_t divideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

Grid gridOf(const fbs::CudaKernel &k, const LaunchShape &shape) {
  auto size = [&](const fbs::Affine *a, uint32_t divide) {
    return divideUp(evaluate(*a, shape.dims), std::max<int64_t>(1, divide));
  };
  Grid g{size(k.grid_x(), k.divide_x()), size(k.grid_y(), k.divide_y()),
         size(k.grid_z(), k.divide_z())};
  if (k.context_split() != 0)
    g.z *= divideUp(shape.longestContext, k.context_split());
  return g;
}

/// What every device of compute capability 8.0 and later can launch.
bool launchable(const Grid &g) { return g.x <= 0x7fffffff && g.y <= 65535 && g.z <= 65535; }

bool constantIsOne(const fbs::Kernel &k, std::string_view name) {
  for (const fbs::Constant *c : *k.constants())
    if (c->name()->string_view() == name)
      return c->value() == 1;
  return false;
}

} // namespace

Result<Program> Program::load(const Device &device, std::shared_ptr<const Plan> plan,
                              const StepDims &largest) {
  Program p;
  p.plan_ = std::move(plan);
  const fbs::Plan &head = p.plan_->head();
  std::vector<std::string> names;
  if (head.cuda_kernels())
    for (const fbs::CudaKernel *k : *head.cuda_kernels())
      if (std::find(names.begin(), names.end(), k->sm()->string_view()) == names.end())
        names.push_back(k->sm()->str());
  Result<size_t> chosen = chooseArchitecture(names, device.major(), device.minor());
  if (!chosen)
    return chosen.status().withContext(p.plan_->name() + ", " + device.name());
  p.architecture_ = names[*chosen];
  LLMRT_RETURN_IF_ERROR(p.loadModules(device));
  LLMRT_RETURN_IF_ERROR(p.prepareCommands(device, largest));

  p.layout_.update(head, largest);
  p.arenaBytes_ = p.layout_.total();
  p.outputOffsets_.resize(head.outputs()->size());
  for (const fbs::Output *output : *head.outputs())
    p.arenaBytes_ += alignUp(uint64_t(evaluate(*output->size(), largest)), kPlanAlignment);
  return p;
}

Status Program::loadModules(const Device &device) {
  const fbs::Plan &head = plan_->head();
  const Driver &driver = device.driver();
  modules_.resize(head.modules()->size());
  std::set<uint32_t> needed;
  for (const fbs::CudaKernel *k : *head.cuda_kernels())
    if (k->sm()->string_view() == architecture_)
      needed.insert(k->module_());
  if (head.cuda_sampling())
    for (const fbs::CudaKernel *k : *head.cuda_sampling())
      if (k->sm()->string_view() == architecture_)
        needed.insert(k->module_());
  for (uint32_t index : needed) {
    const fbs::CodeModule &m = *head.modules()->Get(index);
    std::span<const uint8_t> bytes = plan_->segment(m.segment());
    std::string code(bytes.begin(), bytes.end()); // with a zero at the end, as PTX needs it
    char log[4096] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
    CUmodule module = nullptr;
    CUresult r = driver.ModuleLoadDataEx(&module, code.c_str(), 2, options, values);
    if (r == CUDA_ERROR_OUT_OF_MEMORY)
      return driver.check(r, "loading code '" + m.level()->str() + "'");
    if (r != CUDA_SUCCESS)
      return unsupported(plan_->name() + ": " + device.name() + " does not take the code '" +
                         m.level()->str() + "': " + driver.describe(r) +
                         (*log ? ": " + std::string(log) : std::string()));
    modules_[index] = {&driver, module};
  }
  return Status::ok();
}

Result<CUfunction> Program::prepareLaunch(const Device &device, const fbs::CudaKernel &k,
                                          const LaunchShape &most) {
  const Driver &driver = device.driver();
  std::string entry = k.entry()->str();
  auto fail = [&](const std::string &what) {
    return unsupported(plan_->name() + ", " + device.name() + ": kernel '" + entry + "' " + what);
  };
  CUfunction function = nullptr;
  if (CUresult r = driver.ModuleGetFunction(&function, modules_[k.module_()].get(), entry.c_str());
      r != CUDA_SUCCESS)
    return invalidFile(plan_->name() + ": the code '" +
                       plan_->head().modules()->Get(k.module_())->level()->str() +
                       "' has no kernel '" + entry + "': " + driver.describe(r));
  if (int64_t(k.shared_bytes()) > device.maxSharedBytes())
    return fail("needs " + std::to_string(k.shared_bytes()) +
                " bytes of shared memory a block; the device has " +
                std::to_string(device.maxSharedBytes()));
  // Beyond 48 KiB it must be asked for; asking also loads the function now, which a driver that
  // loads lazily could not do while a graph is captured.
  LLMRT_RETURN_IF_ERROR(driver.check(
      driver.FuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                              int(k.shared_bytes())),
      "kernel '" + entry + "'"));
  if (!launchable(gridOf(k, most)))
    return fail("has a grid beyond what a device launches in the largest step; allow fewer "
                "tokens a step or a shorter context");
  return function;
}

Status Program::prepareSampling(const Device &device, const LaunchShape &most) {
  const fbs::Plan &head = plan_->head();
  if (!head.cuda_sampling())
    return Status::ok();
  for (const fbs::CudaKernel *k : *head.cuda_sampling()) {
    if (k->sm()->string_view() != architecture_)
      continue;
    LLMRT_ASSIGN_OR_RETURN(CUfunction function, prepareLaunch(device, *k, most));
    samplingScratchBytes_ =
        std::max(samplingScratchBytes_, uint64_t(evaluate(*k->scratch(), most.dims)));
    sampling_.push_back({function, k});
  }
  if (draws())
    tokensBytes_ = alignUp(uint64_t(most.dims.R) * sizeof(int32_t), 256);
  return Status::ok();
}

Status Program::prepareCommands(const Device &device, const StepDims &largest) {
  const fbs::Plan &head = plan_->head();
  // Every way to launch each kernel, on this architecture.
  struct Way {
    fbs::CudaWhen when;
    Launch launch;
  };
  std::vector<std::vector<Way>> ways(head.kernels()->size());
  LaunchShape most{largest, int64_t(head.model()->max_context()), true, true};
  for (const fbs::CudaKernel *k : *head.cuda_kernels()) {
    if (k->sm()->string_view() != architecture_)
      continue;
    LLMRT_ASSIGN_OR_RETURN(CUfunction function, prepareLaunch(device, *k, most));
    contextSplit_ = contextSplit_ == 0 ? k->context_split()
                    : k->context_split() == 0
                        ? contextSplit_
                        : std::min<int64_t>(contextSplit_, k->context_split());
    scratchBytes_ = std::max(scratchBytes_, uint64_t(evaluate(*k->scratch(), largest)));
    ways[k->kernel()].push_back({k->when(), {function, k}});
  }
  LLMRT_RETURN_IF_ERROR(prepareSampling(device, most));
  for (const fbs::Command *command : *head.commands()) {
    const fbs::Kernel &kernel = *head.kernels()->Get(command->kernel());
    const std::vector<Way> &list = ways[command->kernel()];
    if (list.empty())
      return unsupported(plan_->name() + ": kernel '" + kernel.symbol()->str() +
                         "' has no code for " + architecture_);
    if (command->bindings()->size() > LLMRT_CUDA_MAX_BINDINGS ||
        command->scalars()->size() > LLMRT_CUDA_MAX_SCALARS)
      return invalidFile(plan_->name() + ": command '" + command->name()->str() +
                         "' has more bindings or scalars than a CUDA kernel takes");
    Command c{};
    c.perRow = constantIsOne(kernel, "rows");
    c.command = command;
    for (const Way &way : list) {
      if (c.launches[size_t(way.when)].empty())
        c.order.push_back(way.when);
      c.launches[size_t(way.when)].push_back(way.launch);
    }
    for (uint32_t i = 0; i < command->scalars()->size(); ++i)
      c.bindings.scalars[i] = command->scalars()->Get(i);
    commands_.push_back(std::move(c));
  }
  return Status::ok();
}

void Program::setMemory(const WeightMemory &weights, CUdeviceptr arena, CUdeviceptr scratch,
                        std::vector<CUdeviceptr> steps, const KvGroups &groups) {
  const fbs::Plan &head = plan_->head();
  arena_ = arena;
  steps_ = std::move(steps);
  moving_.clear();
  for (uint32_t i = 0; i < commands_.size(); ++i) {
    Command &c = commands_[i];
    c.bindings.scratch = reinterpret_cast<void *>(scratch);
    // A layer lies elsewhere in its group's blocks than in those of all layers, for which the plan
    // names its place.
    if (steps_.size() > 1 &&
        KvGroups::hasPrefix(head.kernels()->Get(c.command->kernel())->kind()->string_view())) {
      KvGroups::Place place = groups.place(c.command->scalars()->Get(0));
      c.bindings.scalars[0] = place.prefix;
      c.pool = place.group;
    }
    for (uint32_t b = 0; b < c.command->bindings()->size(); ++b) {
      const fbs::Binding &binding = *c.command->bindings()->Get(b);
      switch (binding.kind()) {
      case fbs::BindingKind::Weight: {
        const fbs::Weight &w = *head.weights()->Get(binding.index());
        c.bindings.pointers[b] = weights[w.segment()].pointer(w.offset());
        break;
      }
      case fbs::BindingKind::Buffer:
        moving_.push_back({i, b, head.buffers()->Get(binding.index())->slot(), false});
        break;
      case fbs::BindingKind::Output:
        moving_.push_back({i, b, binding.index(), true});
        break;
      }
    }
  }
  bound_ = {-1, -1, -1, -1};
}

Status Program::setCache(const Driver &driver, std::span<const KvMemory> pools) {
  for (Command &c : commands_) {
    const fbs::Kernel &kernel = *plan_->head().kernels()->Get(c.command->kernel());
    const KvMemory &memory = pools[c.pool];
    if (memory.blocks == 0 || !takesKvMaps(kernel, architecture_))
      continue;
    LLMRT_ASSIGN_OR_RETURN(c.maps, encodeKvMaps(driver, kernel, c.bindings.scalars[0], memory));
  }
  return Status::ok();
}

void Program::bind(const StepDims &dims) {
  if (dims.T == bound_.T && dims.S == bound_.S && dims.R == bound_.R && dims.Q == bound_.Q)
    return;
  const fbs::Plan &head = plan_->head();
  layout_.update(head, dims);
  uint64_t end = layout_.total();
  for (uint32_t i = 0; i < outputOffsets_.size(); ++i) {
    outputOffsets_[i] = end;
    end += alignUp(uint64_t(evaluate(*head.outputs()->Get(i)->size(), dims)), kPlanAlignment);
  }
  for (const Moving &m : moving_)
    commands_[m.command].bindings.pointers[m.binding] = reinterpret_cast<void *>(
        arena_ + (m.output ? outputOffsets_[m.index] : layout_.offsets()[m.index]));
  logits_ = arena_ + outputOffsets_[0];
  bound_ = dims;
}

Status Program::launchOne(const Driver &driver, CUstream stream, const Launch &launch,
                          const LaunchShape &shape, CUdeviceptr step, LlmrtCudaBindings &bindings,
                          LlmrtKvMaps *maps, bool blocking, std::string_view command) {
  Grid g = gridOf(*launch.how, shape);
  if (g.x == 0 || g.y == 0 || g.z == 0)
    return Status::ok();
  void *parameters[] = {&step, &bindings, maps}; // a kernel takes as many as it has parameters
  CUresult r = driver.LaunchKernel(launch.function, unsigned(g.x), unsigned(g.y), unsigned(g.z),
                                   launch.how->block(), 1, 1, launch.how->shared_bytes(), stream,
                                   parameters, nullptr);
  if (r == CUDA_SUCCESS && blocking)
    r = driver.StreamSynchronize(stream);
  if (r == CUDA_SUCCESS)
    return Status::ok();
  return driver.check(r, plan_->name() + ": command '" + std::string(command) + "', kernel '" +
                             launch.how->entry()->str() + "'");
}

void Program::setSamplingMemory(CUdeviceptr memory) {
  samplingBindings_.pointers[1] = reinterpret_cast<void *>(memory);
  samplingBindings_.scratch = reinterpret_cast<void *>(memory + tokensBytes_);
}

Status Program::launchSampling(const Driver &driver, CUstream stream, const LaunchShape &shape,
                               bool blocking) {
  samplingBindings_.pointers[0] = reinterpret_cast<void *>(logits_);
  for (const Launch &launch : sampling_)
    LLMRT_RETURN_IF_ERROR(launchOne(driver, stream, launch, shape, steps_[0], samplingBindings_,
                                    nullptr, blocking, "sampling"));
  return Status::ok();
}

Status Program::launch(const Driver &driver, CUstream stream, const LaunchShape &shape,
                       bool blocking) {
  bind(shape.dims);
  for (Command &c : commands_) {
    int64_t rows = c.perRow ? shape.dims.R : shape.dims.T;
    for (fbs::CudaWhen when : c.order) {
      if ((when == fbs::CudaWhen::LongTiles && !shape.longTiles) ||
          (when == fbs::CudaWhen::SingleTiles && !shape.singleTiles))
        continue;
      const Launch *launch = nullptr;
      for (const Launch &l : c.launches[size_t(when)])
        if (l.how->max_rows() == 0 || rows <= l.how->max_rows()) {
          launch = &l;
          break;
        }
      if (!launch)
        return unsupported(plan_->name() + ": command '" + c.command->name()->str() +
                           "' has no kernel for " + std::to_string(rows) + " rows");
      LLMRT_RETURN_IF_ERROR(launchOne(driver, stream, *launch, shape, steps_[c.pool], c.bindings,
                                      &c.maps, blocking, c.command->name()->string_view()));
    }
  }
  return Status::ok();
}

int64_t Program::contextPieces(int64_t context) const {
  return contextSplit_ == 0 ? 1 : std::max<int64_t>(1, divideUp(context, contextSplit_));
}

} // namespace llmrt::cuda
