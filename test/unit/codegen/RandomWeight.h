//===- RandomWeight.h - packed weights of random values ------------------------===//
#ifndef LLMC_TEST_UNIT_CODEGEN_RANDOMWEIGHT_H
#define LLMC_TEST_UNIT_CODEGEN_RANDOMWEIGHT_H

#include "codegen/cpu/kernels/reference/Reference.h"
#include "test/unit/codegen/KernelRunner.h"

namespace llmc::test {

/// A random weight, packed, and its values for the references.
struct Weight {
  WeightFormat format;
  int64_t n, k;
  Buffer packed;
  std::vector<float> values; ///< [n, k]
  reference::QuantizedMatrix quantized;
};

inline uint64_t tilesOf(int64_t n) { return (n + 15) / 16; }

Weight makeWeight(std::mt19937 &rng, WeightFormat f, int64_t n, int64_t k);

/// Int8 rows as kernels read them.
Buffer quantizedBuffer(const reference::QuantizedRows &x);

constexpr WeightFormat n16(Element e) {
  return {e, Packing::N16, 0, Element::F32, false, Element::F32};
}
constexpr WeightFormat n16k4(Element e, uint32_t group, Element scale, bool hasMin,
                             Element min = Element::F32) {
  return {e, Packing::N16K4, group, scale, hasMin, min};
}

} // namespace llmc::test

#endif // LLMC_TEST_UNIT_CODEGEN_RANDOMWEIGHT_H
