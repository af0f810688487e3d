//===- Contract.cpp - matrix products -----------------------------------------===//
#include "codegen/cpu/graph/Graph.h"

namespace llmc::graphcode {

/// c[M, N] += a[M, K] b[K, N], rows and columns with strides of their own. Each element of c is
/// summed over k in order.
template <class T>
GRAPH_INLINE void product(int64_t M, int64_t N, int64_t K, const T *a, int64_t rowA,
                          int64_t columnA, const T *b, int64_t rowB, int64_t columnB, T *c) {
  auto add = [](T sum, T x, T y) -> T {
    if constexpr (isReal<T>)
      return __builtin_elementwise_fma(x, y, sum);
    else
      return T(uint64_t(sum) + uint64_t(x) * uint64_t(y));
  };
  constexpr int64_t kRows = 4, kBlock = 256;
  for (int64_t k0 = 0; k0 < K; k0 += kBlock) {
    int64_t k1 = min(K, k0 + kBlock);
    for (int64_t m0 = 0; m0 < M; m0 += kRows) {
      int64_t m1 = min(M, m0 + kRows);
      if (columnB == 1) {
        for (int64_t k = k0; k < k1; ++k) {
          const T *row = b + k * rowB;
          for (int64_t m = m0; m < m1; ++m) {
            T x = a[m * rowA + k * columnA];
            T *to = c + m * N;
            for (int64_t n = 0; n < N; ++n)
              to[n] = add(to[n], x, row[n]);
          }
        }
      } else {
        for (int64_t m = m0; m < m1; ++m)
          for (int64_t n = 0; n < N; ++n) {
            T sum = c[m * N + n];
            for (int64_t k = k0; k < k1; ++k)
              sum = add(sum, a[m * rowA + k * columnA], b[k * rowB + n * columnB]);
            c[m * N + n] = sum;
          }
      }
    }
  }
}

template <class T> GRAPH_INLINE int32_t matmul(Graph *g, Value *const *in, Value **out) {
  Value *a = in[0], *b = in[1];
  if (a->rank < 1 || b->rank < 1)
    return fail(g, LLMRT_GRAPH_RANK, 0, 1);
  int64_t M = a->rank > 1 ? a->dims[a->rank - 2] : 1, K = a->dims[a->rank - 1];
  int64_t N = b->rank > 1 ? b->dims[b->rank - 1] : 1;
  int64_t rows = b->rank > 1 ? b->dims[b->rank - 2] : b->dims[0];
  if (rows != K)
    return fail(g, LLMRT_GRAPH_SHAPE, K, rows);
  // The batches broadcast.
  Value outerA = *a, outerB = *b;
  outerA.rank = max(a->rank - 2, 0);
  outerB.rank = max(b->rank - 2, 0);
  int64_t rank = 0, dims[kMaxRank], sa[kMaxRank], sb[kMaxRank];
  GRAPH_TRY(broadcastInto(g, &outerA, rank, dims));
  GRAPH_TRY(broadcastInto(g, &outerB, rank, dims));
  broadcastStrides(&outerA, rank, dims, sa);
  broadcastStrides(&outerB, rank, dims, sb);
  int64_t batches = 1, outerRank = rank;
  for (int64_t d = 0; d < rank; ++d)
    batches *= dims[d];
  if (a->rank > 1)
    dims[rank++] = M;
  if (b->rank > 1)
    dims[rank++] = N;
  GRAPH_TRY(newTensor(g, a->type, rank, dims, out[0]));
  T *c = data<T>(out[0]);
  for (int64_t i = 0; i < out[0]->count; ++i)
    c[i] = 0;
  Odometer<2> at{outerRank, dims, {sa, sb}};
  for (int64_t i = 0; i < batches; ++i, at.next())
    product<T>(M, N, K, data<const T>(a) + at.offset[0] * M * K, K, 1,
               data<const T>(b) + at.offset[1] * K * N, N, 1, c + i * M * N);
  return 0;
}

template <class T>
GRAPH_INLINE int32_t gemm(Graph *g, Value *const *in, Value **out, const int64_t *attrs) {
  Value *a = in[0], *b = in[1];
  if (a->rank != 2 || b->rank != 2)
    return fail(g, LLMRT_GRAPH_RANK, a->rank != 2 ? a->rank : b->rank, 2);
  bool isTransA = attrs[2], isTransB = attrs[3];
  int64_t M = a->dims[isTransA], K = a->dims[!isTransA], N = b->dims[!isTransB];
  if (b->dims[isTransB] != K)
    return fail(g, LLMRT_GRAPH_SHAPE, K, b->dims[isTransB]);
  int64_t dims[kMaxRank] = {M, N}, rank = 2, strides[kMaxRank];
  GRAPH_TRY(newTensor(g, a->type, 2, dims, out[0]));
  T *c = data<T>(out[0]);
  for (int64_t i = 0; i < M * N; ++i)
    c[i] = 0;
  product<T>(M, N, K, data<const T>(a), isTransA ? 1 : K, isTransA ? M : 1, data<const T>(b),
             isTransB ? 1 : N, isTransB ? K : 1, c);
  T alpha = T(realAttr(attrs[0])), beta = T(realAttr(attrs[1]));
  for (int64_t i = 0; i < M * N; ++i)
    c[i] = T(alpha * c[i]);
  if (!in[2])
    return 0;
  GRAPH_TRY(broadcastInto(g, in[2], rank, dims));
  if (rank != 2 || dims[0] != M || dims[1] != N)
    return fail(g, LLMRT_GRAPH_BROADCAST, dims[0], M);
  broadcastStrides(in[2], 2, dims, strides);
  for (int64_t m = 0; m < M; ++m)
    for (int64_t n = 0; n < N; ++n)
      c[m * N + n] = T(c[m * N + n] + beta * data<const T>(in[2])[m * strides[0] + n * strides[1]]);
  return 0;
}

} // namespace llmc::graphcode

