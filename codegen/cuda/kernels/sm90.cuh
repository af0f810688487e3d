//===- sm90.cuh - Hopper's instructions: mbarrier, TMA, wgmma -----------------===//
//
// As device.cuh: each function is one instruction, with a body for the device (sm_90a) and one for
// the emulator. PTX ISA 8.0, "Asynchronous warpgroup level matrix instructions" and "mbarrier".
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CUDA_SM90_CUH
#define LLMC_CUDA_SM90_CUH

#include "device.cuh"

constexpr int kWarpgroup = 128; ///< threads: four warps, the first a multiple of four

#ifndef LLMC_EMULATED
LLMC_FN unsigned sharedAddress(const void *p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
#endif

// --- mbarrier -----------------------------------------------------------------------------------
/// Counts arrivals and bytes of copies. It goes through phases: one completes when all arrivals of
/// it have happened and all bytes that were announced are there; its parity is 0 first, then 1, ...
struct __align__(8) Mbarrier {
  unsigned long long bits;
};

/// By one thread, before any other uses it.
LLMC_OP void mbarrierInit(Mbarrier &b, int arrivals LLMC_AT) {
#ifdef LLMC_EMULATED
  simt_mbarrier_init(&b, arrivals, where);
#else
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(sharedAddress(&b)), "r"(arrivals)
               : "memory");
#endif
}

/// After the inits of this thread: copies may count on its barriers.
LLMC_OP void mbarrierInitFence(LLMC_AT_ONLY) {
#ifdef LLMC_EMULATED
  simt_mbarrier_init_fence(where);
#else
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

/// One arrival; what this thread did before it is seen by who waits.
LLMC_OP void mbarrierArrive(Mbarrier &b LLMC_AT) {
#ifdef LLMC_EMULATED
  simt_mbarrier_arrive(&b, 0, where);
#else
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(sharedAddress(&b)) : "memory");
#endif
}

/// One arrival that announces \p bytes of copies: the phase completes with them.
LLMC_OP void mbarrierArriveExpect(Mbarrier &b, int bytes LLMC_AT) {
#ifdef LLMC_EMULATED
  simt_mbarrier_arrive(&b, bytes, where);
#else
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(sharedAddress(&b)),
               "r"(bytes)
               : "memory");
#endif
}

/// Waits for the end of the phase of that parity; of parity 1 on a new barrier not at all.
LLMC_OP void mbarrierWait(Mbarrier &b, int parity LLMC_AT) {
#ifdef LLMC_EMULATED
  simt_mbarrier_wait(&b, parity, where);
#else
  unsigned done;
  do
    asm volatile("{ .reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(sharedAddress(&b)), "r"(parity)
                 : "memory");
  while (!done);
#endif
}

// --- asynchronous copies ------------------------------------------------------------------------
/// The box at (x0, x1, x2, x3), the innermost first, of the tensor of \p map to shared memory, 128
/// bytes aligned; its bytes count on \p b. One thread asks for it.
LLMC_OP void copyTensor4(void *to, const LlmrtTensorMap &map, int x0, int x1, int x2, int x3,
                         Mbarrier &b LLMC_AT) {
#ifdef LLMC_EMULATED
  const int at[] = {x0, x1, x2, x3};
  simt_copy_tensor(to, &map, at, 4, &b, where);
#else
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
               "[%1, {%3, %4, %5, %6}], [%2];" ::"r"(sharedAddress(to)),
               "l"(&map), "r"(sharedAddress(&b)), "r"(x0), "r"(x1), "r"(x2), "r"(x3)
               : "memory");
#endif
}

/// What this thread wrote to shared memory is seen by wgmma of who learns of it after this.
LLMC_OP void proxyFence(LLMC_AT_ONLY) {
#ifdef LLMC_EMULATED
  simt_proxy_fence(where);
#else
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// --- matrix products of a warpgroup -------------------------------------------------------------
/// Where wgmma finds a matrix of 16-bit elements in shared memory that is swizzled by 128 bytes:
/// pieces of 8 rows of 128 bytes, 1,024 bytes aligned, whose 16-byte parts change places (by the
/// row, exclusive or). \p stride: bytes from one piece to the next along the rows; \p leading: to
/// the next 64 elements of a row, where the product's N goes along the row.
LLMC_OP unsigned long long matrixDescriptor(const void *p, int leading, int stride) {
#ifdef LLMC_EMULATED
  const unsigned address = simt_shared_address(p);
#else
  const unsigned address = sharedAddress(p);
#endif
  return static_cast<unsigned long long>((address & 0x3ffffu) >> 4) |
         static_cast<unsigned long long>(leading >> 4) << 16 |
         static_cast<unsigned long long>(stride >> 4) << 32 | 1ull << 62;
}

/// The same matrix, \p bytes further.
LLMC_FN unsigned long long advanced(unsigned long long descriptor, int bytes) {
  return descriptor + static_cast<unsigned>(bytes >> 4);
}

/// Before the first product, and after registers of one were touched.
LLMC_OP void wgmmaFence(LLMC_AT_ONLY) {
#ifdef LLMC_EMULATED
  simt_wgmma_fence(where);
#else
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}

/// Closes the group of the products since the last one.
LLMC_OP void wgmmaCommit(LLMC_AT_ONLY) {
#ifdef LLMC_EMULATED
  simt_wgmma_commit(where);
#else
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}

/// Waits until at most \p GroupsLeft groups are unfinished.
template <int GroupsLeft> LLMC_OP void wgmmaWait(LLMC_AT_ONLY) {
#ifdef LLMC_EMULATED
  simt_wgmma_wait(GroupsLeft, where);
#else
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(GroupsLeft) : "memory");
#endif
}

