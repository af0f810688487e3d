//===- Elementwise.cpp - functions of one element, two, three -----------------===//
#include "codegen/cpu/graph/Graph.h"

namespace llmc::graphcode {

// --- one element ---------------------------------------------------------------------------------

template <class T, class F>
GRAPH_INLINE int32_t mapElements(Graph *g, Value *x, int64_t type, Value *&y, F f) {
  GRAPH_TRY(newTensor(g, type, x->rank, x->dims, y));
  const T *from = data<const T>(x);
  auto *to = data<decltype(f(T()))>(y);
  for (int64_t i = 0; i < x->count; ++i)
    to[i] = f(from[i]);
  return 0;
}

/// A function of floats.
#define GRAPH_FLOAT_FUNCTION(name, expression)                                                     \
  LLMC_GRAPH_KERNEL(unary_##name) {                                                                \
    return computed(g, in, out, type, 1, 1, [&](Value *const *in, Value **out) {                   \
      return withFloatType(type, [&](auto sample) {                                                \
        using T = decltype(sample);                                                                \
        return mapElements<T>(g, in[0], computeType(type), out[0],                                 \
                              [&](T x) -> T { return T(expression); });                            \
      });                                                                                          \
    });                                                                                            \
  }
/// A function of any numbers.
#define GRAPH_NUMBER_FUNCTION(name, expression)                                                    \
  LLMC_GRAPH_KERNEL(unary_##name) {                                                                \
    return computed(g, in, out, type, 1, 1, [&](Value *const *in, Value **out) {                   \
      return withType(computeType(type), [&](auto sample) {                                        \
        using T = decltype(sample);                                                                \
        return mapElements<T>(g, in[0], computeType(type), out[0],                                 \
                              [&](T x) -> T { return T(expression); });                            \
      });                                                                                          \
    });                                                                                            \
  }
#define GRAPH_MATH_FUNCTION(name, number) GRAPH_FLOAT_FUNCTION(name, mathOf(g, number, double(x)))

GRAPH_INLINE float roundEven(float x) { return __builtin_elementwise_roundeven(x); }
GRAPH_INLINE double roundEven(double x) { return __builtin_elementwise_roundeven(x); }

/// max(x, 0) + log(1 + exp(-|x|))
GRAPH_INLINE double softplus(Graph *g, double x) {
  return max(x, 0.0) + mathOf(g, LLMRT_MATH_LOG1P, mathOf(g, LLMRT_MATH_EXP, x > 0 ? -x : x));
}
GRAPH_INLINE double sigmoid(Graph *g, double x) {
  double e = mathOf(g, LLMRT_MATH_EXP, x > 0 ? -x : x);
  return x > 0 ? 1 / (1 + e) : e / (1 + e);
}
GRAPH_INLINE double geluTanh(Graph *g, double x) {
  return 0.5 * x *
         (1 + mathOf(g, LLMRT_MATH_TANH, 0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}

} // namespace llmc::graphcode

using namespace llmc::graphcode;

GRAPH_NUMBER_FUNCTION(neg, T(0) - x)
GRAPH_NUMBER_FUNCTION(abs, absolute(x))
GRAPH_MATH_FUNCTION(exp, LLMRT_MATH_EXP)
GRAPH_MATH_FUNCTION(log, LLMRT_MATH_LOG)
GRAPH_FLOAT_FUNCTION(sqrt, rootOf(x))
GRAPH_FLOAT_FUNCTION(reciprocal, T(1) / x)
GRAPH_MATH_FUNCTION(sin, LLMRT_MATH_SIN)
GRAPH_MATH_FUNCTION(cos, LLMRT_MATH_COS)
GRAPH_MATH_FUNCTION(tan, LLMRT_MATH_TAN)
GRAPH_MATH_FUNCTION(tanh, LLMRT_MATH_TANH)
GRAPH_MATH_FUNCTION(erf, LLMRT_MATH_ERF)
GRAPH_MATH_FUNCTION(asin, LLMRT_MATH_ASIN)
GRAPH_MATH_FUNCTION(acos, LLMRT_MATH_ACOS)
GRAPH_MATH_FUNCTION(atan, LLMRT_MATH_ATAN)
GRAPH_MATH_FUNCTION(sinh, LLMRT_MATH_SINH)
GRAPH_MATH_FUNCTION(cosh, LLMRT_MATH_COSH)
GRAPH_MATH_FUNCTION(asinh, LLMRT_MATH_ASINH)
GRAPH_MATH_FUNCTION(acosh, LLMRT_MATH_ACOSH)
GRAPH_MATH_FUNCTION(atanh, LLMRT_MATH_ATANH)
GRAPH_FLOAT_FUNCTION(sigmoid, sigmoid(g, x))
GRAPH_NUMBER_FUNCTION(relu, x > T(0) || x != x ? x : T(0))
GRAPH_FLOAT_FUNCTION(softplus, softplus(g, x))
GRAPH_FLOAT_FUNCTION(silu, double(x) * sigmoid(g, x))
GRAPH_FLOAT_FUNCTION(gelu_erf,
                     0.5 * x * (1 + mathOf(g, LLMRT_MATH_ERF, double(x) * 0.70710678118654752440)))
GRAPH_FLOAT_FUNCTION(gelu_tanh, geluTanh(g, x))
GRAPH_FLOAT_FUNCTION(floor, __builtin_elementwise_floor(x))
GRAPH_FLOAT_FUNCTION(ceil, __builtin_elementwise_ceil(x))
GRAPH_FLOAT_FUNCTION(round, roundEven(x))
GRAPH_NUMBER_FUNCTION(sign, x > T(0) ? T(1) : x < T(0) ? T(0) - T(1) : x)

LLMC_GRAPH_KERNEL(unary_not) {
  return mapElements<uint8_t>(g, in[0], LLMRT_TYPE_BOOL, out[0],
                              [](uint8_t x) -> uint8_t { return x == 0; });
}
LLMC_GRAPH_KERNEL(unary_bit_not) {
  return withType(type, [&](auto sample) -> int32_t {
    using T = decltype(sample);
    if constexpr (isReal<T>)
      return fail(g, LLMRT_GRAPH_ARGUMENT, type);
    else
      return mapElements<T>(g, in[0], type, out[0], [](T x) -> T { return T(~x); });
  });
}
LLMC_GRAPH_KERNEL(unary_is_nan) {
  return computed(g, in, out, type, 1, 0, [&](Value *const *in, Value **out) {
    return withFloatType(type, [&](auto sample) {
      using T = decltype(sample);
      return mapElements<T>(g, in[0], LLMRT_TYPE_BOOL, out[0],
                            [](T x) -> uint8_t { return x != x; });
    });
  });
}
LLMC_GRAPH_KERNEL(unary_is_inf) {
  return computed(g, in, out, type, 1, 0, [&](Value *const *in, Value **out) {
    return withFloatType(type, [&](auto sample) {
      using T = decltype(sample);
      return mapElements<T>(g, in[0], LLMRT_TYPE_BOOL, out[0],
                            [](T x) -> uint8_t { return absolute(x) == T(__builtin_inf()); });
    });
  });
}

// --- two elements --------------------------------------------------------------------------------

namespace llmc::graphcode {

template <class T, class R, class F>
GRAPH_INLINE int32_t zipElements(Graph *g, Value *a, Value *b, int64_t type, Value *&y, F f) {
  int64_t rank = 0, dims[kMaxRank], sa[kMaxRank], sb[kMaxRank];
  GRAPH_TRY(broadcastInto(g, a, rank, dims));
  GRAPH_TRY(broadcastInto(g, b, rank, dims));
  GRAPH_TRY(newTensor(g, type, rank, dims, y));
  const T *pa = data<const T>(a), *pb = data<const T>(b);
  R *to = data<R>(y);
  if (y->count == 0)
    return 0;
  if (a->count == y->count && b->count == y->count) {
    for (int64_t i = 0; i < y->count; ++i)
      to[i] = f(pa[i], pb[i]);
    return 0;
  }
  broadcastStrides(a, rank, dims, sa);
  broadcastStrides(b, rank, dims, sb);
  int64_t inner = dims[rank - 1], stepA = sa[rank - 1], stepB = sb[rank - 1];
  Odometer<2> at{rank - 1, dims, {sa, sb}};
  for (int64_t row = 0; row < y->count; row += inner, at.next()) {
    const T *ra = pa + at.offset[0], *rb = pb + at.offset[1];
    if (stepB == 0) {
      T second = rb[0];
      for (int64_t i = 0; i < inner; ++i)
        to[row + i] = f(ra[i * stepA], second);
    } else if (stepA == 0) {
      T first = ra[0];
      for (int64_t i = 0; i < inner; ++i)
        to[row + i] = f(first, rb[i]);
    } else {
      for (int64_t i = 0; i < inner; ++i)
        to[row + i] = f(ra[i], rb[i]);
    }
  }
  return 0;
}

template <class T> GRAPH_INLINE T integerPower(T base, T exponent) {
  if (exponent < T(0))
    return base == T(1) ? T(1) : base == T(T(0) - T(1)) ? (exponent & 1 ? base : T(1)) : T(0);
  T result = 1;
  while (exponent > T(0)) {
    if (exponent & 1)
      result = T(uint64_t(result) * uint64_t(base));
    base = T(uint64_t(base) * uint64_t(base));
    exponent = T(exponent >> 1);
  }
  return result;
}
template <class T> GRAPH_INLINE T powerOf(Graph *g, T a, T b) {
  if constexpr (isReal<T>)
    return T(mathOf(g, LLMRT_MATH_POW, double(a), double(b)));
  else
    return integerPower(a, b);
}
/// Truncates towards zero; a division by 0 is noted.
template <class T> GRAPH_INLINE T quotient(bool &byZero, T a, T b) {
  if constexpr (isReal<T>) {
    return a / b;
  } else {
    if (b == T(0)) {
      byZero = true;
      return T(0);
    }
    if (T(-1) < T(0) && b == T(-1))
      return T(T(0) - a);
    return T(a / b);
  }
}
template <class T> GRAPH_INLINE T fmodOf(Graph *g, bool &byZero, T a, T b) {
  if constexpr (isReal<T>) {
    return T(mathOf(g, LLMRT_MATH_FMOD, double(a), double(b)));
  } else {
    if (b == T(0)) {
      byZero = true;
      return T(0);
    }
    if (T(-1) < T(0) && b == T(-1))
      return T(0);
    return T(a % b);
  }
}
/// The sign is the divisor's.
template <class T> GRAPH_INLINE T modOf(Graph *g, bool &byZero, T a, T b) {
  T rest = fmodOf(g, byZero, a, b);
  return rest != T(0) && (rest < T(0)) != (b < T(0)) ? T(rest + b) : rest;
}
template <class T> GRAPH_INLINE T leastOf(T a, T b) { return a != a || a < b ? a : b; }
template <class T> GRAPH_INLINE T greatestOf(T a, T b) { return a != a || a > b ? a : b; }

} // namespace llmc::graphcode

#define GRAPH_NUMBER_OPERATION(name, expression)                                                   \
  LLMC_GRAPH_KERNEL(binary_##name) {                                                               \
    bool byZero = false;                                                                           \
    int32_t error = computed(g, in, out, type, 2, 1, [&](Value *const *in, Value **out) {          \
      return withType(computeType(type), [&](auto sample) {                                        \
        using T = decltype(sample);                                                                \
        return zipElements<T, T>(g, in[0], in[1], computeType(type), out[0],                       \
                                 [&](T a, T b) -> T { return T(expression); });                    \
      });                                                                                          \
    });                                                                                            \
    return error ? error : byZero ? fail(g, LLMRT_GRAPH_DIVIDE_BY_ZERO) : 0;                       \
  }
#define GRAPH_INTEGER_OPERATION(name, expression)                                                  \
  LLMC_GRAPH_KERNEL(binary_##name) {                                                               \
    return withType(type, [&](auto sample) -> int32_t {                                            \
      using T = decltype(sample);                                                                  \
      if constexpr (isReal<T>)                                                                     \
        return fail(g, LLMRT_GRAPH_ARGUMENT, type);                                                \
      else                                                                                         \
        return zipElements<T, T>(g, in[0], in[1], type, out[0],                                    \
                                 [&](T a, T b) -> T { return T(expression); });                    \
    });                                                                                            \
  }
#define GRAPH_COMPARISON(name, op)                                                                 \
  LLMC_GRAPH_KERNEL(compare_##name) {                                                              \
    return computed(g, in, out, type, 2, 0, [&](Value *const *in, Value **out) {                   \
      return withType(computeType(type), [&](auto sample) {                                        \
        using T = decltype(sample);                                                                \
        return zipElements<T, uint8_t>(g, in[0], in[1], LLMRT_TYPE_BOOL, out[0],                   \
                                       [](T a, T b) -> uint8_t { return a op b; });                \
      });                                                                                          \
    });                                                                                            \
  }

/// Integers wrap: computed without a sign.
#define GRAPH_WRAPPING(op) (isReal<T> ? T(a op b) : T(uint64_t(int64_t(a)) op uint64_t(int64_t(b))))
GRAPH_NUMBER_OPERATION(add, GRAPH_WRAPPING(+))
GRAPH_NUMBER_OPERATION(sub, GRAPH_WRAPPING(-))
GRAPH_NUMBER_OPERATION(mul, GRAPH_WRAPPING(*))
GRAPH_NUMBER_OPERATION(div, quotient(byZero, a, b))
GRAPH_NUMBER_OPERATION(pow, powerOf(g, a, b))
GRAPH_NUMBER_OPERATION(mod, modOf(g, byZero, a, b))
GRAPH_NUMBER_OPERATION(fmod, fmodOf(g, byZero, a, b))
GRAPH_NUMBER_OPERATION(min, leastOf(a, b))
GRAPH_NUMBER_OPERATION(max, greatestOf(a, b))
GRAPH_INTEGER_OPERATION(and, a &&b)
GRAPH_INTEGER_OPERATION(or, a || b)
GRAPH_INTEGER_OPERATION(xor, (a != 0) != (b != 0))
GRAPH_INTEGER_OPERATION(bit_and, a &b)
GRAPH_INTEGER_OPERATION(bit_or, a | b)
GRAPH_INTEGER_OPERATION(bit_xor, a ^ b)
GRAPH_INTEGER_OPERATION(shl, uint64_t(b) < 8 * sizeof(T) ? uint64_t(a) << uint64_t(b) : 0)
// Beyond the width nothing but the sign is left.
GRAPH_INTEGER_OPERATION(shr, uint64_t(b) < 8 * sizeof(T) ? a >> b : a < T(0) ? -1 : 0)
GRAPH_COMPARISON(eq, ==)
GRAPH_COMPARISON(ne, !=)
GRAPH_COMPARISON(lt, <)
GRAPH_COMPARISON(le, <=)
GRAPH_COMPARISON(gt, >)
GRAPH_COMPARISON(ge, >=)

// --- three ---------------------------------------------------------------------------------------

/// condition, a, b; type is that of a and b, whose bytes are copied.
LLMC_GRAPH_KERNEL(select) {
  int64_t rank = 0, dims[kMaxRank], strides[3][kMaxRank];
  for (int i = 0; i < 3; ++i)
    GRAPH_TRY(broadcastInto(g, in[i], rank, dims));
  GRAPH_TRY(newTensor(g, type, rank, dims, out[0]));
  int64_t bytes = elementBytes(type), count = out[0]->count;
  if (count == 0)
    return 0;
  if (rank == 0)
    dims[rank++] = 1;
  for (int i = 0; i < 3; ++i)
    broadcastStrides(in[i], rank, dims, strides[i]);
  int64_t inner = dims[rank - 1];
  Odometer<3> at{rank - 1, dims, {strides[0], strides[1], strides[2]}};
  for (int64_t row = 0; row < count; row += inner, at.next())
    for (int64_t i = 0; i < inner; ++i) {
      bool first = data<uint8_t>(in[0])[at.offset[0] + i * strides[0][rank - 1]];
      int from = first ? 1 : 2;
      copyElement(out[0]->data, row + i, in[from]->data,
                  at.offset[from] + i * strides[from][rank - 1], bytes);
    }
  return 0;
}

/// x, low or null, high or null (one element each).
LLMC_GRAPH_KERNEL(clip) {
  for (int i = 1; i < 3; ++i)
    if (in[i] && in[i]->count != 1)
      return fail(g, LLMRT_GRAPH_SHAPE, in[i]->count, 1);
  return computed(g, in, out, type, 3, 1, [&](Value *const *in, Value **out) {
    return withType(computeType(type), [&](auto sample) {
      using T = decltype(sample);
      const T *low = in[1] ? data<const T>(in[1]) : nullptr;
      const T *high = in[2] ? data<const T>(in[2]) : nullptr;
      return mapElements<T>(g, in[0], computeType(type), out[0], [&](T x) -> T {
        if (low && x < *low)
          x = *low;
        if (high && x > *high)
          x = *high;
        return x;
      });
    });
  });
}
