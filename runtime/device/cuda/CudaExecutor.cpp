#include "runtime/device/cuda/CudaExecutor.h"

#include "runtime/device/cpu/CpuExecutor.h"
#include "runtime/plan/PlanFormat.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace llmrt {

using namespace cuda;

namespace {

/// Left for what the driver takes by itself (code, the context's own memory, fragmentation).
constexpr uint64_t reserveBytes = 64 << 20;
/// Where a KV pool begins (KernelAbi.h).
constexpr uint64_t kvAlignment = 256;

std::string mebibytes(uint64_t bytes) {
  return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB";
}

/// CUDA_LAUNCH_BLOCKING, as the driver reads it.
bool launchBlocking() {
  const char *value = std::getenv("CUDA_LAUNCH_BLOCKING");
  return value && std::string_view(value) == "1";
}

} // namespace

Result<std::unique_ptr<CudaExecutor>> CudaExecutor::create(std::shared_ptr<const Plan> plan,
                                                           const CudaExecutorOptions &options) {
  std::unique_ptr<CudaExecutor> executor(new CudaExecutor());
  executor->plan_ = std::move(plan);
  LLMRT_RETURN_IF_ERROR(executor->prepare(options));
  return executor;
}

CudaExecutor::~CudaExecutor() {
  if (!device_)
    return;
  // Nothing may run on memory that goes; a failure was reported by execute().
  (void)device_->makeCurrent();
  if (stream_)
    device_->driver().StreamSynchronize(stream_.get());
}

Status CudaExecutor::prepare(const CudaExecutorOptions &options) {
  const fbs::Plan &head = plan_->head();
  shape_ = modelShape(head);
  largest_ = options.largest;
  assert(largest_.T <= shape_.maxTokens && largest_.S <= shape_.maxSequences &&
         largest_.R <= shape_.maxRows && "beyond the plan's limits");
  blocking_ = launchBlocking();
  useGraphs_ = options.graphs && !blocking_;
  LLMRT_ASSIGN_OR_RETURN(device_, Device::open(options.device));
  const Driver &driver = device_->driver();
  CUstream stream = nullptr;
  LLMRT_RETURN_IF_ERROR(
      driver.check(driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING), "a stream"));
  stream_ = {&driver, stream};
  LLMRT_ASSIGN_OR_RETURN(Program program, Program::load(*device_, plan_, largest_));
  program_ = std::make_unique<Program>(std::move(program));

  uint64_t weights = weightBytes(*plan_), arena = program_->arenaBytes(),
           scratch = program_->scratchBytes(), sampling = program_->samplingBytes();
  LLMRT_RETURN_IF_ERROR(
      checkMemory(weights + arena + scratch + sampling,
                  mebibytes(weights) + " of weights, " + mebibytes(arena + scratch + sampling) +
                      " for steps of up to " + std::to_string(largest_.T) + " tokens"));
  LLMRT_ASSIGN_OR_RETURN(weights_, uploadWeights(driver, stream, *plan_));
  LLMRT_ASSIGN_OR_RETURN(arena_, DeviceBuffer::allocate(driver, arena, "the arena"));
  LLMRT_ASSIGN_OR_RETURN(scratch_, DeviceBuffer::allocate(driver, scratch, "the workspace"));
  if (scratch != 0)
    LLMRT_RETURN_IF_ERROR(driver.check(driver.MemsetD8Async(scratch_.address(), 0, scratch, stream),
                                       "the workspace"));
  LLMRT_ASSIGN_OR_RETURN(
      hostLogits_,
      PinnedBuffer::allocate(driver, size_t(largest_.R) * size_t(shape_.vocabulary) * sizeof(float),
                             "the logits"));
  if (program_->draws() && options.draws && largest_.R > 0) {
    LLMRT_ASSIGN_OR_RETURN(sampling_, DeviceBuffer::allocate(driver, sampling, "drawing tokens"));
    LLMRT_ASSIGN_OR_RETURN(
        hostTokens_,
        PinnedBuffer::allocate(driver, size_t(largest_.R) * sizeof(int32_t), "the tokens"));
    program_->setSamplingMemory(sampling_.address());
    draws_ = std::make_unique<RowDraws>(largest_.R);
  }
  return Status::ok();
}

