// Kernels that are wrong on purpose, for each kind of fault, and correct twins. All of them are
// correct C++: what is wrong shows only when threads meet. p has 128 floats, n is what each needs.

// What device.cuh gives kernels, for these few.
static inline void copyAsync(void *to, const void *from, SIMT_WHERE) {
  simt_copy_async(to, from, 16, 16, where);
}
static inline void copyCommit(SIMT_WHERE) { simt_copy_async_commit(where); }
static inline void copyWait(int left, SIMT_WHERE) { simt_copy_async_wait(left, where); }
extern "C" __global__ void bad_exit_before_barrier(float *p, int n) {
  if (int(threadIdx.x) >= n)
    return;
  p[threadIdx.x] = 1.f;
  __syncthreads(); // threads below n wait for ever
}

extern "C" __global__ void bad_two_barriers(float *p, int n) {
  if (threadIdx.x < 32) {
    p[threadIdx.x] = 1.f;
    __syncthreads();
  } else {
    __syncthreads(); // another barrier than the first warp's
  }
}

extern "C" __global__ void bad_barrier_against_shuffle(float *p, int n) {
  if (threadIdx.x < 16)
    __syncthreads();
  p[threadIdx.x] = __shfl_sync(0xffffffffu, 1.f, 0);
  if (threadIdx.x >= 16)
    __syncthreads();
}

extern "C" __global__ void bad_shared_write_after_read(float *p, int n) {
  __shared__ float s[64];
  s[threadIdx.x] = 0.f;
  __syncthreads();
  float neighbour = s[(threadIdx.x + 1) & 63];
  s[threadIdx.x] = 1.f; // others may not have read it
  p[threadIdx.x] = neighbour;
}

extern "C" __global__ void bad_shared_read_after_write(float *p, int n) {
  __shared__ float s[64];
  s[threadIdx.x] = float(threadIdx.x);
  p[threadIdx.x] = s[threadIdx.x ^ 32]; // no barrier between
}

extern "C" __global__ void bad_shared_write_write(float *p, int n) {
  __shared__ float s[64];
  s[threadIdx.x & 31] = float(threadIdx.x);
  __syncthreads();
  p[threadIdx.x] = s[threadIdx.x & 31];
}

extern "C" __global__ void bad_warp_without_syncwarp(float *p, int n) {
  __shared__ float s[64];
  s[threadIdx.x] = 1.f;
  if ((threadIdx.x & 31) < 16) // lockstep is not promised since sm_70
    p[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x + 16];
}

extern "C" __global__ void good_warp_with_syncwarp(float *p, int n) {
  __shared__ float s[64];
  s[threadIdx.x] = 1.f;
  __syncwarp();
  if ((threadIdx.x & 31) < 16)
    p[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x + 16];
}

extern "C" __global__ void bad_shuffle_orders_no_memory(float *p, int n) {
  __shared__ float s[64];
  s[threadIdx.x] = 1.f;
  float x = __shfl_xor_sync(0xffffffffu, 1.f, 16);
  p[threadIdx.x] = x + s[threadIdx.x ^ 1];
}

