// A copy by tensor map and two products of a warpgroup, right, and wrong in one way each. `map`:
// f16 [2][1][tiles * 64][64]; out: for each tile [64][64] of A B^T, then of A B, where B is the
// tile and A[row][k] = (row + 3 k) % 8 - 3.
#include "sm90.cuh"

enum Fault {
  kGood,
  kNoFullWait,
  kNoEmptyWait,
  kEmptyTooEarly,
  kNoInitFence,
  kTooManyBytes,
  kTooManyArrivals,
  kMisplacedCopy,
  kNoWgmmaFence,
  kNoProductWait,
  kSumsTouched,
  kOperandTouched,
  kWarpsDiffer,
  kCopyLeftAtExit,
  kGoodWritten,
  kNoProxyFence,
  kProxyFenceTooEarly,
  kNoBarrierAfterWrite,
};

struct Shared {
  __align__(1024) unsigned char tile[64 * 128];
  Mbarrier full, empty;
};

template <int F> static void body(float *out, int tiles, const LlmrtTensorMap &map) {
  LLMC_SHARED(Shared, shared);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (threadIdx.x == 0) {
    mbarrierInit(shared.full, 1);
    mbarrierInit(shared.empty, 4);
    if (F != kNoInitFence)
      mbarrierInitFence();
  }
  __syncthreads();
  if (F >= kGoodWritten) { // the consumers write the tile themselves, zeros
    if (warp == 4)
      return;
    if (F == kProxyFenceTooEarly)
      proxyFence();
    for (int i = threadIdx.x; i < 512; i += kWarpgroup)
      *reinterpret_cast<uint4 *>(shared.tile + 16 * i) = make_uint4(0, 0, 0, 0);
    if (F != kNoProxyFence && F != kProxyFenceTooEarly)
      proxyFence();
    if (F != kNoBarrierAfterWrite)
      barrierOf(1, kWarpgroup);
  } else if (warp == 4) {
    if (lane == 0)
      for (int i = 0; i < tiles; ++i) {
        if (F != kNoEmptyWait)
          mbarrierWait(shared.empty, i % 2 ^ 1);
        mbarrierArriveExpect(shared.full, F == kTooManyBytes ? 8200 : 8192);
        if (F == kTooManyArrivals)
          mbarrierArrive(shared.full);
        copyTensor4(shared.tile + (F == kMisplacedCopy ? 64 : 0), map, 0, 64 * i, 0, 1,
                    shared.full);
        if (F == kCopyLeftAtExit && i + 1 == tiles)
          copyTensor4(shared.tile, map, 0, 0, 0, 0, shared.full);
      }
    return;
  }
  unsigned a[4][4]; // [k / 16]: as mmaF16 has it
  auto fill = [&] {
    for (int k = 0; k < 4; ++k)
      for (int i = 0; i < 4; ++i) {
        const int row = warp * 16 + lane / 4 + i % 2 * 8,
                  column = 16 * k + i / 2 * 8 + lane % 4 * 2;
        a[k][i] = packF16(float((row + 3 * column) % 8 - 3), float((row + 3 * column + 3) % 8 - 3));
      }
  };
  fill();
  for (int i = 0; i < tiles; ++i) {
    float d[2][8][4];
    if (F < kGoodWritten && F != kNoFullWait && F != kCopyLeftAtExit)
      mbarrierWait(shared.full, i % 2);
    if (F == kCopyLeftAtExit)
      break;
    if (F != kNoWgmmaFence)
      wgmmaFence();
    const unsigned long long rows = matrixDescriptor(shared.tile, 0, 1024);
    for (int k = 0; k < 4; ++k) {
      if (F == kWarpsDiffer && warp == 2)
        wgmma<false, false>(d[0], a[k], advanced(rows, 32 * (3 - k)), k > 0);
      else
        wgmma<false, false>(d[0], a[k], advanced(rows, 32 * k), k > 0);
    }
    wgmmaCommit();
    for (int k = 0; k < 4; ++k)
      wgmma<false, true>(d[1], a[k], advanced(rows, 2048 * k), k > 0);
    wgmmaCommit();
    if (F == kSumsTouched)
      d[1][0][0] = 1.0f;
    if (F == kOperandTouched)
      a[0][0] = 0;
    if (F == kEmptyTooEarly && lane == 0)
      mbarrierArrive(shared.empty);
    if (F != kNoProductWait) {
      wgmmaWait<1>();
      wgmmaWait<0>();
    }
    if (F < kGoodWritten && F != kEmptyTooEarly && lane == 0)
      mbarrierArrive(shared.empty);
    for (int m = 0; m < 2; ++m)
      for (int n = 0; n < 8; ++n)
        for (int c = 0; c < 4; ++c)
          out[((2 * i + m) * 64 + warp * 16 + lane / 4 + c / 2 * 8) * 64 + 8 * n + lane % 4 * 2 +
              c % 2] = d[m][n][c];
  }
}

