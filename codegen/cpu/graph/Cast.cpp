//===- Cast.cpp - from one element type to another ----------------------------===//
#include "codegen/cpu/graph/SmallFloat.h"

namespace llmc::graphcode {

__attribute__((noinline)) int32_t convert(Graph *g, Value *x, int64_t type, Value *&result,
                                          bool saturate) {
  if (x->type == type) {
    result = retain(x);
    return 0;
  }
  GRAPH_TRY(newTensor(g, type, x->rank, x->dims, result));
  int64_t from = x->type;
  if (type == LLMRT_TYPE_F32)
    for (int64_t i = 0; i < x->count; ++i)
      data<float>(result)[i] = loadSmall(from, x->data, i);
  else
    for (int64_t i = 0; i < x->count; ++i)
      storeSmall(type, result->data, i, data<float>(x)[i], saturate, RoundNearest);
  return 0;
}

/// A float to an integer: towards zero; what does not fit wraps as an i64, beyond that the
/// smallest i64.
template <class To, class From> GRAPH_INLINE To castElement(From x) {
  if constexpr (isReal<From> && !isReal<To>) {
    if (!(x > From(-9.3e18) && x < From(1.9e19)))
      return To(INT64_MIN);
    if (x >= From(9.2233720368547758e18))
      return sizeof(To) == 8 && To(-1) > To(0) ? To(uint64_t(x)) : To(INT64_MIN);
    if (x <= From(-9.2233720368547758e18))
      return To(INT64_MIN);
    return To(int64_t(x));
  } else {
    return To(x);
  }
}

/// Keeps the bits that an element of less than a byte has.
GRAPH_INLINE int64_t wrapNarrow(int64_t type, int64_t x) {
  switch (type) {
  case LLMRT_TYPE_U4:
    return x & 15;
  case LLMRT_TYPE_I4:
    return int64_t(uint64_t(x) << 60) >> 60;
  case LLMRT_TYPE_U2:
    return x & 3;
  case LLMRT_TYPE_I2:
    return int64_t(uint64_t(x) << 62) >> 62;
  default:
    return x;
  }
}

template <class From>
GRAPH_INLINE int32_t castFrom(Value *y, int64_t to, const From *x, bool saturate,
                              int64_t rounding) {
  int64_t n = y->count;
  if (to == LLMRT_TYPE_BOOL) {
    for (int64_t i = 0; i < n; ++i)
      data<uint8_t>(y)[i] = x[i] != From(0);
    return 0;
  }
  if (isSmallFloat(to)) {
    for (int64_t i = 0; i < n; ++i)
      storeSmall(to, y->data, i, float(x[i]), saturate, rounding);
    return 0;
  }
  return withType(to, [&](auto sample) {
    using To = decltype(sample);
    for (int64_t i = 0; i < n; ++i)
      if constexpr (isReal<To>)
        data<To>(y)[i] = To(x[i]);
      else
        data<To>(y)[i] = To(wrapNarrow(to, int64_t(castElement<To>(x[i]))));
    return 0;
  });
}

} // namespace llmc::graphcode

using namespace llmc::graphcode;

/// type: from | to << 8; attrs: saturate, rounding of E8M0.
LLMC_GRAPH_KERNEL(cast) {
  int64_t from = type & 0xFF, to = type >> 8;
  Value *x = in[0];
  if (from == to) {
    out[0] = retain(x);
    return 0;
  }
  GRAPH_TRY(newTensor(g, to, x->rank, x->dims, out[0]));
  bool saturate = attrs[0] != 0;
  if (isSmallFloat(from)) {
    Value *wide;
    GRAPH_TRY(convert(g, x, LLMRT_TYPE_F32, wide));
    GRAPH_TRY(castFrom(out[0], to, data<const float>(wide), saturate, attrs[1]));
    release(g, wide);
    return 0;
  }
  return withType(from, [&](auto sample) {
    using From = decltype(sample);
    return castFrom(out[0], to, data<const From>(x), saturate, attrs[1]);
  });
}

/// The same bits as another type. type: to.
LLMC_GRAPH_KERNEL(bit_cast) {
  Value *x = in[0];
  GRAPH_TRY(newView(g, x, x->rank, x->dims, out[0]));
  out[0]->type = int32_t(type);
  return 0;
}