extern "C" __global__ void bad_bytes_of_one_word(float *p, int n) {
  __shared__ unsigned char s[64];
  s[threadIdx.x] = 1;
  __syncthreads();
  s[threadIdx.x] = s[(threadIdx.x + 1) & 63]; // a byte of the neighbour's, read and written
  __syncthreads();
  p[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void good_bytes_of_one_word(float *p, int n) {
  __shared__ unsigned char s[64];
  s[threadIdx.x] = 1;
  __syncthreads();
  p[threadIdx.x] = s[threadIdx.x ^ 1];
}

extern "C" __global__ void bad_uninitialised_shared(float *p, int n) {
  __shared__ float s[128];
  s[threadIdx.x] = 1.f;
  __syncthreads();
  p[threadIdx.x] = s[threadIdx.x + 64];
}

extern "C" __global__ void bad_uninitialised_global(float *p, int n) {
  p[threadIdx.x] = p[threadIdx.x + 64] + 1.f; // the test initialises the first half
}

extern "C" __global__ void bad_write_past_the_end(float *p, int n) { p[threadIdx.x + n] = 1.f; }

extern "C" __global__ void bad_read_before_the_start(float *p, int n) {
  float v = p[-1 - int(threadIdx.x)];
  p[threadIdx.x] = v;
}

extern "C" __global__ void bad_shared_past_the_end(float *p, int n) {
  float *s = (float *)simt::sharedMemory(); // 256 bytes
  s[threadIdx.x + 1] = 1.f;
}

extern "C" __global__ void bad_array_index(float *p, int n) {
  float a[4] = {p[0], p[1], p[2], p[3]};
  p[threadIdx.x] = a[n & 7];
}

extern "C" __global__ void bad_misaligned_vector(float *p, int n) {
  uint4 v = *(const uint4 *)(p + 1);
  p[threadIdx.x] = float(v.x + v.w);
}

extern "C" __global__ void bad_misaligned_word(float *p, int n) {
  p[threadIdx.x] = *(const float *)((const char *)p + 2);
}

extern "C" __global__ void bad_shuffle_with_exited_lane(float *p, int n) {
  if ((threadIdx.x & 31) >= 20)
    return;
  p[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1.f, 1);
}

extern "C" __global__ void bad_divergent_shuffle(float *p, int n) {
  float v;
  if (threadIdx.x & 1)
    v = __shfl_sync(0xffffffffu, 1.f, 0);
  else
    v = __shfl_sync(0xffffffffu, 2.f, 0);
  p[threadIdx.x] = v;
}

extern "C" __global__ void bad_shuffle_from_outside_the_mask(float *p, int n) {
  if ((threadIdx.x & 31) < 16)
    p[threadIdx.x] = __shfl_sync(0x0000ffffu, 1.f, 20);
}

extern "C" __global__ void bad_own_lane_not_in_mask(float *p, int n) {
  p[threadIdx.x] = __shfl_sync(0x0000ffffu, 1.f, 0);
}

extern "C" __global__ void bad_copy_not_waited(float *p, int n) {
  unsigned char *s = simt::sharedMemory();
  copyAsync(s + threadIdx.x * 16, p);
  copyCommit();
  __syncthreads();
  float v = ((float *)s)[threadIdx.x * 4];
  copyWait(0);
  p[64 + threadIdx.x] = v;
}

extern "C" __global__ void bad_copy_waited_for_too_few(float *p, int n) {
  unsigned char *s = simt::sharedMemory();
  copyAsync(s + threadIdx.x * 16, p);
  copyCommit();
  copyWait(1); // one group may stay in flight: this one
  __syncthreads();
  float v = ((float *)s)[threadIdx.x * 4];
  copyWait(0);
  p[64 + threadIdx.x] = v;
}

extern "C" __global__ void bad_copy_without_barrier(float *p, int n) {
  unsigned char *s = simt::sharedMemory();
  copyAsync(s + threadIdx.x * 16, p);
  copyCommit();
  copyWait(0); // waits for this thread's copies only
  p[64 + threadIdx.x] = ((float *)s)[(threadIdx.x ^ 1) * 4];
}

extern "C" __global__ void bad_copy_left_at_exit(float *p, int n) {
  copyAsync(simt::sharedMemory() + threadIdx.x * 16, p);
  copyCommit();
}

extern "C" __global__ void good_copy(float *p, int n) {
  unsigned char *s = simt::sharedMemory();
  copyAsync(s + threadIdx.x * 16, p);
  copyCommit();
  copyWait(0);
  __syncthreads();
  p[64 + threadIdx.x] = ((float *)s)[(threadIdx.x ^ 1) * 4];
}

extern "C" __global__ void bad_blocks_add(float *p, int n) {
  if (threadIdx.x == 0)
    p[0] = p[0] + 1.f; // two blocks
}

extern "C" __global__ void good_blocks_add(float *p, int n) {
  if (threadIdx.x == 0)
    atomicAdd(p, 1.f);
}

extern "C" __global__ void bad_block_reads_what_another_wrote(float *p, int n) {
  p[64 * blockIdx.x + threadIdx.x] = 1.f;
  if (blockIdx.x == 1)
    p[64 + threadIdx.x] = p[threadIdx.x];
  else
    p[threadIdx.x] = p[64 + threadIdx.x];
}

// The last block to arrive adds up what all have written. p[127] starts at zero bits. PTX's pattern:
// a barrier, then fence, atomic, fence by one thread, then a barrier.
extern "C" __global__ void good_last_block_reduces(float *p, int n) {
  __shared__ unsigned ticket;
  if (threadIdx.x < 48)
    p[48 * blockIdx.x + threadIdx.x] = 1.f;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    ticket = atomicAdd((unsigned *)p + 127, 1u);
    __threadfence();
  }
  __syncthreads();
  if (ticket == gridDim.x - 1 && threadIdx.x < 16)
    p[96 + threadIdx.x] = p[threadIdx.x] + p[48 + threadIdx.x];
}

extern "C" __global__ void bad_last_block_without_fence(float *p, int n) {
  __shared__ unsigned ticket;
  if (threadIdx.x == 0) {
    p[blockIdx.x] = 1.f;
    ticket = atomicAdd((unsigned *)p + 127, 1u);
    __threadfence();
  }
  __syncthreads();
  if (threadIdx.x == 0 && ticket == gridDim.x - 1)
    p[64] = p[0] + p[1];
}

extern "C" __global__ void bad_last_block_reads_without_fence(float *p, int n) {
  __shared__ unsigned ticket;
  if (threadIdx.x == 0) {
    p[blockIdx.x] = 1.f;
    __threadfence();
    ticket = atomicAdd((unsigned *)p + 127, 1u);
  }
  __syncthreads();
  if (threadIdx.x == 0 && ticket == gridDim.x - 1)
    p[64] = p[0] + p[1];
}

// No barrier between what the others write and thread 0's fence.
extern "C" __global__ void bad_last_block_without_barrier(float *p, int n) {
  __shared__ unsigned ticket;
  if (threadIdx.x < 48)
    p[48 * blockIdx.x + threadIdx.x] = 1.f;
  if (threadIdx.x == 0) {
    __threadfence();
    ticket = atomicAdd((unsigned *)p + 127, 1u);
    __threadfence();
  }
  __syncthreads();
  if (ticket == gridDim.x - 1 && threadIdx.x < 16)
    p[96 + threadIdx.x] = p[threadIdx.x] + p[48 + threadIdx.x];
}

// A fence is one of the thread that makes it: another's atomic publishes nothing.
extern "C" __global__ void bad_last_block_fence_of_another_thread(float *p, int n) {
  __shared__ unsigned ticket;
  if (threadIdx.x < 48)
    p[48 * blockIdx.x + threadIdx.x] = 1.f;
  __syncthreads();
  if (threadIdx.x == 32)
    __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    ticket = atomicAdd((unsigned *)p + 127, 1u);
    __threadfence();
  }
  __syncthreads();
  if (ticket == gridDim.x - 1 && threadIdx.x < 16)
    p[96 + threadIdx.x] = p[threadIdx.x] + p[48 + threadIdx.x];
}

