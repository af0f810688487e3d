//===- Vector.h - sixteen lanes, whatever the machine has --------------------===//
//
// Every kernel is written over vectors of sixteen lanes: one register at x86-64-v4, two at
// x86-64-v3, four on AArch64. The lanes and the order of operations are those of the text, so
// results have the same bits at every level. Only IntDot.h and GemmTiles.h know instructions.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CODEGEN_CPU_KERNELS_VECTOR_H
#define LLMC_CODEGEN_CPU_KERNELS_VECTOR_H

#include <stdint.h>

#define KERNEL_INLINE static inline __attribute__((always_inline))
#define KERNEL_LAMBDA __attribute__((always_inline))

namespace llmc::kernel {

typedef float F32x16 __attribute__((ext_vector_type(16)));
typedef float F32x8 __attribute__((ext_vector_type(8)));
typedef float F32x4 __attribute__((ext_vector_type(4)));
typedef double F64x16 __attribute__((ext_vector_type(16)));
typedef int64_t I64x16 __attribute__((ext_vector_type(16)));
typedef int32_t I32x16 __attribute__((ext_vector_type(16)));
typedef int32_t I32x8 __attribute__((ext_vector_type(8)));
typedef uint32_t U32x16 __attribute__((ext_vector_type(16)));
typedef uint16_t U16x16 __attribute__((ext_vector_type(16)));
typedef uint8_t U8x16 __attribute__((ext_vector_type(16)));
typedef int8_t I8x16 __attribute__((ext_vector_type(16)));
typedef _Float16 Half16 __attribute__((ext_vector_type(16)));
typedef bool Mask16 __attribute__((ext_vector_type(16)));

constexpr int64_t kLanes = 16;

/// Tokens that one pass over a tile of weights takes: what the level's registers hold. It decides
/// speed and nothing else.
#if defined(__AVX512F__) || defined(LLMC_KERNEL_EMULATE_VNNI)
constexpr int kTokenBlock = 8;
#else
constexpr int kTokenBlock = 4;
#endif

template <typename V> KERNEL_INLINE V loadAs(const void *p) {
  V v;
  __builtin_memcpy(&v, p, sizeof(V));
  return v;
}
template <typename V> KERNEL_INLINE void storeAs(void *p, V v) {
  __builtin_memcpy(p, &v, sizeof(V));
}

KERNEL_INLINE F32x16 load(const float *p) { return loadAs<F32x16>(p); }
KERNEL_INLINE void store(float *p, F32x16 v) { storeAs(p, v); }

KERNEL_INLINE I32x16 laneIndex() {
  return (I32x16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
}

#if defined(__aarch64__) // has no masked loads: they would be sixteen branches

/// The first \p count lanes from memory, zeros in the others; reads nothing else.
KERNEL_INLINE F32x16 loadPart(const float *p, int64_t count) {
  if (count >= kLanes)
    return load(p);
  alignas(64) float lanes[kLanes] = {};
  for (int64_t i = 0; i < count; ++i)
    lanes[i] = p[i];
  return load(lanes);
}
KERNEL_INLINE void storePart(float *p, F32x16 v, int64_t count) {
  if (count >= kLanes)
    return store(p, v);
  alignas(64) float lanes[kLanes];
  store(lanes, v);
  for (int64_t i = 0; i < count; ++i)
    p[i] = lanes[i];
}

#else

KERNEL_INLINE Mask16 firstLanes(int64_t count) {
  return __builtin_convertvector(laneIndex() < (I32x16)(static_cast<int32_t>(count)), Mask16);
}
KERNEL_INLINE F32x16 loadPart(const float *p, int64_t count) {
  if (count >= kLanes)
    return load(p);
  return __builtin_masked_load(firstLanes(count), p, (F32x16)(0.0f));
}
KERNEL_INLINE void storePart(float *p, F32x16 v, int64_t count) {
  if (count >= kLanes)
    return store(p, v);
  __builtin_masked_store(firstLanes(count), v, p);
}

#endif

/// \p flag, which the optimiser takes for a value that changes unless it is a constant: it would
/// write a loop twice for the sake of one that doesn't.
KERNEL_INLINE int64_t everyTime(int64_t flag) {
  if (!__builtin_constant_p(flag))
    asm volatile("" : "+r"(flag));
  return flag;
}

KERNEL_INLINE F32x16 splat(float x) { return (F32x16)(x); }
KERNEL_INLINE I32x16 splatInt(int32_t x) { return (I32x16)(x); }
KERNEL_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return __builtin_elementwise_fma(a, b, c);
}
KERNEL_INLINE float fma(float a, float b, float c) { return __builtin_elementwise_fma(a, b, c); }
/// The larger one; the second where one is a NaN or both are zeros.
KERNEL_INLINE F32x16 larger(F32x16 a, F32x16 b) { return a > b ? a : b; }
KERNEL_INLINE F32x16 toFloat(I32x16 v) { return __builtin_convertvector(v, F32x16); }
KERNEL_INLINE F32x16 asFloat(U32x16 v) { return (F32x16)v; }
KERNEL_INLINE U32x16 asBits(F32x16 v) { return (U32x16)v; }
KERNEL_INLINE F32x16 magnitude(F32x16 v) { return asFloat(asBits(v) & 0x7fffffffu); }

/// The one order in which sixteen lanes are added: halves onto halves.
KERNEL_INLINE float sumLanes(F32x16 v) {
  F32x8 a = v.lo + v.hi;
  F32x4 b = a.lo + a.hi;
  auto c = b.lo + b.hi;
  return c.x + c.y;
}
KERNEL_INLINE float largestLane(F32x16 v) {
  F32x8 a = v.lo > v.hi ? v.lo : v.hi;
  F32x4 b = a.lo > a.hi ? a.lo : a.hi;
  auto c = b.lo > b.hi ? b.lo : b.hi;
  return c.x > c.y ? c.x : c.y;
}

/// Calls body(Index<0>), ..., body(Index<N-1>): unrolled whatever the optimiser thinks of it.
template <int I> struct Index {
  static constexpr int value = I;
  constexpr operator int() const { return I; }
};
template <int N, int I = 0, typename Body> KERNEL_INLINE void unroll(Body body) {
  if constexpr (I < N) {
    body(Index<I>{});
    unroll<N, I + 1>(body);
  }
}

} // namespace llmc::kernel

#endif // LLMC_CODEGEN_CPU_KERNELS_VECTOR_H
