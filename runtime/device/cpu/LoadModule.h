//===- LoadModule.h - the code of a plan for this machine --------------------===//
#ifndef LLMRT_DEVICE_CPU_LOADMODULE_H
#define LLMRT_DEVICE_CPU_LOADMODULE_H

#include "runtime/device/cpu/CodeModule.h"
#include "runtime/device/cpu/CpuLevel.h"
#include "runtime/plan/Plan.h"

namespace llmrt {

struct LoadedModule {
  CodeModule code;
  CpuLevel level;
  uint32_t abi;  ///< LLMRT_KERNEL_ABI when it was compiled
  bool isLesser; ///< the machine could run better code, which the plan lacks
};

/// Loads the best code module that this machine runs, or the one that LLMRT_CPU_LEVEL names.
Result<LoadedModule> loadModule(const Plan &plan);

} // namespace llmrt

#endif // LLMRT_DEVICE_CPU_LOADMODULE_H
