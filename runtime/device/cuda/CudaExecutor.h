//===- CudaExecutor.h - runs a plan's CUDA kernels --------------------------===//
//
// Weights, arena, workspace, KV pool and the step's arrays lie on the device. A step is one copy
// there, the commands in one stream, one copy of the drawn tokens back (of logits only for rows
// that the host draws from), and one wait at its end. Steps of decoding alone replay a graph that
// was captured for the next larger number of sequences and of pieces of context: the kernels take
// the step's own sizes from its arrays.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_DEVICE_CUDA_CUDAEXECUTOR_H
#define LLMRT_DEVICE_CUDA_CUDAEXECUTOR_H

#include "runtime/device/StepExecutor.h"
#include "runtime/device/cuda/Program.h"
#include "runtime/device/cuda/StepUpload.h"

#include <memory>
#include <vector>

namespace llmrt {

struct CudaExecutorOptions {
  int device = 0; ///< among those that CUDA_VISIBLE_DEVICES leaves
  /// The largest step that will be asked for, within the plan's limits.
  StepDims largest;
  bool graphs = true;
  /// Tokens are drawn on the device where the plan has code for it.
  bool draws = true;
};

class CudaExecutor final : public StepExecutor {
public:
  /// Opens the device, loads code and weights. Unsupported: no driver, no device, no code for it;
  /// ResourceExhausted: its memory does not suffice; the message has the numbers.
  static Result<std::unique_ptr<CudaExecutor>> create(std::shared_ptr<const Plan> plan,
                                                      const CudaExecutorOptions &options);
  ~CudaExecutor() override;

  const ModelShape &shape() const override { return shape_; }
  Status createKvPool(int64_t blocks, int64_t blockTokens) override {
    return createPools({&blocks, 1}, {&shape_.kvBytesPerToken, 1}, blockTokens);
  }
  Status createKvPools(std::span<const int64_t> blocks, int64_t blockTokens) override;
  void clearKvBlock(int32_t block, uint32_t group) override;
  Status copyKvBlock(int32_t from, int32_t to, uint32_t group) override;
  uint64_t kvBlockBytes(uint32_t group) const override { return pools_[group].blockBytes; }
  Status saveKvBlock(int32_t block, uint8_t *host, uint32_t group) override;
  Status loadKvBlock(int32_t block, const uint8_t *host, uint32_t group) override;
  Status execute(LlmrtStep &step) override { return executeGroups(step, {}); }
  Status executeGroups(LlmrtStep &step, std::span<const KvTable> narrower) override;
  const float *logits() const override {
    return reinterpret_cast<const float *>(hostLogits_.data());
  }

  RowDraws *rowDraws() override { return draws_.get(); }

  void addSlowFallbacks(SlowFallbackCounts &counts) const override {
    // PTX: code for an older GPU, as the driver translated it.
    counts.of(SlowFallback::CodeLevel) += program_->architecture().starts_with("compute_");
  }

  /// Bytes that a KV pool may have now.
  Result<uint64_t> kvRoom() const;
  const std::string &deviceName() const { return device_->name(); }
  const std::string &architecture() const { return program_->architecture(); }
  /// Steps that replayed a graph, and all steps, so far.
  uint64_t graphSteps() const { return graphSteps_; }
  uint64_t steps() const { return steps_; }

private:
  struct DecodeGraph {
    int64_t sequences, pieces; ///< it serves up to that many
    cuda::GraphExecOwner exec;
    cuda::CUdeviceptr logits;
  };

  CudaExecutor() = default;
  Status prepare(const CudaExecutorOptions &options);
  Status checkMemory(uint64_t needed, const std::string &parts) const;
  /// A graph for each power of two of sequences and of pieces of context.
  Status captureGraphs();
  /// Pools of \p blocks blocks, in one piece of memory.
  Status createPools(std::span<const int64_t> blocks, std::span<const uint64_t> bytesPerToken,
                     int64_t blockTokens);
  cuda::CUdeviceptr kvBlock(int32_t block, uint32_t group) const {
    return pools_[group].kv + uint64_t(block) * pools_[group].blockBytes;
  }
  /// Puts the copies of what the host needs of \p logits in the stream; \p draws: of tokens, too.
  Status copyResults(cuda::CUdeviceptr logits, int64_t rows, bool draws);
  const DecodeGraph *graphFor(const cuda::LaunchShape &shape) const;

  // In this order: what is below goes before the device's context does.
  std::shared_ptr<const Plan> plan_;
  std::unique_ptr<cuda::Device> device_;
  cuda::StreamOwner stream_;
  std::unique_ptr<cuda::Program> program_;
  cuda::WeightMemory weights_;
  cuda::DeviceBuffer arena_, scratch_, kv_;
  cuda::PinnedBuffer hostLogits_, hostTokens_;
  cuda::DeviceBuffer sampling_;     ///< drawn tokens, workspace
  std::unique_ptr<RowDraws> draws_; ///< null: the plan has no code for it
  cuda::StepUpload upload_;
  std::vector<DecodeGraph> graphs_;

  ModelShape shape_;
  StepDims largest_;
  int64_t blockTokens_ = 0;
  std::vector<cuda::StepUpload::Pool> pools_; ///< one, or one a group
  bool useGraphs_ = true, blocking_ = false;
  Status failure_; ///< a device that failed once answers nothing else
  uint64_t graphSteps_ = 0, steps_ = 0;
};

} // namespace llmrt

#endif // LLMRT_DEVICE_CUDA_CUDAEXECUTOR_H
