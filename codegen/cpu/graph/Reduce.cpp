//===- Reduce.cpp - along dimensions ------------------------------------------===//
#include "codegen/cpu/graph/SmallFloat.h"

namespace llmc::graphcode {

/// Floats are summed in f64, integers in 64 bits, in row-major order.
template <class T> struct AccumulatorOf {
  using Type = int64_t;
};
template <> struct AccumulatorOf<float> {
  using Type = double;
};
template <> struct AccumulatorOf<double> {
  using Type = double;
};
template <> struct AccumulatorOf<uint64_t> {
  using Type = uint64_t;
};

/// Which dimensions of \p x go: those of \p axes, or all; none where nothing is given and
/// \p isNoop.
__attribute__((noinline)) static int32_t reducedAxes(Graph *g, const Value *x, const Value *axes,
                                                     bool isNoop, bool *isReduced) {
  bool isAll = !axes || axes->count == 0;
  for (int64_t d = 0; d < x->rank; ++d)
    isReduced[d] = isAll && !isNoop;
  if (!isAll)
    for (int64_t i = 0; i < axes->count; ++i) {
      int64_t axis;
      GRAPH_TRY(normalAxis(g, indexAt(axes, i), x->rank, axis));
      isReduced[axis] = true;
    }
  return 0;
}

/// y = finish(fold of step over the reduced elements from \p initial, how many they are).
template <class T, class A, class Step, class Finish>
GRAPH_INLINE int32_t reduceWith(Graph *g, Value *const *in, Value **out, const int64_t *attrs,
                                int64_t type, A initial, Step step, Finish finish,
                                bool needsElement = false) {
  Value *x = in[0];
  bool isReduced[kMaxRank];
  GRAPH_TRY(reducedAxes(g, x, in[1], attrs[1] != 0, isReduced));
  int64_t dims[kMaxRank], rank = 0, kept[kMaxRank], strides[kMaxRank], n = 1, total = 1;
  for (int64_t d = 0; d < x->rank; ++d) {
    if (isReduced[d])
      n *= x->dims[d];
    else
      total *= x->dims[d];
    kept[d] = isReduced[d] ? 1 : x->dims[d];
    if (attrs[0] || !isReduced[d])
      dims[rank++] = kept[d];
  }
  if (needsElement && n == 0 && total > 0)
    return fail(g, LLMRT_GRAPH_EMPTY);
  GRAPH_TRY(newTensor(g, type, rank, dims, out[0]));
  rowMajorStrides(x->rank, kept, strides);
  for (int64_t d = 0; d < x->rank; ++d)
    if (isReduced[d])
      strides[d] = 0;
  A *sums;
  GRAPH_TRY(scratch(g, total, sums));
  for (int64_t i = 0; i < total; ++i)
    sums[i] = initial;
  const T *from = data<const T>(x);
  if (x->rank == 0) {
    sums[0] = step(sums[0], from[0], 0);
  } else if (x->count > 0) {
    int64_t inner = x->dims[x->rank - 1], last = strides[x->rank - 1];
    Odometer<1> at{x->rank - 1, x->dims, {strides}};
    for (int64_t row = 0; row < x->count; row += inner, at.next())
      if (last == 0) {
        A sum = sums[at.offset[0]];
        for (int64_t i = 0; i < inner; ++i)
          sum = step(sum, from[row + i], at.offset[0]);
        sums[at.offset[0]] = sum;
      } else {
        for (int64_t i = 0; i < inner; ++i)
          sums[at.offset[0] + i] = step(sums[at.offset[0] + i], from[row + i], at.offset[0] + i);
      }
  }
  T *to = data<T>(out[0]);
  for (int64_t i = 0; i < total; ++i)
    to[i] = T(finish(sums[i], n, i));
  g->release(g, sums);
  return 0;
}

template <class T> GRAPH_INLINE T lowestOf() {
  if constexpr (isReal<T>)
    return T(-__builtin_inf());
  else
    return T(-1) < T(0) ? T(int64_t(1) << (8 * sizeof(T) - 1)) : T(0);
}
template <class T> GRAPH_INLINE T highestOf() {
  if constexpr (isReal<T>)
    return T(__builtin_inf());
  else
    return T(~lowestOf<T>());
}

/// What an f16 operation of its own would leave of \p x; all of it where f16 has no such number.
GRAPH_INLINE double asHalf(double x) {
  double half = double(decodeHalf(encodeHalf(float(x))));
  return half == __builtin_inf() ? x : half;
}

} // namespace llmc::graphcode

