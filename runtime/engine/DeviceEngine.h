//===- DeviceEngine.h - an engine on the device that a plan is for ----------===//
#ifndef LLMRT_ENGINE_DEVICEENGINE_H
#define LLMRT_ENGINE_DEVICEENGINE_H

#include "runtime/engine/CpuEngine.h"

#include <string>
#include <string_view>

namespace llmrt {

/// Where a plan runs.
struct DeviceChoice {
  enum class Kind { Plan, Cpu, Cuda }; ///< Plan: what its code is for
  Kind kind = Kind::Plan;
  int ordinal = 0; ///< CUDA: among the devices that CUDA_VISIBLE_DEVICES leaves
};

/// "cpu", "cuda" or "cuda:N"; "" is what the plan is for.
Result<DeviceChoice> parseDevice(std::string_view text);

/// Whether the plan's code is for CUDA: a plan's commands are all for one target.
bool isForCuda(const fbs::Plan &plan);

struct EngineOptions : CpuEngineOptions {
  DeviceChoice device;
};

/// An engine with the executor of the plan's target. Unsupported: the machine lacks the device, or
/// the plan has no code for the one that was asked for.
Result<std::unique_ptr<Engine>> createEngine(std::shared_ptr<const Plan> plan,
                                             const EngineOptions &options);

/// What runs an engine, for people: "cpu", "device 0 (NVIDIA H200, sm_90)".
std::string deviceName(Engine &engine);

} // namespace llmrt

#endif // LLMRT_ENGINE_DEVICEENGINE_H
