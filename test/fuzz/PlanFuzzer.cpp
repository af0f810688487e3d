//===- PlanFuzzer.cpp - any bytes as a plan's head ---------------------------------===//
//
// A checksum would stop nearly every damaged plan at the door, so the bytes are the head alone, put
// into a plan that is right otherwise, with its checksum made right: what is behind it must hold by
// its own checks, and what is accepted must lie inside the file.
//
// The corpus starts from the head of the unit tests' plan, whatever the schema has grown to.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Plan.h"
#include "runtime/plan/PlanFormat.h"
#include "runtime/plan/Xxh64.h"
#include "test/unit/plan/TestPlan.h"

#include <cstdlib>
#include <cstring>
#include <vector>

using namespace llmrt;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

namespace {

const std::vector<uint8_t> &goodImage() {
  static const std::vector<uint8_t> image = test::testPlanImage();
  return image;
}

PlanHeader headerOf(const std::vector<uint8_t> &image) {
  PlanHeader header;
  std::memcpy(&header, image.data(), sizeof(header));
  return header;
}

/// Where the first segment starts: as much room as a head has.
uint64_t roomEnd() {
  return alignUp(sizeof(PlanHeader) + headerOf(goodImage()).headSize, kPlanPage);
}

} // namespace

/// Every so often starts again from the head that is right.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize,
                                          unsigned seed) {
  const size_t good = headerOf(goodImage()).headSize;
  if (good <= maxSize && (size < good / 2 || seed % 64 == 0)) {
    std::memcpy(data, goodImage().data() + sizeof(PlanHeader), good);
    size = good;
  }
  return LLVMFuzzerMutate(data, size, maxSize);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0 || size > roomEnd() - sizeof(PlanHeader))
    return 0;
  std::vector<uint8_t> image = goodImage();
  std::memset(image.data() + sizeof(PlanHeader), 0, roomEnd() - sizeof(PlanHeader));
  std::memcpy(image.data() + sizeof(PlanHeader), data, size);
  PlanHeader header = headerOf(image);
  header.headSize = size;
  header.headChecksum = Xxh64::hash(data, size);
  std::memcpy(image.data(), &header, sizeof(header));
  auto plan = Plan::fromMemory(image, {.verifyWeights = true, .requireCode = false});
  if (!plan) {
    if (plan.status().message().empty())
      std::abort();
    return 0;
  }
  uint64_t sum = 0;
  for (size_t i = 0; i != (*plan)->segmentCount(); ++i)
    for (uint8_t byte : (*plan)->segment(i))
      sum += byte;
  for (uint32_t i = 0; i != (*plan)->head().weights()->size(); ++i)
    for (uint8_t byte : (*plan)->weight(i))
      sum += byte;
  volatile uint64_t sink = sum;
  (void)sink;
  return 0;
}
