#include "runtime/device/cuda/StepUpload.h"

#include "runtime/device/cuda/RowSampling.h"

#include <cstring>

namespace llmrt::cuda {
namespace {

constexpr size_t arrayAlignment = 16;

size_t aligned(size_t bytes) {
  return (bytes + arrayAlignment - 1) / arrayAlignment * arrayAlignment;
}

} // namespace

Result<StepUpload> StepUpload::create(const Driver &driver, const StepDims &d, int64_t maxBlocks,
                                      size_t pools, bool draws) {
  size_t bytes = pools * structBytes;
  auto add = [&](int64_t count, size_t size) { bytes += aligned(size_t(count) * size); };
  add(d.T, 4); // tokens
  add(d.T, 4); // positions
  add(d.S + 1, 4);
  add(d.S, 4);
  for (size_t pool = 0; pool < pools; ++pool) {
    add(d.S * maxBlocks, 4);
    add(d.T, 8); // slots
  }
  add(d.T, 4); // long contexts
  add(d.R, 4);
  for (int i = 0; i < 3; ++i) // tiles
    add(d.Q, 4);
  if (draws) {
    add(d.R, sizeof(LlmrtCudaRowSampling));
    add(int64_t(RowDraws::maxChanges), sizeof(LlmrtCudaLogitChange));
  }
  StepUpload upload;
  LLMRT_ASSIGN_OR_RETURN(upload.device_,
                         DeviceBuffer::allocate(driver, bytes, "the step's arrays"));
  LLMRT_ASSIGN_OR_RETURN(upload.host_, PinnedBuffer::allocate(driver, bytes, "the step's arrays"));
  return upload;
}

Status StepUpload::enqueue(const Driver &driver, CUstream stream, const LlmrtStep &step,
                           std::span<const KvTable> narrower, std::span<const Pool> pools,
                           int64_t blockTokens, const RowDraws *draws) {
  size_t used = pools.size() * structBytes;
  bool fits = true;
  /// Room for \p count values here, and where they will be on the device.
  auto place = [&]<typename T>(T *&here, int64_t count) -> const T * {
    size_t at = used;
    used += aligned(size_t(count) * sizeof(T));
    fits &= used <= host_.bytes();
    here = fits ? reinterpret_cast<T *>(host_.data() + at) : nullptr;
    return fits ? static_cast<const T *>(device_.pointer(at)) : nullptr;
  };
  auto put = [&]<typename T>(const T *array, int64_t count) -> const T * {
    T *here;
    const T *there = place(here, count);
    if (here)
      std::memcpy(here, array, size_t(count) * sizeof(T));
    return there;
  };
  LlmrtCudaStep s{};
  s.T = step.T;
  s.S = step.S;
  s.R = step.R;
  s.Q = step.Q;
  s.tokens = put(step.tokens, step.T);
  s.positions = put(step.positions, step.T);
  s.queryStart = put(step.queryStart, step.S + 1);
  s.contextLen = put(step.contextLen, step.S);
  s.maxBlocks = step.maxBlocks;
  s.logitRows = put(step.logitRows, step.R);
  s.tileSeq = put(step.tileSeq, step.Q);
  s.tileStart = put(step.tileStart, step.Q);
  s.tileCount = put(step.tileCount, step.Q);
  s.longContext = put(step.longContext, step.T);
  s.blockTokens = blockTokens;
  if (draws) {
    LlmrtCudaRowSampling *rows;
    LlmrtCudaLogitChange *changes;
    s.sampling = place(rows, step.R);
    for (int64_t r = 0; rows && r < step.R; ++r)
      rows[r] = cudaRowSampling(draws->row(r));
    s.changes = place(changes, int64_t(draws->changes().size()));
    for (size_t i = 0; changes && i < draws->changes().size(); ++i)
      changes[i] = {draws->changes()[i].id, draws->changes()[i].bias};
    s.sampledVocabulary = draws->vocabulary();
    s.massUnit = draws->massUnit();
  }
  static_assert(sizeof(long long) == sizeof(int64_t));
  for (size_t i = 0; i < pools.size(); ++i) {
    KvTable table = i == 0 ? KvTable{step.blockTable, step.slots} : narrower[i - 1];
    s.blockTable = put(table.blockTable, step.S * step.maxBlocks);
    s.slots = reinterpret_cast<const long long *>(put(table.slots, step.T));
    s.kv = reinterpret_cast<unsigned char *>(pools[i].kv);
    s.blockBytes = static_cast<long long>(pools[i].blockBytes);
    std::memcpy(host_.data() + i * structBytes, &s, sizeof s);
  }
  if (!fits)
    return internalError("a step larger than the executor was made for");
  return driver.check(driver.MemcpyHtoDAsync(device_.address(), host_.data(), used, stream),
                      "copying the step to the device");
}

} // namespace llmrt::cuda
