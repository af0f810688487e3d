// Every instruction of device.cuh by itself: one warp, random inputs, all results written out. On a
// GPU they are compared with what the emulator gives. `in` and `out` have kWords words a lane.
#include "device.cuh"

constexpr int kWords = 16;

struct SharedLanes {
  struct Lane {
    unsigned w[kWords];
  } lanes[32];
};

#define LANE const int lane = threadIdx.x
#define IN(i) in[lane * kWords + (i)]
#define OUT(i) out[lane * kWords + (i)]
#define FLOAT_IN(i) __uint_as_float(IN(i))

extern "C" __global__ void convert(const unsigned *in, unsigned *out) {
  LANE;
  for (int i = 0; i < 4; ++i) {
    const f16 h = floatToF16(FLOAT_IN(i));
    const bf16 b = floatToBf16(FLOAT_IN(i));
    OUT(4 * i) = h.bits;
    OUT(4 * i + 1) = __float_as_uint(f16ToFloat(h));
    OUT(4 * i + 2) = b.bits;
    OUT(4 * i + 3) = floatToTf32(FLOAT_IN(i));
  }
}

extern "C" __global__ void pack(const unsigned *in, unsigned *out) {
  LANE;
  for (int i = 0; i < 8; ++i) {
    OUT(2 * i) = packF16(FLOAT_IN(2 * i), FLOAT_IN(2 * i + 1));
    OUT(2 * i + 1) = packBf16(FLOAT_IN(2 * i), FLOAT_IN(2 * i + 1));
  }
}

extern "C" __global__ void half_arithmetic(const unsigned *in, unsigned *out) {
  LANE;
  for (int i = 0; i < 5; ++i) {
    OUT(3 * i) = subtractF16(IN(3 * i), IN(3 * i + 1));
    OUT(3 * i + 1) = multiplyF16(IN(3 * i), IN(3 * i + 1));
    OUT(3 * i + 2) = fmaF16(IN(3 * i), IN(3 * i + 1), IN(3 * i + 2));
  }
  OUT(15) = 0;
}

extern "C" __global__ void exp2_approximate(const unsigned *in, unsigned *out) {
  LANE;
  for (int i = 0; i < kWords; ++i)
    OUT(i) = __float_as_uint(exp2Approximate(FLOAT_IN(i)));
}

extern "C" __global__ void load_streaming(const unsigned *in, unsigned *out) {
  LANE;
  for (int i = 0; i < 4; ++i) {
    const uint4 v = loadStreaming(in + lane * kWords + 4 * i);
    OUT(4 * i) = v.w;
    OUT(4 * i + 1) = v.z;
    OUT(4 * i + 2) = v.y;
    OUT(4 * i + 3) = v.x;
  }
}

// Two groups; the first is used while the second may be in flight. Some copies write zeros.
extern "C" __global__ void copy_async(const unsigned *in, unsigned *out) {
  LANE;
  LLMC_SHARED(SharedLanes, shared);
  copyAsync16(&shared.lanes[lane].w[0], in + lane * kWords, lane % 3 != 0);
  copyAsync16(&shared.lanes[lane].w[4], in + lane * kWords + 4, true);
  copyAsyncCommit();
  for (int i = 8; i < 16; ++i)
    copyAsync4(&shared.lanes[lane].w[i], in + lane * kWords + i, i != 11);
  copyAsyncCommit();
  copyAsyncWait<1>();
  __syncwarp();
  for (int i = 0; i < 8; ++i)
    OUT(i) = shared.lanes[(lane + 1) % 32].w[i];
  copyAsyncWait<0>();
  __syncwarp();
  for (int i = 8; i < 16; ++i)
    OUT(i) = shared.lanes[(lane + 5) % 32].w[i];
}

extern "C" __global__ void load_matrix(const unsigned *in, unsigned *out) {
  LANE;
  LLMC_SHARED(SharedLanes, shared);
  for (int i = 0; i < kWords; ++i)
    shared.lanes[lane].w[i] = IN(i);
  __syncwarp();
  unsigned straight[4], transposed[4];
  loadMatrix4(straight, &shared.lanes[lane].w[4]);
  loadMatrix4Transposed(transposed, &shared.lanes[lane ^ 5].w[8]);
  for (int i = 0; i < 4; ++i) {
    OUT(i) = straight[i];
    OUT(4 + i) = transposed[i];
    OUT(8 + i) = OUT(12 + i) = 0;
  }
}

/// Two products, the second on top of the first.
#define MULTIPLY(multiply, operand)                                                                \
  LANE;                                                                                            \
  float d[4] = {};                                                                                 \
  const unsigned a[4] = {operand(0), operand(1), operand(2), operand(3)};                          \
  const unsigned b[2] = {operand(4), operand(5)};                                                  \
  multiply(d, a, b);                                                                               \
  for (int i = 0; i < kWords; ++i)                                                                 \
    OUT(i) = i < 4 ? __float_as_uint(d[i]) : 0;                                                    \
  multiply(d, a, b);                                                                               \
  for (int i = 0; i < 4; ++i)                                                                      \
    OUT(4 + i) = __float_as_uint(d[i]);
#define TF32_IN(i) floatToTf32(FLOAT_IN(i))

extern "C" __global__ void mma_f16(const unsigned *in, unsigned *out) { MULTIPLY(mmaF16, IN) }
extern "C" __global__ void mma_bf16(const unsigned *in, unsigned *out) { MULTIPLY(mmaBf16, IN) }
extern "C" __global__ void mma_tf32(const unsigned *in, unsigned *out) {
  MULTIPLY(mmaTf32, TF32_IN)
}

extern "C" __global__ void reduce(const unsigned *in, unsigned *out) {
  LANE;
  for (int i = 0; i < 8; ++i) {
    OUT(i) = __float_as_uint(warpSum(FLOAT_IN(i)));
    OUT(8 + i) = __float_as_uint(warpMax(FLOAT_IN(8 + i)));
  }
}
