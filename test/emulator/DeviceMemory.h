//===- DeviceMemory.h - the emulated device's global memory -----------------===//
#ifndef LLMC_TEST_EMULATOR_DEVICEMEMORY_H
#define LLMC_TEST_EMULATOR_DEVICEMEMORY_H

#include "test/emulator/Checker.h"

#include <map>
#include <memory>

namespace simt {

struct Allocation {
  uintptr_t low, high;
  std::vector<uint8_t> initialised;             ///< by byte, once something asks
  std::vector<std::pair<size_t, size_t>> early; ///< written before that: [begin, end)
  Shadow shadow;

  void mark(uintptr_t p, size_t bytes);
  /// The first byte of [p, p + bytes) that nobody wrote, or null.
  const uint8_t *firstUninitialised(uintptr_t p, size_t bytes);

private:
  void prepare();
};

/// The allocation that holds address \p p, or null.
Allocation *findAllocation(uintptr_t p);
/// Whether the address lies where device memory could be.
bool inDeviceRange(uintptr_t p);
/// "12 bytes past the end of an allocation of 256 bytes"
std::string describeNearest(uintptr_t p);

} // namespace simt

#endif // LLMC_TEST_EMULATOR_DEVICEMEMORY_H
