//===- Prelude.h - CUDA C++ as a host compiler reads it ---------------------===//
//
// Included before the unmodified text of a kernel when clang builds it for the emulator: keywords,
// built-in variables, warp functions and vector types of the part of CUDA C++ that llmc emits.
// Whatever is missing here fails to compile, so nothing gets a host meaning by accident.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TEST_EMULATOR_PRELUDE_H
#define LLMC_TEST_EMULATOR_PRELUDE_H

#include "Abi.h"
#include "Removals.h"

#include <cfloat>
#include <climits>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#define LLMC_EMULATED 1
#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) alignas(n)
/// Static shared memory: a block runs on one thread of the host.
#define __shared__ static thread_local
/// The emulator's own state is no memory of the device: functions that read it are not checked.
#define SIMT_UNCHECKED __attribute__((no_sanitize("thread", "undefined")))
#define SIMT_WHERE ::simt::Where where = ::simt::Where::current()

// --- built-in variables -------------------------------------------------------------------------
namespace simt {
SIMT_UNCHECKED static inline uint3 threadIndex() { return simt_thread->index; }
SIMT_UNCHECKED static inline uint3 blockIndex() { return simt_thread->block->index; }
SIMT_UNCHECKED static inline dim3 blockSize() { return simt_thread->block->size; }
SIMT_UNCHECKED static inline dim3 gridSize() { return simt_thread->block->grid; }
SIMT_UNCHECKED static inline int lane() { return int(simt_thread->lane); }
SIMT_UNCHECKED static inline unsigned char *sharedMemory() { return simt_thread->block->shared; }
} // namespace simt
#define threadIdx (::simt::threadIndex())
#define blockIdx (::simt::blockIndex())
#define blockDim (::simt::blockSize())
#define gridDim (::simt::gridSize())
static constexpr int warpSize = 32;

// --- vector types -------------------------------------------------------------------------------
// In checked mode every copy of a vector looks at both ends at its full width and alignment: the
// compiler may load less than a GPU's one instruction would.
#ifdef SIMT_CHECKED
#define SIMT_COPIES(T)                                                                             \
  T() = default;                                                                                   \
  SIMT_UNCHECKED T(const T &o, SIMT_WHERE) {                                                       \
    simt_check(&o, sizeof(T), 0, where);                                                           \
    std::memcpy((void *)this, &o, sizeof(T));                                                      \
  }                                                                                                \
  SIMT_UNCHECKED T &operator=(const T &o) {                                                        \
    simt_check(&o, sizeof(T), 0, ::simt::Where());                                                 \
    simt_check(this, sizeof(T), 1, ::simt::Where());                                               \
    std::memcpy((void *)this, &o, sizeof(T));                                                      \
    return *this;                                                                                  \
  }
#else
#define SIMT_COPIES(T) T() = default;
#endif
#define SIMT_VECTOR2(T, E, A)                                                                      \
  struct alignas(A) T {                                                                            \
    E x, y;                                                                                        \
    SIMT_COPIES(T)                                                                                 \
    constexpr T(E a, E b) : x(a), y(b) {}                                                          \
  };                                                                                               \
  static inline T make_##T(E a, E b) { return T(a, b); }
#define SIMT_VECTOR4(T, E, A)                                                                      \
  struct alignas(A) T {                                                                            \
    E x, y, z, w;                                                                                  \
    SIMT_COPIES(T)                                                                                 \
    constexpr T(E a, E b, E c, E d) : x(a), y(b), z(c), w(d) {}                                    \
  };                                                                                               \
  static inline T make_##T(E a, E b, E c, E d) { return T(a, b, c, d); }
SIMT_VECTOR2(int2, int, 8)
SIMT_VECTOR4(int4, int, 16)
SIMT_VECTOR2(uint2, unsigned, 8)
SIMT_VECTOR4(uint4, unsigned, 16)
SIMT_VECTOR2(float2, float, 8)
SIMT_VECTOR4(float4, float, 16)
SIMT_VECTOR4(uchar4, unsigned char, 4)
SIMT_VECTOR4(char4, signed char, 4)

// --- barriers and warp functions
// ------------------------------------------------------------------
SIMT_UNCHECKED static inline void __syncthreads(SIMT_WHERE) { simt_syncthreads(where); }
SIMT_UNCHECKED static inline int __syncthreads_count(int p, SIMT_WHERE) {
  return simt_syncthreads_reduce(p, 0, where);
}
SIMT_UNCHECKED static inline int __syncthreads_and(int p, SIMT_WHERE) {
  return simt_syncthreads_reduce(p, 1, where);
}
SIMT_UNCHECKED static inline int __syncthreads_or(int p, SIMT_WHERE) {
  return simt_syncthreads_reduce(p, 2, where);
}
SIMT_UNCHECKED static inline void __syncwarp(unsigned mask = 0xffffffffu, SIMT_WHERE) {
  simt_collective(simt::SyncWarp, mask, nullptr, where);
}
SIMT_UNCHECKED static inline void __threadfence(SIMT_WHERE) { simt_fence(where); }