using namespace llmc::graphcode;

#define GRAPH_REDUCTION(name, initial, step, finish)                                               \
  LLMC_GRAPH_KERNEL(reduce_##name) {                                                               \
    return computed(g, in, out, type, 2, 1, [&](Value *const *in, Value **out) {                   \
      return withType(computeType(type), [&](auto sample) {                                        \
        using T = decltype(sample);                                                                \
        using A = typename AccumulatorOf<T>::Type;                                                 \
        return reduceWith<T, A>(                                                                   \
            g, in, out, attrs, computeType(type), A(initial),                                      \
            [&](A sum, A x, int64_t) -> A { return A(step); },                                     \
            [&](A sum, int64_t n, int64_t) -> A { return A(finish); });                            \
      });                                                                                          \
    });                                                                                            \
  }

GRAPH_REDUCTION(sum, 0, sum + x, sum)
GRAPH_REDUCTION(mean, 0, sum + x, isReal<T> || n != 0 ? sum / A(n) : A(0))
GRAPH_REDUCTION(prod, 1, sum *x, sum)
GRAPH_REDUCTION(sum_square, 0, sum + x * x, sum)
GRAPH_REDUCTION(l1, 0, sum + (x < A(0) ? A(0) - x : x), sum)
GRAPH_REDUCTION(l2, 0, sum + x * x, rootOf(double(sum)))
GRAPH_REDUCTION(log_sum, 0, sum + x, mathOf(g, LLMRT_MATH_LOG, double(sum)))

#define GRAPH_EXTREME(name, initial, op)                                                           \
  LLMC_GRAPH_KERNEL(reduce_##name) {                                                               \
    return computed(g, in, out, type, 2, 1, [&](Value *const *in, Value **out) {                   \
      return withType(computeType(type), [&](auto sample) {                                        \
        using T = decltype(sample);                                                                \
        T start = type == LLMRT_TYPE_BOOL ? T(initial<T>() != T(0)) : initial<T>();                \
        return reduceWith<T, T>(                                                                   \
            g, in, out, attrs, computeType(type), start,                                           \
            [](T sum, T x, int64_t) -> T { return sum != sum || sum op x ? sum : x; },             \
            [](T sum, int64_t, int64_t) -> T { return sum; });                                     \
      });                                                                                          \
    });                                                                                            \
  }
GRAPH_EXTREME(max, lowestOf, >)
GRAPH_EXTREME(min, highestOf, <)

/// max + log(sum(exp(x - max)))
LLMC_GRAPH_KERNEL(reduce_log_sum_exp) {
  return computed(g, in, out, type, 2, 1, [&](Value *const *in, Value **out) {
    return withType(computeType(type), [&](auto sample) -> int32_t {
      using T = decltype(sample);
      Value *largest;
      GRAPH_TRY((reduceWith<T, double>(
          g, in, &largest, attrs, computeType(type), -__builtin_inf(),
          [](double sum, double x, int64_t) -> double { return sum > x ? sum : x; },
          [](double sum, int64_t, int64_t) -> double { return sum; })));
      const T *shift = data<const T>(largest);
      auto finite = [&](int64_t i) {
        double m = double(shift[i]);
        return m - m == 0 ? m : 0.0;
      };
      GRAPH_TRY((reduceWith<T, double>(
          g, in, out, attrs, computeType(type), 0.0,
          [&](double sum, double x, int64_t i) -> double {
            return sum + mathOf(g, LLMRT_MATH_EXP, x - finite(i));
          },
          [&](double sum, int64_t, int64_t i) -> double {
            return mathOf(g, LLMRT_MATH_LOG, sum) + finite(i);
          })));
      release(g, largest);
      return 0;
    });
  });
}

