//===- FourBit.h - what four bits of a weight stand for ------------------------===//
//
// i4 is q - 8 (q with a minimum). e2m1 doubled is a whole number, which a shuffle of bytes finds in
// a table of sixteen; what is multiplied is 12 more, so that it is unsigned as i4 is, and sums of
// half as many fit 16 bits: 4 units * 2 * 24 * 127 = 24384.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CODEGEN_CPU_KERNELS_FOURBIT_H
#define LLMC_CODEGEN_CPU_KERNELS_FOURBIT_H

#include "codegen/cpu/kernels/Format.h"
#include "codegen/cpu/kernels/IntDot.h"

namespace llmc::kernel {

/// How much more than what it stands for a value is as it is multiplied, without a minimum.
KERNEL_INLINE int32_t excessOfValue(const Format &f) {
  return f.element == kE2M1 ? 12 : f.element == kI4 && !f.hasMin ? 8 : 0;
}
/// Values along K whose products a NibbleSum has room for.
KERNEL_INLINE int64_t nibblesAtOnce(const Format &f) { return f.element == kE2M1 ? 16 : 32; }

/// Doubled e2m1 and 12 more, by code.
constexpr uint8_t kShiftedE2m1[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

/// Of 64 bytes, codes in their low four bits and nothing else, what is multiplied.
KERNEL_INLINE U32x16 decodeCodes(const Format &f, U32x16 codes) {
  return f.element == kE2M1 ? lookUpBytes(kShiftedE2m1, codes) : codes;
}

/// A unit of 64 bytes, 8 along K: first and second quad.
struct NibblePair {
  U32x16 first, second;
};
KERNEL_INLINE NibblePair loadNibbles(const Format &f, const uint8_t *w) {
  const U32x16 v = loadAs<U32x16>(w);
  return {decodeCodes(f, v & 0x0f0f0f0fu), decodeCodes(f, v >> 4 & 0x0f0f0f0fu)};
}

/// Element \p i (0..3) of a unit's quad as 16 floats: i4 without its excess taken off; \p high
/// picks the second quad of four-bit units.
KERNEL_INLINE F32x16 quantizedElement(const Format &f, U32x16 unit, int i, int high) {
  if (f.element == kE2M1)
    return toFloat((I32x16)(decodeCodes(f, unit >> (4 * high) & 0x0f0f0f0fu) >> (8 * i) & 255u) -
                   12);
  if (f.element == kI4)
    return toFloat((I32x16)(unit >> (8 * i + 4 * high) & 15u));
  return toFloat((I32x16)(unit << (24 - 8 * i)) >> 24);
}

} // namespace llmc::kernel

#endif // LLMC_CODEGEN_CPU_KERNELS_FOURBIT_H
