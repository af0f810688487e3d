//===- Abi.h - between a kernel built for the host and the emulator --------===//
//
// The text of a CUDA kernel, compiled as plain C++, calls these functions where a GPU has an
// instruction that C++ has not. Prelude.h and the host bodies of codegen/cuda/kernels/device.cuh
// are the only callers. A location is that of the kernel's own line: a trailing default argument
// of every wrapper.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TEST_EMULATOR_ABI_H
#define LLMC_TEST_EMULATOR_ABI_H

#include <cstddef>
#include <cstdint>
#include <source_location>

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};

/// Every object that build-kernels makes holds this text; the stand-in driver loads no other.
#define SIMT_OBJECT_MARK "llmc kernels built for the SIMT emulator"

namespace simt {

using Where = std::source_location;

/// What kernel code reads of its block.
struct BlockView {
  uint3 index;
  dim3 size, grid;
  unsigned char *shared; ///< the dynamic shared memory, 1024-byte aligned
  unsigned sharedBytes;
};
/// What kernel code reads of its thread.
struct ThreadView {
  uint3 index;
  unsigned linear, lane;
  const BlockView *block;
};

/// Operations that the lanes of a warp do together: each lane brings its operands, the last one
/// carries the operation out for all.
enum Collective : int {
  SyncWarp, ///< no operands
  Shuffle,  ///< ShuffleLane
  Vote,     ///< VoteLane
  Reduce,   ///< ReduceLane: the xor butterfly 16, 8, 4, 2, 1 of additions or maxima
  LoadMatrix,
  LoadMatrixTransposed, ///< LoadMatrixLane
  MmaF16,               ///< m16n8k16 f16 -> f32, MmaLane: a[4], b[2], c[4], d[4]
  MmaBf16,              ///< m16n8k16 bf16 -> f32
  MmaS8,                ///< m16n8k32 s8 -> s32: c and d hold integers
  MmaE4m3,              ///< m16n8k32 e4m3 -> f32
  MmaTf32,              ///< m16n8k8 tf32 -> f32: operands are f32 bits
};

struct ShuffleLane {
  uint64_t value, result;
  int source; ///< lane
};
struct VoteLane {
  unsigned predicate, result;
};
struct ReduceLane {
  float value;
  int maximum; ///< 0: sum
};
struct LoadMatrixLane {
  const void *row; ///< of matrix lane / 8, row lane % 8: 16 bytes
  unsigned *result;
  int matrices; ///< 1, 2 or 4
};
struct MmaLane {
  const unsigned *a, *b;
  const void *c;
  void *d;
};

/// One kernel of an object, found by the symbol simt_kernel_<name>.
struct KernelEntry {
  const char *name;
  void (*call)(void *const *arguments); ///< each points to an argument's value
  int argumentCount;
  const unsigned short *argumentBytes;
  void *(*staticShared)(); ///< touches the object's static shared memory on this thread
  bool checked;            ///< built with the instrumentation that the checker needs
};

} // namespace simt

extern "C" {
extern thread_local __attribute__((tls_model("initial-exec"))) simt::ThreadView *simt_thread;

// Barriers of a block. Arriving at a named barrier without waiting: simt_barrier_arrive.
void simt_syncthreads(simt::Where);
/// \p operation 0: count, 1: and, 2: or.
int simt_syncthreads_reduce(int predicate, int operation, simt::Where);
void simt_barrier_sync(int id, int threads, simt::Where);
void simt_barrier_arrive(int id, int threads, simt::Where);

void simt_collective(int kind, unsigned mask, void *lane, simt::Where);

/// An access of the full width that the instruction has: 16 bytes for ld.v4.
void simt_check(const void *address, int bytes, int write, simt::Where);

// cp.async: \p bytes are written, the first \p sourceBytes from memory, the rest zeros.
void simt_copy_async(void *destination, const void *source, int bytes, int sourceBytes,
                     simt::Where);
void simt_copy_async_commit(simt::Where);
void simt_copy_async_wait(int groupsLeft, simt::Where);

// Atomics on global or shared memory; return the old value.
uint32_t simt_atomic_add_u32(uint32_t *, uint32_t, simt::Where);
uint64_t simt_atomic_add_u64(uint64_t *, uint64_t, simt::Where);
uint32_t simt_atomic_exchange_u32(uint32_t *, uint32_t, simt::Where);
uint32_t simt_atomic_max_u32(uint32_t *, uint32_t, simt::Where);
uint64_t simt_atomic_max_u64(uint64_t *, uint64_t, simt::Where);
float simt_atomic_add_f32(float *, float, simt::Where);
/// __threadfence.
void simt_fence(simt::Where);

// Hopper (sm90.cuh). An mbarrier is 8 bytes of shared memory; \p bytes are announced with the
// arrival.
void simt_mbarrier_init(void *barrier, int arrivals, simt::Where);
void simt_mbarrier_init_fence(simt::Where);
void simt_mbarrier_arrive(void *barrier, int bytes, simt::Where);
void simt_mbarrier_wait(void *barrier, int parity, simt::Where);
/// cp.async.bulk.tensor: the box at \p at, innermost first, of a map that encodeTensorMap wrote.
void simt_copy_tensor(void *destination, const void *map, const int *at, int rank, void *barrier,
                      simt::Where);
/// fence.proxy.async.
void simt_proxy_fence(simt::Where);

// wgmma: d[columns / 8][4] (+)= a b of m64 n(columns) k16; \p alongRows: b is [16][columns] in
// memory, not [columns][16].
void simt_wgmma(float *d, int columns, const unsigned *a, uint64_t b, int alongRows, int isBf16,
                int add, simt::Where);
void simt_wgmma_fence(simt::Where);
void simt_wgmma_commit(simt::Where);
void simt_wgmma_wait(int groupsLeft, simt::Where);
/// setmaxnreg.
void simt_set_registers(int count, simt::Where);

/// The offset in the block's shared memory, as cvta.to.shared gives it.
uint32_t simt_shared_address(const void *);

[[noreturn]] void simt_trap(const char *what, simt::Where);
}

#endif // LLMC_TEST_EMULATOR_ABI_H
