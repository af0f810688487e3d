//===- device.cuh - the instructions that C++ has no word for ----------------===//
//
// The only place with PTX (with sm90.cuh): each function is one instruction, with a body for the
// device and one for the emulator (test/emulator). Types f16 and bf16 are our own.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CUDA_DEVICE_CUH
#define LLMC_CUDA_DEVICE_CUH

#include "KernelAbi.h"

#ifdef LLMC_EMULATED
#define LLMC_FN static inline
/// A function that hands memory to the emulator, which checks it itself.
#define LLMC_OP SIMT_UNCHECKED static inline
/// The last parameter of every operation: where the kernel's text calls it.
#define LLMC_AT , SIMT_WHERE
#define LLMC_AT_ONLY SIMT_WHERE
/// Hands it on.
#define LLMC_HERE , where
#define LLMC_SHARED(Type, name) Type &name = *reinterpret_cast<Type *>(::simt::sharedMemory())
#else
#define LLMC_FN static __device__ __forceinline__
#define LLMC_OP static __device__ __forceinline__
#define LLMC_AT
#define LLMC_AT_ONLY
#define LLMC_HERE
/// The block's shared memory, seen as one struct.
#define LLMC_SHARED(Type, name)                                                                    \
  extern __shared__ __align__(1024) unsigned char llmc_shared_memory[];                            \
  Type &name = *reinterpret_cast<Type *>(llmc_shared_memory)
#endif

/// A function of a struct, without and with an object.
#define LLMC_MEMBER static __device__ __forceinline__
#define LLMC_METHOD __device__ __forceinline__

constexpr unsigned kAllLanes = 0xffffffffu;

// --- numbers ------------------------------------------------------------------------------------
struct __align__(2) f16 {
  unsigned short bits;
};
struct __align__(2) bf16 {
  unsigned short bits;
};

LLMC_OP float f16ToFloat(f16 h) {
  float f;
#ifdef LLMC_EMULATED
  _Float16 t;
  std::memcpy(&t, &h, 2);
  f = static_cast<float>(t);
#else
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h.bits));
#endif
  return f;
}

/// To nearest even; beyond the range: infinity.
LLMC_OP f16 floatToF16(float f) {
  f16 h;
#ifdef LLMC_EMULATED
  _Float16 t = static_cast<_Float16>(f);
  std::memcpy(&h, &t, 2);
#else
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(f));
#endif
  return h;
}

LLMC_FN float bf16ToFloat(bf16 h) { return __uint_as_float(unsigned(h.bits) << 16); }

/// To nearest even; a NaN stays one.
LLMC_OP bf16 floatToBf16(float f) {
  bf16 h;
#ifdef LLMC_EMULATED
  unsigned bits = __float_as_uint(f);
  h.bits = f != f ? 0x7fff : static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
#else
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h.bits) : "f"(f));
#endif
  return h;
}

/// Two floats as a pair, the first in the low half.
LLMC_OP unsigned packF16(float low, float high) {
#ifdef LLMC_EMULATED
  return unsigned(floatToF16(low).bits) | unsigned(floatToF16(high).bits) << 16;
#else
  unsigned r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
#endif
}
LLMC_OP unsigned packBf16(float low, float high) {
#ifdef LLMC_EMULATED
  return unsigned(floatToBf16(low).bits) | unsigned(floatToBf16(high).bits) << 16;
#else
  unsigned r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
#endif
}

LLMC_FN f16 lowF16(unsigned pair) { return f16{static_cast<unsigned short>(pair & 0xffff)}; }
LLMC_FN f16 highF16(unsigned pair) { return f16{static_cast<unsigned short>(pair >> 16)}; }

/// a - b, a * b, fma(a, b, c) of f16 pairs, each rounded once.
LLMC_OP unsigned subtractF16(unsigned a, unsigned b) {
#ifdef LLMC_EMULATED
  return packF16(f16ToFloat(lowF16(a)) - f16ToFloat(lowF16(b)),
                 f16ToFloat(highF16(a)) - f16ToFloat(highF16(b)));
#else
  unsigned r;
  asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
#endif
}
LLMC_OP unsigned multiplyF16(unsigned a, unsigned b) {
#ifdef LLMC_EMULATED
  return packF16(f16ToFloat(lowF16(a)) * f16ToFloat(lowF16(b)),
                 f16ToFloat(highF16(a)) * f16ToFloat(highF16(b)));
#else
  unsigned r;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
#endif
}
LLMC_OP unsigned fmaF16(unsigned a, unsigned b, unsigned c) {
#ifdef LLMC_EMULATED
  // A product of f16 is exact in f32, and the sum of two such in double.
  auto one = [](f16 x, f16 y, f16 z) SIMT_UNCHECKED {
    double d = double(f16ToFloat(x)) * f16ToFloat(y) + f16ToFloat(z);
    _Float16 t = static_cast<_Float16>(d);
    f16 h;
    std::memcpy(&h, &t, 2);
    return unsigned(h.bits);
  };
  return one(lowF16(a), lowF16(b), lowF16(c)) | one(highF16(a), highF16(b), highF16(c)) << 16;
#else
  unsigned r;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  return r;
#endif
}

/// f32 with the mantissa of TF32 (10 bits), to nearest, ties away from zero.
LLMC_OP unsigned floatToTf32(float f) {
#ifdef LLMC_EMULATED
  unsigned bits = __float_as_uint(f);
  return (bits & 0x7f800000u) == 0x7f800000u ? bits : (bits + 0x1000u) & 0xffffe000u;
#else
  unsigned r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(f));
  return r;
#endif
}

