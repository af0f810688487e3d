//===- Program.h - a plan's commands as launches on a device ----------------===//
#ifndef LLMRT_DEVICE_CUDA_PROGRAM_H
#define LLMRT_DEVICE_CUDA_PROGRAM_H

#include "runtime/device/cuda/Device.h"
#include "runtime/device/cuda/Handles.h"
#include "runtime/device/cuda/KernelAbi.h"
#include "runtime/device/cuda/KvMaps.h"
#include "runtime/device/cuda/WeightUpload.h"
#include "runtime/plan/ArenaLayout.h"
#include "runtime/plan/KvGroups.h"
#include "runtime/plan/Plan.h"

#include <memory>
#include <span>
#include <vector>

namespace llmrt::cuda {

/// What decides a launch besides the step's sizes.
struct LaunchShape {
  StepDims dims;
  int64_t longestContext = 0; ///< tokens
  bool longTiles = false;     ///< a query tile has two tokens or more
  bool singleTiles = false;   ///< one has one
};

/// The functions that the device runs for each command, and what they are given. launch()
/// allocates nothing.
class Program {
public:
  /// Loads the code of the best architecture for the device. Unsupported: none, or one that needs
  /// more than the device has; the message names kernel and numbers.
  static Result<Program> load(const Device &device, std::shared_ptr<const Plan> plan,
                              const StepDims &largest);

  const std::string &architecture() const { return architecture_; }
  /// Bytes of the arena (slots, then outputs) and of the workspace for the largest step.
  uint64_t arenaBytes() const { return arenaBytes_; }
  uint64_t scratchBytes() const { return scratchBytes_; }
  /// The memory that commands work on; it outlives the program. \p steps has an address for each
  /// KV pool: one for all layers, or one for each of \p groups.
  void setMemory(const WeightMemory &weights, CUdeviceptr arena, CUdeviceptr scratch,
                 std::vector<CUdeviceptr> steps, const KvGroups &groups);

  /// The cache that attention works on, pool by pool, after setMemory(); it outlives the program.
  Status setCache(const Driver &driver, std::span<const KvMemory> pools);

  /// Puts all commands in \p stream. With \p blocking each is waited for, and a failure names its
  /// command and kernel.
  Status launch(const Driver &driver, CUstream stream, const LaunchShape &shape, bool blocking);
  /// Whether it can draw tokens, and the memory that takes: tokens i32[R], then a workspace.
  bool draws() const { return !sampling_.empty(); }
  uint64_t samplingBytes() const { return tokensBytes_ + samplingScratchBytes_; }
  void setSamplingMemory(CUdeviceptr memory);
  /// Puts the draws from the logits of the last launch in \p stream; the tokens go to the beginning
  /// of the sampling memory.
  Status launchSampling(const Driver &driver, CUstream stream, const LaunchShape &shape,
                        bool blocking);
  /// Where the last launch put the logits, an address in the arena.
  CUdeviceptr logits() const { return logits_; }

  /// The most pieces that a context is split into by any kernel, for \p context tokens.
  int64_t contextPieces(int64_t context) const;
  /// The longest context that is split into that many.
  int64_t contextOf(int64_t pieces) const { return pieces * contextSplit_; }

private:
  struct Launch {
    CUfunction function;
    const fbs::CudaKernel *how;
  };
  struct Command {
    std::vector<Launch> launches[3]; ///< by CudaWhen, in the plan's order
    std::vector<fbs::CudaWhen> order;
    bool perRow; ///< M is R
    const fbs::Command *command;
    LlmrtCudaBindings bindings;
    LlmrtKvMaps maps;  ///< zeros where takesKvMaps() is false
    uint32_t pool = 0; ///< whose step it is given
  };
  /// A binding whose address follows from the step's sizes.
  struct Moving {
    uint32_t command, binding, index;
    bool output;
  };

  Status loadModules(const Device &device);
  /// The function of \p k, which this device can launch for \p most.
  Result<CUfunction> prepareLaunch(const Device &device, const fbs::CudaKernel &k,
                                   const LaunchShape &most);
  Status prepareSampling(const Device &device, const LaunchShape &most);
  Status launchOne(const Driver &driver, CUstream stream, const Launch &launch,
                   const LaunchShape &shape, CUdeviceptr step, LlmrtCudaBindings &bindings,
                   LlmrtKvMaps *maps, bool blocking, std::string_view command);
  Status prepareCommands(const Device &device, const StepDims &largest);
  void bind(const StepDims &dims);

  std::shared_ptr<const Plan> plan_;
  std::string architecture_;
  std::vector<ModuleOwner> modules_; ///< by the plan's index
  std::vector<Command> commands_;
  std::vector<Moving> moving_;
  std::vector<Launch> sampling_;
  LlmrtCudaBindings samplingBindings_{};
  uint64_t tokensBytes_ = 0, samplingScratchBytes_ = 0;
  std::vector<uint64_t> outputOffsets_;
  ArenaLayout layout_;
  uint64_t arenaBytes_ = 0, scratchBytes_ = 0;
  int64_t contextSplit_ = 0; ///< 0: no kernel splits the context
  CUdeviceptr arena_ = 0, logits_ = 0;
  std::vector<CUdeviceptr> steps_; ///< of each KV pool
  StepDims bound_{-1, -1, -1, -1};
};

} // namespace llmrt::cuda

#endif // LLMRT_DEVICE_CUDA_PROGRAM_H