using namespace llmc::graphcode;

LLMC_GRAPH_KERNEL(matmul) {
  return computed(g, in, out, type, 2, 1, [&](Value *const *in, Value **out) {
    return withType(computeType(type),
                    [&](auto sample) { return matmul<decltype(sample)>(g, in, out); });
  });
}
/// a, b, c or null; attrs: alpha, beta, transpose a, transpose b
LLMC_GRAPH_KERNEL(gemm) {
  return computed(g, in, out, type, 3, 1, [&](Value *const *in, Value **out) {
    return withType(computeType(type),
                    [&](auto sample) { return gemm<decltype(sample)>(g, in, out, attrs); });
  });
}

/// Any tensors; attrs: how many, then for each its number of letters (-1 - n: an ellipsis after n
/// letters) and the letters (numbers below 52), then the same for the result. A letter that the
/// result does not have is summed over.
LLMC_GRAPH_KERNEL(einsum) {
  int operands = int(attrs[0]);
  if (operands > 8)
    return fail(g, LLMRT_GRAPH_ARGUMENT, operands);
  return computed(g, in, out, type, operands, 1, [&](Value *const *in, Value **out) {
    return withType(computeType(type), [&](auto sample) -> int32_t {
      using T = decltype(sample);
      // Letters have numbers 0..51; the dimensions of an ellipsis 52.., counted from the last.
      constexpr int kLabels = 52 + kMaxRank;
      int64_t sizes[kLabels], strides[9][kLabels] = {};
      for (int64_t &size : sizes)
        size = -1;
      const int64_t *at = attrs + 1;
      int64_t hidden = 0;
      auto labels = [&](int64_t rank, int64_t *list, int64_t &n) -> int32_t {
        int64_t before = *at++, letters = *at++;
        bool hasEllipsis = before >= 0;
        int64_t extra = hasEllipsis ? rank - letters : 0;
        if (rank >= 0 && (extra < 0 || (!hasEllipsis && rank != letters)))
          return fail(g, LLMRT_GRAPH_RANK, rank, letters);
        if (rank < 0)
          extra = hasEllipsis ? hidden : 0;
        n = 0;
        if (letters + extra > kMaxRank)
          return fail(g, LLMRT_GRAPH_RANK, letters + extra, kMaxRank);
        for (int64_t i = 0; i <= letters; ++i) {
          if (hasEllipsis && i == before)
            for (int64_t e = extra - 1; e >= 0; --e)
              list[n++] = 52 + e;
          if (i < letters)
            list[n++] = at[i];
        }
        at += letters;
        hidden = max(hidden, extra);
        return 0;
      };
      int64_t list[kMaxRank], n;
      for (int o = 0; o < operands; ++o) {
        GRAPH_TRY(labels(in[o]->rank, list, n));
        int64_t stride = 1;
        for (int64_t d = n - 1; d >= 0; --d) {
          int64_t size = in[o]->dims[d], &known = sizes[list[d]];
          if (known < 0 || known == 1)
            known = size;
          else if (size != known && size != 1)
            return fail(g, LLMRT_GRAPH_SHAPE, size, known);
          if (size != 1)
            strides[o][list[d]] += stride;
          stride *= size;
        }
      }
      int64_t outer[kMaxRank], dims[kMaxRank], rank;
      GRAPH_TRY(labels(-1, outer, rank));
      bool isOuter[kLabels] = {};
      for (int64_t d = 0; d < rank; ++d) {
        if (sizes[outer[d]] < 0)
          return fail(g, LLMRT_GRAPH_ARGUMENT, outer[d]);
        dims[d] = sizes[outer[d]];
        isOuter[outer[d]] = true;
      }
      GRAPH_TRY(newTensor(g, in[0]->type, rank, dims, out[0]));
      int64_t summed[kLabels], numSummed = 0, terms = 1;
      for (int l = 0; l < kLabels; ++l)
        if (sizes[l] >= 0 && !isOuter[l]) {
          summed[numSummed++] = l;
          terms *= sizes[l];
        }
      int64_t index[kLabels] = {};
      for (int64_t i = 0; i < out[0]->count; ++i) {
        T sum = 0;
        for (int64_t s = 0; s < numSummed; ++s)
          index[summed[s]] = 0;
        for (int64_t t = 0; t < terms; ++t) {
          T term = 1;
          for (int o = 0; o < operands; ++o) {
            int64_t from = 0;
            for (int l = 0; l < kLabels; ++l)
              from += strides[o][l] * index[l];
            term = T(term * data<const T>(in[o])[from]);
          }
          sum = T(sum + term);
          for (int64_t s = numSummed - 1; s >= 0 && ++index[summed[s]] == sizes[summed[s]]; --s)
            index[summed[s]] = 0;
        }
        data<T>(out[0])[i] = sum;
        for (int64_t d = rank - 1; d >= 0 && ++index[outer[d]] == dims[d]; --d)
          index[outer[d]] = 0;
      }
      return 0;
    });
  });
}