namespace simt {
template <class T>
SIMT_UNCHECKED static inline T shuffle(unsigned mask, T v, int from, Where where) {
  static_assert(sizeof(T) <= 8, "a shuffle moves up to 8 bytes");
  ShuffleLane l{0, 0, from};
  std::memcpy(&l.value, &v, sizeof(T));
  simt_collective(Shuffle, mask, &l, where);
  T r;
  std::memcpy(&r, &l.result, sizeof(T));
  return r;
}
} // namespace simt
template <class T>
SIMT_UNCHECKED static inline T __shfl_sync(unsigned m, T v, int from, int w = 32, SIMT_WHERE) {
  int l = simt::lane();
  return simt::shuffle(m, v, (l & ~(w - 1)) | (from & (w - 1)), where);
}
template <class T>
SIMT_UNCHECKED static inline T __shfl_xor_sync(unsigned m, T v, int x, int w = 32, SIMT_WHERE) {
  int l = simt::lane(), s = l ^ x;
  return simt::shuffle(m, v, (s & ~(w - 1)) > (l & ~(w - 1)) ? l : s, where);
}
template <class T>
SIMT_UNCHECKED static inline T __shfl_down_sync(unsigned m, T v, unsigned d, int w = 32,
                                                SIMT_WHERE) {
  int l = simt::lane(), s = l + int(d);
  return simt::shuffle(m, v, (s & ~(w - 1)) != (l & ~(w - 1)) ? l : s, where);
}
template <class T>
SIMT_UNCHECKED static inline T __shfl_up_sync(unsigned m, T v, unsigned d, int w = 32, SIMT_WHERE) {
  int l = simt::lane(), s = l - int(d);
  return simt::shuffle(m, v, s < (l & ~(w - 1)) ? l : s, where);
}
SIMT_UNCHECKED static inline unsigned __ballot_sync(unsigned m, int p, SIMT_WHERE) {
  simt::VoteLane l{unsigned(p != 0), 0};
  simt_collective(simt::Vote, m, &l, where);
  return l.result;
}
SIMT_UNCHECKED static inline int __any_sync(unsigned m, int p, SIMT_WHERE) {
  return __ballot_sync(m, p, where) != 0;
}
SIMT_UNCHECKED static inline int __all_sync(unsigned m, int p, SIMT_WHERE) {
  return __ballot_sync(m, p, where) == m;
}

// --- atomics
// ----------------------------------------------------------------------------------------
SIMT_UNCHECKED static inline unsigned atomicAdd(unsigned *p, unsigned v, SIMT_WHERE) {
  return simt_atomic_add_u32(p, v, where);
}
SIMT_UNCHECKED static inline unsigned long long
atomicAdd(unsigned long long *p, unsigned long long v, SIMT_WHERE) {
  return simt_atomic_add_u64((uint64_t *)p, v, where);
}
SIMT_UNCHECKED static inline int atomicAdd(int *p, int v, SIMT_WHERE) {
  return int(simt_atomic_add_u32((uint32_t *)p, uint32_t(v), where));
}
SIMT_UNCHECKED static inline float atomicAdd(float *p, float v, SIMT_WHERE) {
  return simt_atomic_add_f32(p, v, where);
}
SIMT_UNCHECKED static inline unsigned atomicExch(unsigned *p, unsigned v, SIMT_WHERE) {
  return simt_atomic_exchange_u32(p, v, where);
}
SIMT_UNCHECKED static inline unsigned atomicMax(unsigned *p, unsigned v, SIMT_WHERE) {
  return simt_atomic_max_u32(p, v, where);
}
SIMT_UNCHECKED static inline unsigned long long atomicMax(unsigned long long *p,
                                                          unsigned long long v, SIMT_WHERE) {
  return simt_atomic_max_u64((uint64_t *)p, v, where);
}

// --- arithmetic
// ---------------------------------------------------------------------------------------
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
// The C library declares functions of these names.
#define __expf(x) expf(x)
#define __logf(x) logf(x)
static inline float __fdividef(float a, float b) { return a / b; }
static inline int __float2int_rn(float x) { return int(rintf(x)); }
static inline float __int2float_rn(int x) { return float(x); }
static inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
static inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
static inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
static inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
static inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
static inline double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(unsigned(x)); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned s) {
  uint64_t all = uint64_t(b) << 32 | a;
  unsigned r = 0;
  for (int i = 0; i < 4; ++i)
    r |= unsigned(all >> (8 * (s >> (4 * i) & 7)) & 0xff) << (8 * i);
  return r;
}
#define SIMT_MINMAX(T)                                                                             \
  static constexpr inline T min(T a, T b) { return b < a ? b : a; }                                \
  static constexpr inline T max(T a, T b) { return a < b ? b : a; }
SIMT_MINMAX(int)
SIMT_MINMAX(unsigned)
SIMT_MINMAX(long long)
SIMT_MINMAX(long)
SIMT_MINMAX(unsigned long long)
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }

// --- how the emulator finds a kernel
// --------------------------------------------------------------------
namespace simt {
inline thread_local char staticSharedAnchor;
SIMT_UNCHECKED static void *touchStaticShared() { return &staticSharedAnchor; }
template <auto Function> struct Describe;
template <class... A, void (*Function)(A...)> struct Describe<Function> {
  static constexpr unsigned short bytes[] = {sizeof(A)..., 0};
  template <size_t... I>
  SIMT_UNCHECKED static void unpack(void *const *a, std::index_sequence<I...>) {
    Function(*static_cast<std::remove_cv_t<A> *>(a[I])...);
  }
  SIMT_UNCHECKED static void call(void *const *a) { unpack(a, std::index_sequence_for<A...>{}); }
  static constexpr KernelEntry entry(const char *name) {
#ifdef SIMT_CHECKED
    constexpr bool checked = true;
#else
    constexpr bool checked = false;
#endif
    return {name, &call, int(sizeof...(A)), bytes, &touchStaticShared, checked};
  }
};
} // namespace simt
extern "C" __attribute__((used, visibility("default"))) const char simt_object_mark[] =
    SIMT_OBJECT_MARK;
/// One line for each kernel at the end of the host's translation unit.
#define SIMT_KERNEL(k)                                                                             \
  extern "C" __attribute__((visibility("default"))) const simt::KernelEntry simt_kernel_##k =      \
      simt::Describe<&k>::entry(#k);

#endif // LLMC_TEST_EMULATOR_PRELUDE_H
