#include "runtime/engine/DeviceEngine.h"

#include "runtime/device/cuda/CudaExecutor.h"

#include <charconv>

namespace llmrt {
namespace {

/// The share of a device's free memory that the KV cache takes by default.
constexpr uint64_t kvPercent = 90;

Result<std::unique_ptr<Engine>> createCudaEngine(std::shared_ptr<const Plan> plan,
                                                 const EngineOptions &options) {
  if (options.speculation.method == SpeculativeConfig::Method::DraftModel)
    return unsupported("a draft model is not supported on cuda; the speculative methods ngram and "
                       "suffix are");
  ModelShape shape = modelShape(plan->head());
  LLMRT_ASSIGN_OR_RETURN(EngineLimits limits, engineLimits(shape, options));
  CudaExecutorOptions device;
  device.device = options.device.ordinal;
  device.largest = largestStep(limits, shape);
  LLMRT_ASSIGN_OR_RETURN(auto executor, CudaExecutor::create(std::move(plan), device));
  LLMRT_ASSIGN_OR_RETURN(uint64_t room, executor->kvRoom());
  sizeKvPools(shape, options, limits, room / 100 * kvPercent);
  LLMRT_ASSIGN_OR_RETURN(auto drafter, makeDrafter(options, limits));
  return Engine::create(std::move(executor), limits, std::move(drafter));
}

} // namespace

bool hasCpuCode(const fbs::Plan &plan) {
  for (const fbs::CodeModule *module : *plan.modules())
    if (module->target() == fbs::Target::Cpu)
      return true;
  return false;
}

bool hasCudaCode(const fbs::Plan &plan) {
  return plan.cuda_kernels() && plan.cuda_kernels()->size() != 0;
}

Result<DeviceChoice> parseDevice(std::string_view text) {
  DeviceChoice choice;
  if (text.empty())
    return choice;
  if (text == "cpu") {
    choice.kind = DeviceChoice::Kind::Cpu;
    return choice;
  }
  choice.kind = DeviceChoice::Kind::Cuda;
  if (text == "cuda")
    return choice;
  if (text.starts_with("cuda:")) {
    std::string_view number = text.substr(5);
    auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), choice.ordinal);
    if (error == std::errc() && end == number.data() + number.size() && choice.ordinal >= 0)
      return choice;
  }
  return invalidArgument("'" + std::string(text) +
                         "' is no device; there are cpu, cuda and cuda:N (N counts from 0)");
}

Result<DeviceChoice> resolveDevice(const Plan &plan, DeviceChoice choice) {
  using Kind = DeviceChoice::Kind;
  bool cuda = hasCudaCode(plan.head()), cpu = hasCpuCode(plan.head());
  if (choice.kind == Kind::Cuda && !cuda)
    return unsupported(plan.name() + ": the plan has code for CPUs only; compile the model with "
                                     "--target cuda");
  if (choice.kind == Kind::Cpu && !cpu)
    return unsupported(plan.name() + ": the plan has code for CUDA only; compile the model with "
                                     "--target cpu");
  if (choice.kind == Kind::Plan)
    choice.kind = cuda && (!cpu || cuda::Driver::load()) ? Kind::Cuda : Kind::Cpu;
  return choice;
}

Result<std::unique_ptr<Engine>> createEngine(std::shared_ptr<const Plan> plan,
                                             const EngineOptions &options) {
  EngineOptions resolved = options;
  LLMRT_ASSIGN_OR_RETURN(resolved.device, resolveDevice(*plan, options.device));
  if (resolved.device.kind == DeviceChoice::Kind::Cuda)
    return createCudaEngine(std::move(plan), resolved);
  return createCpuEngine(std::move(plan), resolved);
}

std::string deviceName(Engine &engine) {
  auto *cuda = dynamic_cast<CudaExecutor *>(&engine.executor());
  return cuda ? cuda->deviceName() : "cpu";
}

} // namespace llmrt