/// The determinant of the last two dimensions: elimination with pivots.
LLMC_GRAPH_KERNEL(det) {
  return computed(g, in, out, type, 1, 1, [&](Value *const *in, Value **out) {
    return withFloatType(type, [&](auto sample) -> int32_t {
      using T = decltype(sample);
      Value *x = in[0];
      if (x->rank < 2)
        return fail(g, LLMRT_GRAPH_RANK, x->rank, 2);
      int64_t n = x->dims[x->rank - 1];
      if (x->dims[x->rank - 2] != n)
        return fail(g, LLMRT_GRAPH_SHAPE, x->dims[x->rank - 2], n);
      GRAPH_TRY(newTensor(g, x->type, x->rank - 2, x->dims, out[0]));
      double *m;
      GRAPH_TRY(scratch(g, n * n, m));
      for (int64_t j = 0; j < out[0]->count; ++j) {
        for (int64_t i = 0; i < n * n; ++i)
          m[i] = double(data<const T>(x)[j * n * n + i]);
        double result = 1;
        for (int64_t c = 0; c < n; ++c) {
          int64_t pivot = c;
          for (int64_t r = c + 1; r < n; ++r)
            if (absolute(m[r * n + c]) > absolute(m[pivot * n + c]))
              pivot = r;
          if (pivot != c) {
            result = -result;
            for (int64_t k = 0; k < n; ++k) {
              double swapped = m[c * n + k];
              m[c * n + k] = m[pivot * n + k];
              m[pivot * n + k] = swapped;
            }
          }
          result *= m[c * n + c];
          if (m[c * n + c] == 0)
            break;
          for (int64_t r = c + 1; r < n; ++r) {
            double factor = m[r * n + c] / m[c * n + c];
            for (int64_t k = c; k < n; ++k)
              m[r * n + k] -= factor * m[c * n + k];
          }
        }
        data<T>(out[0])[j] = T(result);
      }
      g->release(g, m);
      return 0;
    });
  });
}
