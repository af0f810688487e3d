//===- TensorCopies.h - what a tensor map says ------------------------------===//
#ifndef LLMC_TEST_EMULATOR_TENSORCOPIES_H
#define LLMC_TEST_EMULATOR_TENSORCOPIES_H

#include <cstdint>
#include <string>

namespace simt {

/// As cuTensorMapEncodeTiled takes it, for 16-bit elements, a swizzle of 128 bytes, and zeros
/// outside of the tensor.
struct TensorShape {
  const void *base;
  uint32_t rank;
  const uint64_t *sizes;   ///< [rank] elements, the innermost first
  const uint64_t *strides; ///< [rank - 1] bytes
  const uint32_t *box;     ///< [rank] elements
};

/// Writes the 128 bytes of a map; otherwise what the driver would refuse.
std::string encodeTensorMap(void *map, const TensorShape &shape);

} // namespace simt

#endif // LLMC_TEST_EMULATOR_TENSORCOPIES_H
