//===- CpuExecutor.h - runs a plan's CPU kernels ----------------------------===//
#ifndef LLMRT_DEVICE_CPU_CPUEXECUTOR_H
#define LLMRT_DEVICE_CPU_CPUEXECUTOR_H

#include "runtime/device/Memory.h"
#include "runtime/device/StepExecutor.h"
#include "runtime/device/cpu/AttentionItems.h"
#include "runtime/device/cpu/CodeModule.h"
#include "runtime/device/cpu/CpuLevel.h"
#include "runtime/device/cpu/KvRows.h"
#include "runtime/device/cpu/StepPredictor.h"
#include "runtime/device/cpu/ThreadPool.h"
#include "runtime/plan/ArenaLayout.h"
#include "runtime/plan/Plan.h"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace llmrt {

struct CpuExecutorOptions {
  unsigned threads = 0; ///< 0: chooseThreadCount
  /// The largest step that will be asked for; the arena is sized by it. Within the plan's limits.
  StepDims largest;
};

/// Binds every command of the plan to memory once a step shape, and runs them as the phases of one
/// parallel region. A step allocates nothing.
class CpuExecutor final : public StepExecutor {
public:
  /// Chooses the code for this machine (LLMRT_CPU_LEVEL forces a level) and loads it. Unsupported:
  /// no such code; ResourceExhausted: memory or threads.
  static Result<std::unique_ptr<CpuExecutor>> create(std::shared_ptr<const Plan> plan,
                                                     const CpuExecutorOptions &options);

  const ModelShape &shape() const override { return shape_; }
  Status createKvPool(int64_t blocks, int64_t blockTokens) override;
  Status createKvPools(std::span<const int64_t> blocks, int64_t blockTokens) override;
  void clearKvBlock(int32_t block, uint32_t group) override;
  Status copyKvBlock(int32_t from, int32_t to, uint32_t group) override;
  uint64_t kvBlockBytes(uint32_t group) const override { return pools_[group].blockBytes; }
  Status saveKvBlock(int32_t block, uint8_t *host, uint32_t group) override;
  Status loadKvBlock(int32_t block, const uint8_t *host, uint32_t group) override;
  bool takesTrees() const override { return takesTrees_; }
  void moveKv(int64_t from, int64_t to, uint32_t group) override;
  Status execute(LlmrtStep &step) override { return executeGroups(step, {}); }
  Status executeGroups(LlmrtStep &step, std::span<const KvTable> narrower) override;
  const float *logits() const override { return logits_; }
  /// By the defaults for the level; nobody measures a machine unasked.
  double predictSeconds(const LlmrtStep &step) override { return predictor_->seconds(step); }

  void addSlowFallbacks(SlowFallbackCounts &counts) const override {
    counts.of(SlowFallback::CodeLevel) += lesserCode_;
  }

  unsigned threads() const { return pool_->threads(); }
  CpuLevel level() const { return level_; }
  /// Bytes set aside for the largest step: slots, outputs and the threads' scratch.
  uint64_t arenaBytes() const { return arena_.size(); }

  /// Measures the commands of every step from now on: \p seconds has one number a command, to which
  /// each step adds the time from the end of the command before to the end of this one, waiting for
  /// threads included, so that they sum up to the steps. Empty ends it. Not owned.
  void measureCommands(std::span<double> seconds);

private:
  friend struct CpuExecutorPeer; ///< test/replay runs the commands one by one
  struct Command {
    LlmrtKernel kernel;
    const int64_t *scalars;
    uint32_t firstBinding; ///< index into bindings_
    uint32_t pool = 0;     ///< whose step it is given
  };
  /// The blocks of a group of layers, or of all.
  struct KvPool {
    Memory memory;
    uint64_t blockBytes = 0;
    LlmrtStep step; ///< the running one, with this pool's fields
  };
  /// A binding whose address follows from the step's shape.
  struct MovingBinding {
    uint32_t place; ///< index into bindings_
    uint32_t slot;  ///< of the arena, or an output
    bool output;
  };

  CpuExecutor(std::shared_ptr<const Plan> plan, CodeModule code)
      : plan_(std::move(plan)), code_(std::move(code)) {}
  Status prepare(const CpuExecutorOptions &options);
  Status prepareCommands();
  Status addPool(int64_t blocks, int64_t blockTokens, uint64_t bytesPerToken);
  void bind(const StepDims &dims);
  /// The tasks of attention for \p items.
  void countAttention(int64_t items);
  static void runTasks(void *context, uint32_t phase, int64_t begin, int64_t end, unsigned thread);
  /// The same, and notes when it was done.
  static void runTimedTasks(void *context, uint32_t phase, int64_t begin, int64_t end,
                            unsigned thread);
  void runMeasured();

  std::shared_ptr<const Plan> plan_;
  CodeModule code_;
  CpuLevel level_ = CpuLevel::None;
  bool lesserCode_ = false; ///< the plan has none for this machine's level
  bool takesTrees_ = false; ///< its code is new enough
  ModelShape shape_;
  std::unique_ptr<ThreadPool> pool_;
  std::optional<StepPredictor> predictor_;
  std::vector<Command> commands_;
  std::vector<void *> bindings_;
  std::vector<MovingBinding> moving_;
  std::vector<int64_t> taskCounts_;
  std::vector<uint32_t> attentionCommands_; ///< those with tasks a query tile
  std::optional<AttentionItems> items_;
  int64_t itemCount_ = 0; ///< that taskCounts_ are for
  std::vector<uint64_t> outputOffsets_;
  ArenaLayout layout_;
  Memory arena_; ///< slots, then outputs, then scratch, then attention's partial results
  uint64_t scratchOffset_ = 0, scratchBytes_ = 0;
  StepDims largest_, bound_;
  const float *logits_ = nullptr;
  uint8_t *kvBlock(int32_t block, uint32_t group) {
    return pools_[group].memory.data() + uint64_t(block) * pools_[group].blockBytes;
  }
  std::vector<KvPool> pools_;       ///< one, or one a group
  std::optional<KvRows> kvRows_;    ///< of the pools
  std::vector<int64_t> kvPrefixes_; ///< with several: of each command in its pool's blocks
  int64_t blockTokens_ = 0;
  std::span<double> seconds_;   ///< of the commands; empty: nobody measures
  std::vector<int64_t> doneAt_; ///< [threads, commands] nanoseconds; 0: took no task of it
};

/// The shape of \p plan.
ModelShape modelShape(const fbs::Plan &plan);

/// Bytes that each thread works in beside the arena's slots, whole pages. Nothing is allocated.
uint64_t scratchBytesAThread(const fbs::Plan &plan);

} // namespace llmrt

#endif // LLMRT_DEVICE_CPU_CPUEXECUTOR_H