// What is written after the fence is not published by it.
extern "C" __global__ void bad_last_block_writes_after_fence(float *p, int n) {
  __shared__ unsigned ticket;
  if (threadIdx.x == 0) {
    __threadfence();
    p[blockIdx.x] = 1.f;
    ticket = atomicAdd((unsigned *)p + 127, 1u);
    __threadfence();
  }
  __syncthreads();
  if (threadIdx.x == 0 && ticket == gridDim.x - 1)
    p[64] = p[0] + p[1];
}

extern "C" __global__ void good_named_barriers(float *p, int n) {
  __shared__ float s[64];
  s[threadIdx.x] = 1.f;
  simt_barrier_sync(1, 64, simt::Where::current()); // all, by name
  if (threadIdx.x < 32) {
    s[threadIdx.x] = 2.f;
    simt_barrier_sync(2, 32, simt::Where::current());
    p[threadIdx.x] = s[threadIdx.x ^ 1];
  } else {
    p[threadIdx.x] = s[threadIdx.x];
  }
}

// One warp hands over by arriving, the other waits.
extern "C" __global__ void good_arrive_hands_over(float *p, int n) {
  __shared__ float s[32];
  if (threadIdx.x < 32) {
    s[threadIdx.x] = 1.f;
    simt_barrier_arrive(1, 64, simt::Where::current());
  } else {
    simt_barrier_sync(1, 64, simt::Where::current());
    p[threadIdx.x] = s[threadIdx.x - 32];
  }
}

extern "C" __global__ void bad_write_after_arrive(float *p, int n) {
  __shared__ float s[32];
  if (threadIdx.x < 32) {
    simt_barrier_arrive(1, 64, simt::Where::current());
    s[threadIdx.x] = 1.f;
  } else {
    simt_barrier_sync(1, 64, simt::Where::current());
    p[threadIdx.x] = s[threadIdx.x - 32];
  }
}

// Whoever arrives without waiting knows nothing of the others.
extern "C" __global__ void bad_read_after_arrive(float *p, int n) {
  __shared__ float s[32];
  if (threadIdx.x < 32) {
    simt_barrier_arrive(1, 64, simt::Where::current());
    p[threadIdx.x] = s[threadIdx.x];
  } else {
    s[threadIdx.x - 32] = 1.f;
    simt_barrier_sync(1, 64, simt::Where::current());
  }
}

extern "C" __global__ void bad_named_barrier_of_too_few(float *p, int n) {
  if (threadIdx.x < 32)
    simt_barrier_sync(1, 64, simt::Where::current()); // the other warp never comes
}

extern "C" __global__ void bad_host_pointer(float *p, int n) { ((float *)8)[threadIdx.x] = 1.f; }