Status CudaExecutor::checkMemory(uint64_t needed, const std::string &parts) const {
  LLMRT_ASSIGN_OR_RETURN(size_t free, device_->freeMemory());
  if (needed + reserveBytes <= free)
    return Status::ok();
  return resourceExhausted(plan_->name() + ": " + device_->name() + " has " + mebibytes(free) +
                           " of free memory; the model needs " + mebibytes(needed + reserveBytes) +
                           " (" + parts + ", " + mebibytes(reserveBytes) + " for the driver)");
}

Result<uint64_t> CudaExecutor::kvRoom() const {
  LLMRT_RETURN_IF_ERROR(device_->makeCurrent());
  LLMRT_ASSIGN_OR_RETURN(size_t free, device_->freeMemory());
  return free > reserveBytes ? free - reserveBytes : 0;
}

Status CudaExecutor::createKvPools(std::span<const int64_t> blocks, int64_t blockTokens) {
  assert(blocks.size() == shape_.kvGroups.size() && "a pool for each group");
  std::vector<uint64_t> bytes;
  for (const KvGroup &group : shape_.kvGroups)
    bytes.push_back(group.bytesPerToken);
  return createPools(blocks, bytes, blockTokens);
}

Status CudaExecutor::createPools(std::span<const int64_t> blocks,
                                 std::span<const uint64_t> bytesPerToken, int64_t blockTokens) {
  const Driver &driver = device_->driver();
  LLMRT_RETURN_IF_ERROR(device_->makeCurrent());
  uint64_t bytes = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    uint64_t block, pool;
    if (__builtin_mul_overflow(uint64_t(blockTokens), bytesPerToken[i], &block) ||
        __builtin_mul_overflow(block, uint64_t(blocks[i]), &pool) ||
        __builtin_add_overflow(bytes, alignUp(pool, kvAlignment), &bytes))
      return resourceExhausted("a KV pool of " + std::to_string(blocks[i]) + " blocks of " +
                               std::to_string(blockTokens) + " tokens is too big");
    pools_.push_back({bytes - alignUp(pool, kvAlignment), block});
  }
  blockTokens_ = blockTokens;
  std::string what = "a KV cache of " + std::to_string(blocks[0] * blockTokens) + " tokens (" +
                     mebibytes(bytes) + ")";
  LLMRT_RETURN_IF_ERROR(checkMemory(bytes, what));
  LLMRT_ASSIGN_OR_RETURN(kv_, DeviceBuffer::allocate(driver, bytes, what));
  if (bytes != 0)
    LLMRT_RETURN_IF_ERROR(
        driver.check(driver.MemsetD8Async(kv_.address(), 0, bytes, stream_.get()), what));
  int64_t maxBlocks = (shape_.maxContext + blockTokens - 1) / blockTokens;
  LLMRT_ASSIGN_OR_RETURN(
      upload_, StepUpload::create(driver, largest_, maxBlocks, pools_.size(), draws_ != nullptr));
  std::vector<CUdeviceptr> steps;
  std::vector<KvMemory> caches;
  for (size_t i = 0; i < pools_.size(); ++i) {
    pools_[i].kv += kv_.address();
    steps.push_back(upload_.address(i));
    caches.push_back({pools_[i].kv, blocks[i], blockTokens, pools_[i].blockBytes});
  }
  program_->setMemory(weights_, arena_.address(), scratch_.address(), std::move(steps),
                      KvGroups(*plan_->head().kv(), shape_.maxContext));
  LLMRT_RETURN_IF_ERROR(program_->setCache(driver, caches));
  LLMRT_RETURN_IF_ERROR(driver.check(driver.StreamSynchronize(stream_.get()), what));
  return useGraphs_ ? captureGraphs() : Status::ok();
}

