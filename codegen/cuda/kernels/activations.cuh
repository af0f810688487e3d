//===- activations.cuh - rows of activations as operands of the tensor cores ----===//
#ifndef LLMC_CUDA_ACTIVATIONS_CUH
#define LLMC_CUDA_ACTIVATIONS_CUH

#include "weights.cuh"

/// The B operand of one step for 8 tokens: lane (g, t) holds 8 columns of token g.
template <Compute C> struct TokenFragment {
  unsigned b[2][2];
};
template <> struct TokenFragment<Compute::F32> {
  unsigned high[4][2], low[4][2];
};

/// Rows of f32[M, K], \p Stride values from one to the next.
template <class F, int K, int Stride = K> struct FloatRows {
  static constexpr long long kRowBytes = 4ll * Stride;

  /// The 8 values of a lane's columns of \p step; zeros beyond K and where \p keep is false.
  LLMC_MEMBER void load(float (&v)[8], const unsigned char *row, int step, int t, bool keep) {
    using C = Columns<F>;
    const float *x = reinterpret_cast<const float *>(row) + step * kStepColumns;
#pragma unroll
    for (int i = 0; i < C::kRuns; ++i) {
      const int column = C::column(t, i);
      if constexpr (C::kRun == 4 && K % 4 == 0 && Stride % 4 == 0) {
        const bool exists = keep && step * kStepColumns + column < K;
        const float4 run = exists ? *reinterpret_cast<const float4 *>(x + column)
                                  : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        v[4 * i] = run.x, v[4 * i + 1] = run.y, v[4 * i + 2] = run.z, v[4 * i + 3] = run.w;
      } else if constexpr (C::kRun == 2 && K % 2 == 0 && Stride % 2 == 0) {
        const bool exists = keep && step * kStepColumns + column < K;
        const float2 run =
            exists ? *reinterpret_cast<const float2 *>(x + column) : make_float2(0.0f, 0.0f);
        v[2 * i] = run.x, v[2 * i + 1] = run.y;
      } else {
#pragma unroll
        for (int j = 0; j < C::kRun; ++j) {
          const bool exists = keep && step * kStepColumns + column + j < K;
          v[C::kRun * i + j] = exists ? x[column + j] : 0.0f;
        }
      }
    }
  }
};

/// int8 rows (Int8Row) in groups of \p Group, a multiple of 4.
template <class F, int K, int Group> struct Int8Rows {
  using Row = Int8Row<K, Group>;
  static constexpr long long kRowBytes = Row::kBytes;

  LLMC_MEMBER void load(float (&v)[8], const unsigned char *row, int step, int t, bool keep) {
    using C = Columns<F>;
    static_assert(C::kRun == 4, "int8 rows meet integer weights only");
    const float *scales = reinterpret_cast<const float *>(row + Row::kPadded);
#pragma unroll
    for (int i = 0; i < C::kRuns; ++i) {
      const int column = step * kStepColumns + C::column(t, i);
      const bool exists = keep && column < Row::kPadded;
      const unsigned word = exists ? *reinterpret_cast<const unsigned *>(row + column) : 0u;
      const float scale = exists ? scales[column / Group] : 0.0f;
#pragma unroll
      for (int j = 0; j < 4; ++j)
        v[4 * i + j] = static_cast<float>(static_cast<signed char>(word >> (8 * j) & 0xff)) * scale;
    }
  }
};

template <Compute C> LLMC_FN void pack(TokenFragment<C> &f, const float (&v)[8]) {
  if constexpr (C == Compute::F32) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      f.high[i / 2][i % 2] = floatToTf32(v[i]);
      f.low[i / 2][i % 2] = floatToTf32(v[i] - __uint_as_float(f.high[i / 2][i % 2]));
    }
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      f.b[i / 2][i % 2] =
          C == Compute::F16 ? packF16(v[2 * i], v[2 * i + 1]) : packBf16(v[2 * i], v[2 * i + 1]);
  }
}

/// d[16 rows, 8 tokens] += one step. The order of a step's mma is the same everywhere.
template <Compute C>
LLMC_FN void multiply(float (&d)[4], const WeightFragment<C> &w, const TokenFragment<C> &x) {
  if constexpr (C == Compute::F32) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      mmaTf32(d, w.low[i], x.high[i]);
      mmaTf32(d, w.high[i], x.low[i]);
      mmaTf32(d, w.high[i], x.high[i]);
    }
  } else {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      if constexpr (C == Compute::F16)
        mmaF16(d, w.a[j], x.b[j]);
      else
        mmaBf16(d, w.a[j], x.b[j]);
    }
  }
}

#endif // LLMC_CUDA_ACTIVATIONS_CUH