/// 2^x, within 2 ulp; 0 for minus infinity.
LLMC_OP float exp2Approximate(float x) {
#ifdef LLMC_EMULATED
  return exp2f(x);
#else
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
#endif
}

// --- memory -------------------------------------------------------------------------------------
/// 16 bytes that no one writes while the kernel runs and no one reads again soon: weights.
LLMC_OP uint4 loadStreaming(const void *p LLMC_AT) {
#ifdef LLMC_EMULATED
  simt_check(p, 16, 0, where);
  uint4 v;
  std::memcpy((void *)&v, p, 16);
  return v;
#else
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
#endif
}

/// 16 bytes from global to shared memory, asynchronously, past L1; with \p keep false zeros are
/// written and \p source is not read.
LLMC_OP void copyAsync16(void *destination, const void *source, bool keep LLMC_AT) {
#ifdef LLMC_EMULATED
  simt_copy_async(destination, source, 16, keep ? 16 : 0, where);
#else
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(destination))),
               "l"(source), "r"(keep ? 16 : 0)
               : "memory");
#endif
}

/// The same for 4 bytes.
LLMC_OP void copyAsync4(void *destination, const void *source, bool keep LLMC_AT) {
#ifdef LLMC_EMULATED
  simt_copy_async(destination, source, 4, keep ? 4 : 0, where);
#else
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(destination))),
               "l"(source), "r"(keep ? 4 : 0)
               : "memory");
#endif
}

/// Closes the group of the copies that this thread has begun since the last one.
LLMC_OP void copyAsyncCommit(LLMC_AT_ONLY) {
#ifdef LLMC_EMULATED
  simt_copy_async_commit(where);
#else
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits until at most \p GroupsLeft of this thread's groups are unfinished. Other threads see the
/// data after a barrier.
template <int GroupsLeft> LLMC_OP void copyAsyncWait(LLMC_AT_ONLY) {
#ifdef LLMC_EMULATED
  simt_copy_async_wait(GroupsLeft, where);
#else
  asm volatile("cp.async.wait_group %0;" ::"n"(GroupsLeft) : "memory");
#endif
}

// --- tensor cores -------------------------------------------------------------------------------
/// Four 8x8 matrices of 16-bit elements: lane l gives the address (16 bytes) of row l % 8 of matrix
/// l / 8; register i receives matrix i, elements (l / 4, 2 (l % 4)) and the next.
LLMC_OP void loadMatrix4(unsigned (&r)[4], const void *row LLMC_AT) {
#ifdef LLMC_EMULATED
  simt::LoadMatrixLane l{row, r, 4};
  simt_collective(simt::LoadMatrix, kAllLanes, &l, where);
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row)))
               : "memory");
#endif
}

/// The same, each matrix transposed.
LLMC_OP void loadMatrix4Transposed(unsigned (&r)[4], const void *row LLMC_AT) {
#ifdef LLMC_EMULATED
  simt::LoadMatrixLane l{row, r, 4};
  simt_collective(simt::LoadMatrixTransposed, kAllLanes, &l, where);
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row)))
               : "memory");
#endif
}

/// d += a b, m16n8k16 of f16 with f32 sums. With g = lane / 4, t = lane % 4, pairs along K:
///   a: rows g, g+8, g, g+8; columns 2t (twice), 2t+8 (twice)    b: rows 2t, 2t+8; column g
///   d: rows g (0, 1), g+8 (2, 3); columns 2t, 2t+1
LLMC_OP void mmaF16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2] LLMC_AT) {
#ifdef LLMC_EMULATED
  simt::MmaLane l{a, b, d, d};
  simt_collective(simt::MmaF16, kAllLanes, &l, where);
#else
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
               "{%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

/// The same for bf16.
LLMC_OP void mmaBf16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2] LLMC_AT) {
#ifdef LLMC_EMULATED
  simt::MmaLane l{a, b, d, d};
  simt_collective(simt::MmaBf16, kAllLanes, &l, where);
#else
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
               "{%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

/// d += a b, m16n8k8 of TF32 with f32 sums. a: rows g, g+8, g, g+8; columns t (twice), t+4 (twice);
/// b: rows t, t+4; column g; d as above.
LLMC_OP void mmaTf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2] LLMC_AT) {
#ifdef LLMC_EMULATED
  simt::MmaLane l{a, b, d, d};
  simt_collective(simt::MmaTf32, kAllLanes, &l, where);
#else
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
               "{%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

// --- a warp -------------------------------------------------------------------------------------
/// The sum (the largest) of a value over the warp, by the same butterfly everywhere.
LLMC_OP float warpSum(float v LLMC_AT) {
#if defined(LLMC_EMULATED) && !defined(SIMT_CHECKED)
  simt::ReduceLane l{v, 0};
  simt_collective(simt::Reduce, kAllLanes, &l, where);
  return l.value;
#else
#pragma unroll
  for (int i = 16; i > 0; i >>= 1)
    v += __shfl_xor_sync(kAllLanes, v, i, 32 LLMC_HERE);
  return v;
#endif
}
LLMC_OP float warpMax(float v LLMC_AT) {
#if defined(LLMC_EMULATED) && !defined(SIMT_CHECKED)
  simt::ReduceLane l{v, 1};
  simt_collective(simt::Reduce, kAllLanes, &l, where);
  return l.value;
#else
#pragma unroll
  for (int i = 16; i > 0; i >>= 1)
    v = fmaxf(v, __shfl_xor_sync(kAllLanes, v, i, 32 LLMC_HERE));
  return v;
#endif
}

#endif // LLMC_CUDA_DEVICE_CUH
