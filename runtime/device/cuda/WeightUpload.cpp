#include "runtime/device/cuda/WeightUpload.h"

#include <algorithm>
#include <cstring>

namespace llmrt::cuda {
namespace {

constexpr size_t stagingBytes = 8 << 20;

struct Staging {
  PinnedBuffer memory;
  EventOwner copied;
  bool inUse = false;
};

} // namespace

uint64_t weightBytes(const Plan &plan) {
  uint64_t sum = 0;
  for (const fbs::Segment *s : *plan.head().segments())
    if (s->kind() == fbs::SegmentKind::Weights)
      sum += s->size();
  return sum;
}

Result<WeightMemory> uploadWeights(const Driver &driver, CUstream stream, const Plan &plan) {
  WeightMemory memory(plan.segmentCount());
  Staging staging[2];
  size_t bytes = size_t(std::clamp<uint64_t>(weightBytes(plan), 1, stagingBytes));
  for (Staging &s : staging) {
    LLMRT_ASSIGN_OR_RETURN(s.memory, PinnedBuffer::allocate(driver, bytes, "the weights' copy"));
    CUevent event = nullptr;
    LLMRT_RETURN_IF_ERROR(
        driver.check(driver.EventCreate(&event, CU_EVENT_DISABLE_TIMING), "an event"));
    s.copied = {&driver, event};
  }
  unsigned turn = 0;
  for (size_t i = 0; i < memory.size(); ++i) {
    const fbs::Segment &segment = *plan.head().segments()->Get(uint32_t(i));
    if (segment.kind() != fbs::SegmentKind::Weights || segment.size() == 0)
      continue;
    std::span<const uint8_t> from = plan.segment(i);
    LLMRT_ASSIGN_OR_RETURN(memory[i], DeviceBuffer::allocate(driver, from.size(), "the weights"));
    for (size_t at = 0; at < from.size();) {
      Staging &s = staging[turn++ % 2];
      if (s.inUse)
        LLMRT_RETURN_IF_ERROR(
            driver.check(driver.EventSynchronize(s.copied.get()), "copying weights"));
      size_t piece = std::min(bytes, from.size() - at);
      std::memcpy(s.memory.data(), from.data() + at, piece);
      LLMRT_RETURN_IF_ERROR(driver.check(
          driver.MemcpyHtoDAsync(memory[i].address() + at, s.memory.data(), piece, stream),
          "copying weights"));
      LLMRT_RETURN_IF_ERROR(
          driver.check(driver.EventRecord(s.copied.get(), stream), "copying weights"));
      s.inUse = true;
      at += piece;
    }
  }
  LLMRT_RETURN_IF_ERROR(driver.check(driver.StreamSynchronize(stream), "copying weights"));
  return memory;
}

} // namespace llmrt::cuda
