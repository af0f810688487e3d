//===- FloatMode.h - denormals are zero inside a step -----------------------===//
//
// The kernels' results are defined with denormal inputs and results taken as zero (that is what
// AMX's tdpbf16ps does, so every level must). The host's own setting comes back afterwards.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_DEVICE_CPU_FLOATMODE_H
#define LLMRT_DEVICE_CPU_FLOATMODE_H

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace llmrt {

/// Sets round-to-nearest, all exceptions masked, DAZ and FTZ while it lives.
class ScopedFloatMode {
public:
#if defined(__x86_64__)
  ScopedFloatMode() : saved_(_mm_getcsr()) { _mm_setcsr(kernelMode); }
  ~ScopedFloatMode() { _mm_setcsr(saved_); }
#elif defined(__aarch64__)
  ScopedFloatMode() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    asm volatile("msr fpcr, %0" : : "r"(uint64_t(1) << 24)); // FZ
  }
  ~ScopedFloatMode() { asm volatile("msr fpcr, %0" : : "r"(saved_)); }
#endif
  ScopedFloatMode(const ScopedFloatMode &) = delete;
  ScopedFloatMode &operator=(const ScopedFloatMode &) = delete;

private:
#if defined(__x86_64__)
  /// Masks 7-12 set, FTZ (bit 15), DAZ (bit 6), rounding 00: Intel SDM volume 1, 10.2.3.
  static constexpr uint32_t kernelMode = 0x1f80 | 0x8000 | 0x0040;
  uint32_t saved_;
#elif defined(__aarch64__)
  uint64_t saved_;
#endif
};

} // namespace llmrt

#endif // LLMRT_DEVICE_CPU_FLOATMODE_H