/// The compiler moves no use of the registers \p d over this: they are an unfinished product's
/// before a wait.
template <int Tiles> LLMC_FN void holdRegisters(float (&d)[Tiles][4]) {
#ifndef LLMC_EMULATED
#pragma unroll
  for (int i = 0; i < Tiles; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      asm volatile("" : "+f"(d[i][j])::"memory");
#endif
}

#ifndef LLMC_EMULATED
#define LLMC_D4(i) "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
#define LLMC_D32                                                                                   \
  LLMC_D4(0), LLMC_D4(1), LLMC_D4(2), LLMC_D4(3), LLMC_D4(4), LLMC_D4(5), LLMC_D4(6), LLMC_D4(7)
#define LLMC_D64                                                                                   \
  LLMC_D32, LLMC_D4(8), LLMC_D4(9), LLMC_D4(10), LLMC_D4(11), LLMC_D4(12), LLMC_D4(13),            \
      LLMC_D4(14), LLMC_D4(15)
#define LLMC_WGMMA_N64(Type)                                                                       \
  asm volatile("{ .reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"                                         \
               "wgmma.mma_async.sync.aligned.m64n64k16.f32." Type "." Type " "                     \
               "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"                           \
               "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "                \
               "{%32,%33,%34,%35}, %36, p, 1, 1, %38; }"                                           \
               : LLMC_D32                                                                          \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(int(add)),                \
                 "n"(int(AlongRows)))
#define LLMC_WGMMA_N128(Type)                                                                      \
  asm volatile("{ .reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"                                         \
               "wgmma.mma_async.sync.aligned.m64n128k16.f32." Type "." Type " "                    \
               "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"                           \
               "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"                  \
               "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"                  \
               "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, "                \
               "{%64,%65,%66,%67}, %68, p, 1, 1, %70; }"                                           \
               : LLMC_D64                                                                          \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(int(add)),                \
                 "n"(int(AlongRows)))
#endif

/// d (+)= a b, m64 n(8 Tiles) k16 with f32 sums, of f16 or \p IsBf16 bf16, by a warpgroup; done
/// after wgmmaWait. Warp w of the group has rows 16 w to 16 w + 15 of a and d, as mmaF16 has them:
/// d[i] is columns 8 i to 8 i + 7. \p b: descriptor of [N][16] rows along K, or, \p AlongRows, of
/// [16][N]. \p add false: d is not read.
template <bool IsBf16, bool AlongRows, int Tiles>
LLMC_OP void wgmma(float (&d)[Tiles][4], const unsigned (&a)[4], unsigned long long b,
                   bool add LLMC_AT) {
  static_assert(Tiles == 8 || Tiles == 16, "64 or 128 columns");
#ifdef LLMC_EMULATED
  simt_wgmma(&d[0][0], 8 * Tiles, a, b, AlongRows, IsBf16, add, where);
#else
  if constexpr (Tiles == 8) {
    if constexpr (IsBf16)
      LLMC_WGMMA_N64("bf16");
    else
      LLMC_WGMMA_N64("f16");
  } else {
    if constexpr (IsBf16)
      LLMC_WGMMA_N128("bf16");
    else
      LLMC_WGMMA_N128("f16");
  }
#endif
}

#ifndef LLMC_EMULATED
#undef LLMC_D4
#undef LLMC_D32
#undef LLMC_D64
#undef LLMC_WGMMA_N64
#undef LLMC_WGMMA_N128
#endif

// --- a warpgroup --------------------------------------------------------------------------------
/// Gives registers back, or takes them: \p Count a thread from now on, by all of a warpgroup.
template <int Count> LLMC_OP void releaseRegisters(LLMC_AT_ONLY) {
#ifdef LLMC_EMULATED
  simt_set_registers(Count, where);
#else
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count));
#endif
}
template <int Count> LLMC_OP void takeRegisters(LLMC_AT_ONLY) {
#ifdef LLMC_EMULATED
  simt_set_registers(Count, where);
#else
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count));
#endif
}

/// The barrier \p id (1 to 15) of \p threads threads of the block.
LLMC_OP void barrierOf(int id, int threads LLMC_AT) {
#ifdef LLMC_EMULATED
  simt_barrier_sync(id, threads, where);
#else
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
#endif
}

#endif // LLMC_CUDA_SM90_CUH