Status CudaExecutor::captureGraphs() {
  const Driver &driver = device_->driver();
  graphs_.clear();
  const int64_t mostSequences = std::min({largest_.S, largest_.T, largest_.R, largest_.Q});
  const int64_t mostPieces = program_->contextPieces(shape_.maxContext);
  for (int64_t sequences = 1;; sequences = std::min(2 * sequences, mostSequences)) {
    for (int64_t pieces = 1;; pieces = std::min(2 * pieces, mostPieces)) {
      LaunchShape shape{{sequences, sequences, sequences, sequences},
                        std::max<int64_t>(1, program_->contextOf(pieces)),
                        false,
                        true};
      LLMRT_RETURN_IF_ERROR(driver.check(
          driver.StreamBeginCapture(stream_.get(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
          "capturing the decode step"));
      Status launched = program_->launch(driver, stream_.get(), shape, false);
      if (launched && draws_)
        launched = program_->launchSampling(driver, stream_.get(), shape, false);
      CUgraph graph = nullptr;
      CUresult ended = driver.StreamEndCapture(stream_.get(), &graph);
      GraphOwner owner(&driver, graph);
      LLMRT_RETURN_IF_ERROR(launched);
      LLMRT_RETURN_IF_ERROR(driver.check(ended, "capturing the decode step"));
      CUgraphExec exec = nullptr;
      LLMRT_RETURN_IF_ERROR(driver.check(driver.GraphInstantiateWithFlags(&exec, graph, 0),
                                         "the graph of the decode step"));
      graphs_.push_back({sequences, pieces, GraphExecOwner(&driver, exec), program_->logits()});
      if (pieces == mostPieces)
        break;
    }
    if (sequences == mostSequences)
      return Status::ok();
  }
}

const CudaExecutor::DecodeGraph *CudaExecutor::graphFor(const LaunchShape &shape) const {
  if (shape.longTiles || shape.dims.T != shape.dims.S || shape.dims.Q != shape.dims.S)
    return nullptr;
  int64_t pieces = program_->contextPieces(shape.longestContext);
  for (const DecodeGraph &g : graphs_) // ascending
    if (g.sequences >= shape.dims.S && g.sequences >= shape.dims.R && g.pieces >= pieces)
      return &g;
  return nullptr;
}

void CudaExecutor::clearKvBlock(int32_t block, uint32_t group) {
  const Driver &driver = device_->driver();
  Status s = device_->makeCurrent();
  if (uint64_t bytes = pools_[group].blockBytes; s && bytes != 0)
    s = driver.check(driver.MemsetD8Async(kvBlock(block, group), 0, bytes, stream_.get()),
                     "clearing a KV block");
  if (!s && failure_)
    failure_ = s; // the next step tells
}

// Copies are in the order of the steps, which the stream keeps.

Status CudaExecutor::copyKvBlock(int32_t from, int32_t to, uint32_t group) {
  const Driver &driver = device_->driver();
  LLMRT_RETURN_IF_ERROR(device_->makeCurrent());
  return driver.check(driver.MemcpyDtoDAsync(kvBlock(to, group), kvBlock(from, group),
                                             pools_[group].blockBytes, stream_.get()),
                      "copying a KV block");
}

Status CudaExecutor::saveKvBlock(int32_t block, uint8_t *host, uint32_t group) {
  const Driver &driver = device_->driver();
  LLMRT_RETURN_IF_ERROR(device_->makeCurrent());
  LLMRT_RETURN_IF_ERROR(driver.check(
      driver.MemcpyDtoHAsync(host, kvBlock(block, group), pools_[group].blockBytes, stream_.get()),
      "moving a KV block to the host"));
  return driver.check(driver.StreamSynchronize(stream_.get()), "moving a KV block to the host");
}

Status CudaExecutor::loadKvBlock(int32_t block, const uint8_t *host, uint32_t group) {
  const Driver &driver = device_->driver();
  LLMRT_RETURN_IF_ERROR(device_->makeCurrent());
  LLMRT_RETURN_IF_ERROR(driver.check(
      driver.MemcpyHtoDAsync(kvBlock(block, group), host, pools_[group].blockBytes, stream_.get()),
      "moving a KV block to the device"));
  return driver.check(driver.StreamSynchronize(stream_.get()), "moving a KV block to the device");
}

Status CudaExecutor::copyResults(CUdeviceptr logits, int64_t rows, bool draws) {
  const Driver &driver = device_->driver();
  const size_t rowBytes = size_t(shape_.vocabulary) * sizeof(float);
  // Rows that the host draws from, neighbours in one copy.
  auto isHosts = [&](int64_t row) { return !draws || !draws_->row(row).onDevice; };
  for (int64_t first = 0, end; first < rows; first = end) {
    end = first + 1;
    while (end < rows && isHosts(end) == isHosts(first))
      ++end;
    if (isHosts(first))
      LLMRT_RETURN_IF_ERROR(
          driver.check(driver.MemcpyDtoHAsync(hostLogits_.data() + size_t(first) * rowBytes,
                                              logits + uint64_t(first) * rowBytes,
                                              size_t(end - first) * rowBytes, stream_.get()),
                       "copying the logits"));
  }
  if (!draws)
    return Status::ok();
  return driver.check(driver.MemcpyDtoHAsync(hostTokens_.data(), sampling_.address(),
                                             size_t(rows) * sizeof(int32_t), stream_.get()),
                      "copying the tokens");
}

Status CudaExecutor::executeGroups(LlmrtStep &step, std::span<const KvTable> narrower) {
  LLMRT_RETURN_IF_ERROR(failure_);
  if (narrower.size() + 1 != pools_.size())
    return internalError("a step with tables of " + std::to_string(narrower.size() + 1) +
                         " KV groups for " + std::to_string(pools_.size()) + " pools");
  const Driver &driver = device_->driver();
  StepDims dims{step.T, step.S, step.R, step.Q};
  if (dims.T > largest_.T || dims.S > largest_.S || dims.R > largest_.R || dims.Q > largest_.Q)
    return internalError("a step larger than the executor was made for");
  LaunchShape shape{dims};
  for (int64_t s = 0; s < dims.S; ++s)
    shape.longestContext = std::max<int64_t>(shape.longestContext, step.contextLen[s]);
  for (int64_t q = 0; q < dims.Q; ++q)
    (step.tileCount[q] > 1 ? shape.longTiles : shape.singleTiles) = true;

  const bool draws = draws_ && draws_->any() && dims.R > 0;
  if (draws_)
    draws_->setAny(false); // of this step alone

  auto run = [&]() -> Status {
    LLMRT_RETURN_IF_ERROR(device_->makeCurrent());
    CUstream stream = stream_.get();
    LLMRT_RETURN_IF_ERROR(upload_.enqueue(driver, stream, step, narrower, pools_, blockTokens_,
                                          draws ? draws_.get() : nullptr));
    CUdeviceptr logits;
    if (const DecodeGraph *graph = graphFor(shape)) {
      LLMRT_RETURN_IF_ERROR(
          driver.check(driver.GraphLaunch(graph->exec.get(), stream), "the decode step"));
      logits = graph->logits;
      ++graphSteps_;
    } else {
      LLMRT_RETURN_IF_ERROR(program_->launch(driver, stream, shape, blocking_));
      if (draws)
        LLMRT_RETURN_IF_ERROR(program_->launchSampling(driver, stream, shape, blocking_));
      logits = program_->logits();
    }
    ++steps_;
    LLMRT_RETURN_IF_ERROR(copyResults(logits, dims.R, draws));
    CUresult done = driver.StreamSynchronize(stream);
    if (done == CUDA_SUCCESS) {
      if (draws)
        std::memcpy(draws_->tokens().data(), hostTokens_.data(), size_t(dims.R) * sizeof(int32_t));
      return Status::ok();
    }
    return driver.check(done, plan_->name() + ": a step of " + std::to_string(dims.T) +
                                  " tokens failed on " + device_->name() +
                                  "; set CUDA_LAUNCH_BLOCKING=1 to learn the kernel");
  };
  failure_ = run();
  return failure_;
}

} // namespace llmrt