extern "C" __global__ void good(float *out, int tiles, const __grid_constant__ LlmrtTensorMap map) {
  body<kGood>(out, tiles, map);
}
extern "C" __global__ void no_full_wait(float *out, int tiles,
                                        const __grid_constant__ LlmrtTensorMap map) {
  body<kNoFullWait>(out, tiles, map);
}
extern "C" __global__ void no_empty_wait(float *out, int tiles,
                                         const __grid_constant__ LlmrtTensorMap map) {
  body<kNoEmptyWait>(out, tiles, map);
}
extern "C" __global__ void empty_too_early(float *out, int tiles,
                                           const __grid_constant__ LlmrtTensorMap map) {
  body<kEmptyTooEarly>(out, tiles, map);
}
extern "C" __global__ void no_init_fence(float *out, int tiles,
                                         const __grid_constant__ LlmrtTensorMap map) {
  body<kNoInitFence>(out, tiles, map);
}
extern "C" __global__ void too_many_bytes(float *out, int tiles,
                                          const __grid_constant__ LlmrtTensorMap map) {
  body<kTooManyBytes>(out, tiles, map);
}
extern "C" __global__ void too_many_arrivals(float *out, int tiles,
                                             const __grid_constant__ LlmrtTensorMap map) {
  body<kTooManyArrivals>(out, tiles, map);
}
extern "C" __global__ void misplaced_copy(float *out, int tiles,
                                          const __grid_constant__ LlmrtTensorMap map) {
  body<kMisplacedCopy>(out, tiles, map);
}
extern "C" __global__ void no_wgmma_fence(float *out, int tiles,
                                          const __grid_constant__ LlmrtTensorMap map) {
  body<kNoWgmmaFence>(out, tiles, map);
}
extern "C" __global__ void no_product_wait(float *out, int tiles,
                                           const __grid_constant__ LlmrtTensorMap map) {
  body<kNoProductWait>(out, tiles, map);
}
extern "C" __global__ void sums_touched(float *out, int tiles,
                                        const __grid_constant__ LlmrtTensorMap map) {
  body<kSumsTouched>(out, tiles, map);
}
extern "C" __global__ void operand_touched(float *out, int tiles,
                                           const __grid_constant__ LlmrtTensorMap map) {
  body<kOperandTouched>(out, tiles, map);
}
extern "C" __global__ void warps_differ(float *out, int tiles,
                                        const __grid_constant__ LlmrtTensorMap map) {
  body<kWarpsDiffer>(out, tiles, map);
}
extern "C" __global__ void copy_left_at_exit(float *out, int tiles,
                                             const __grid_constant__ LlmrtTensorMap map) {
  body<kCopyLeftAtExit>(out, tiles, map);
}
extern "C" __global__ void good_written(float *out, int tiles,
                                        const __grid_constant__ LlmrtTensorMap map) {
  body<kGoodWritten>(out, tiles, map);
}
extern "C" __global__ void no_proxy_fence(float *out, int tiles,
                                          const __grid_constant__ LlmrtTensorMap map) {
  body<kNoProxyFence>(out, tiles, map);
}
extern "C" __global__ void proxy_fence_too_early(float *out, int tiles,
                                                 const __grid_constant__ LlmrtTensorMap map) {
  body<kProxyFenceTooEarly>(out, tiles, map);
}
extern "C" __global__ void no_barrier_after_write(float *out, int tiles,
                                                  const __grid_constant__ LlmrtTensorMap map) {
  body<kNoBarrierAfterWrite>(out, tiles, map);
}