/// attrs: axis, largest, keepdims, the last of equal ones
LLMC_GRAPH_KERNEL(arg_reduce) {
  return computed(g, in, out, type, 1, 0, [&](Value *const *in, Value **out) {
    return withType(computeType(type), [&](auto sample) -> int32_t {
      using T = decltype(sample);
      Value *x = in[0];
      int64_t axis, dims[kMaxRank], rank = 0;
      GRAPH_TRY(normalAxis(g, attrs[0], x->rank, axis));
      for (int64_t d = 0; d < x->rank; ++d)
        if (d != axis || attrs[2])
          dims[rank++] = d == axis ? 1 : x->dims[d];
      GRAPH_TRY(newTensor(g, LLMRT_TYPE_I64, rank, dims, out[0]));
      int64_t size = x->dims[axis], inner = product(x, axis + 1, x->rank);
      if (size == 0 && out[0]->count > 0)
        return fail(g, LLMRT_GRAPH_EMPTY);
      for (int64_t j = 0; j < out[0]->count; ++j) {
        const T *row = data<const T>(x) + j / inner * size * inner + j % inner;
        int64_t best = 0;
        for (int64_t i = 1; i < size; ++i) {
          T p = row[i * inner], q = row[best * inner];
          if ((attrs[1] ? p > q : p < q) || (attrs[3] && p == q))
            best = i;
        }
        data<int64_t>(out[0])[j] = best;
      }
      return 0;
    });
  });
}
/// x, axis; attrs: exclusive, reverse, product
LLMC_GRAPH_KERNEL(cumulate) {
  return computed(g, in, out, type, 2, 1, [&](Value *const *in, Value **out) {
    return withType(computeType(type), [&](auto sample) -> int32_t {
      using T = decltype(sample);
      using A = typename AccumulatorOf<T>::Type;
      Value *x = in[0];
      int64_t axis;
      if (in[1]->count != 1)
        return fail(g, LLMRT_GRAPH_SHAPE, in[1]->count, 1);
      GRAPH_TRY(normalAxis(g, indexAt(in[1], 0), x->rank, axis));
      GRAPH_TRY(newTensor(g, x->type, x->rank, x->dims, out[0]));
      int64_t size = x->dims[axis], inner = product(x, axis + 1, x->rank);
      for (int64_t row = 0; size > 0 && row < x->count / size; ++row) {
        int64_t base = row / inner * size * inner + row % inner;
        A sum = attrs[2] ? 1 : 0;
        for (int64_t i = 0; i < size; ++i) {
          int64_t at = base + (attrs[1] ? size - 1 - i : i) * inner;
          A next = attrs[2] ? sum * A(data<T>(x)[at]) : sum + A(data<T>(x)[at]);
          data<T>(out[0])[at] = T(attrs[0] ? sum : next);
          sum = next;
        }
      }
      return 0;
    });
  });
}
/// attrs: axis, logarithm. In f16 the exponentials and their sum are rounded as those of the
/// operator's function body (ReduceMax, Sub, Exp, ReduceSum, Div) are: both spellings agree. A row
/// of nothing but -inf gives zeros, as one that sees no key does in attention.
LLMC_GRAPH_KERNEL(softmax) {
  return computed(g, in, out, type, 1, 1, [&](Value *const *in, Value **out) {
    return withFloatType(type, [&](auto sample) -> int32_t {
      using T = decltype(sample);
      Value *x = in[0];
      int64_t axis = 0, size = 1, inner = 1;
      if (x->rank > 0) {
        GRAPH_TRY(normalAxis(g, attrs[0], x->rank, axis));
        size = x->dims[axis];
        inner = product(x, axis + 1, x->rank);
      }
      GRAPH_TRY(newTensor(g, x->type, x->rank, x->dims, out[0]));
      const bool isLog = attrs[1], isHalf = type == LLMRT_TYPE_F16 && !isLog;
      for (int64_t row = 0; size > 0 && row < x->count / size; ++row) {
        int64_t base = row / inner * size * inner + row % inner;
        const T *from = data<const T>(x) + base;
        T *to = data<T>(out[0]) + base;
        double largest = -__builtin_inf(), sum = 0;
        for (int64_t i = 0; i < size; ++i)
          largest = max(largest, double(from[i * inner]));
        if (largest == -__builtin_inf())
          largest = 0; // of the exponentials only NaNs are left
        auto exponential = [&](int64_t i) {
          double e = mathOf(g, LLMRT_MATH_EXP, double(from[i * inner]) - largest);
          return isHalf ? asHalf(e) : e;
        };
        for (int64_t i = 0; i < size; ++i)
          sum += exponential(i);
        if (isHalf)
          sum = asHalf(sum);
        double shift = isLog && sum != 0 ? mathOf(g, LLMRT_MATH_LOG, sum) : 0;
        for (int64_t i = 0; i < size; ++i)
          to[i * inner] = T(isLog      ? double(from[i * inner]) - largest - shift
                            : sum == 0 ? 0
                                       : exponential(i) / sum);
      }
      return 0;
    });
  });
}
