//===- DeviceEngine.h - an engine on the device that a plan is for ----------===//
#ifndef LLMRT_ENGINE_DEVICEENGINE_H
#define LLMRT_ENGINE_DEVICEENGINE_H

#include "runtime/engine/CpuEngine.h"

#include <string>
#include <string_view>

namespace llmrt {

/// Where a plan runs.
struct DeviceChoice {
  enum class Kind { Plan, Cpu, Cuda }; ///< Plan: see resolveDevice()
  Kind kind = Kind::Plan;
  int ordinal = 0; ///< CUDA: among the devices that CUDA_VISIBLE_DEVICES leaves
};

/// "cpu", "cuda" or "cuda:N"; "" is what the plan is for.
Result<DeviceChoice> parseDevice(std::string_view text);

/// What code a plan has.
bool hasCpuCode(const fbs::Plan &plan);
bool hasCudaCode(const fbs::Plan &plan);
/// Where createEngine runs the plan: its only target; of both, CUDA where this machine has a
/// device, and the CPU elsewhere.
Result<DeviceChoice> resolveDevice(const Plan &plan, DeviceChoice choice);

struct EngineOptions : CpuEngineOptions {
  DeviceChoice device;
};

/// An engine on that device. Unsupported: the machine lacks it, or the plan has no code for it.
Result<std::unique_ptr<Engine>> createEngine(std::shared_ptr<const Plan> plan,
                                             const EngineOptions &options);

/// What runs an engine, for people: "cpu", "device 0 (NVIDIA H200, sm_90)".
std::string deviceName(Engine &engine);

} // namespace llmrt

#endif // LLMRT_ENGINE_DEVICEENGINE_H
