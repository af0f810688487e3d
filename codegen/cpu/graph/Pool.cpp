//===- Pool.cpp - pooling -----------------------------------------------------===//
#include "codegen/cpu/graph/Window.h"

namespace llmc::graphcode {

/// Reads the window of a pooling of x: attrs from \p at on are the kernel's list and those of
/// Window; sets dims to those of the result.
GRAPH_INLINE int32_t poolWindow(Graph *g, const Value *x, const int64_t *at, int64_t autoPad,
                                bool roundsUp, Window &window, int64_t *dims) {
  if (x->rank < 3)
    return fail(g, LLMRT_GRAPH_RANK, x->rank, 3);
  window.n = x->rank - 2;
  int64_t n = *at++;
  if (n != window.n)
    return fail(g, LLMRT_GRAPH_SHAPE, n, window.n);
  for (int64_t d = 0; d < n; ++d) {
    window.kernel[d] = *at++;
    window.size[d] = x->dims[2 + d];
  }
  GRAPH_TRY(window.read(g, at));
  GRAPH_TRY(window.place(g, autoPad, roundsUp));
  dims[0] = x->dims[0], dims[1] = x->dims[1];
  for (int64_t d = 0; d < n; ++d)
    dims[2 + d] = window.result[d];
  return 0;
}

/// Calls each(row, place) for every window, where tap(f) calls f(place in the plane, its index).
template <class F> GRAPH_INLINE void forWindows(const Value *x, const Window &window, F each) {
  int64_t rows = x->dims[0] * x->dims[1], places = window.resultCount();
  for (int64_t row = 0; row < rows; ++row) {
    int64_t index[kMaxRank] = {};
    for (int64_t p = 0; p < places; ++p, window.next(index, window.result))
      each(row, p, index);
  }
}
/// Calls f(place, inside the padding) for every tap of the window at \p index; the place is -1
/// outside of the input.
template <class F> GRAPH_INLINE void forTaps(const Window &window, const int64_t *index, F f) {
  int64_t taps = window.kernelCount(), tap[kMaxRank] = {};
  for (int64_t t = 0; t < taps; ++t, window.next(tap, window.kernel)) {
    int64_t from = 0;
    bool isPadded = true;
    for (int64_t d = 0; d < window.n; ++d) {
      int64_t i = index[d] * window.stride[d] - window.before[d] + tap[d] * window.dilation[d];
      isPadded &= i < window.size[d] + window.after[d];
      from = from < 0 || i < 0 || i >= window.size[d] ? -1 : from * window.size[d] + i;
    }
    f(from, isPadded);
  }
}

} // namespace llmc::graphcode

using namespace llmc::graphcode;

/// attrs: automatic padding, rounds up, indices column-major, the kernel's list, lists of Window.
/// Gives the largest elements and their places in the whole tensor.
LLMC_GRAPH_KERNEL(max_pool) {
  return computed(g, in, out, type, 1, 1, [&](Value *const *in, Value **out) {
    return withType(computeType(type), [&](auto sample) -> int32_t {
      using T = decltype(sample);
      Value *x = in[0];
      Window window;
      int64_t dims[kMaxRank];
      GRAPH_TRY(poolWindow(g, x, attrs + 3, attrs[0], attrs[1] != 0, window, dims));
      GRAPH_TRY(newTensor(g, x->type, x->rank, dims, out[0]));
      GRAPH_TRY(newTensor(g, LLMRT_TYPE_I64, x->rank, dims, out[1]));
      int64_t plane = window.sizeCount(), places = window.resultCount();
      forWindows(x, window, [&](int64_t row, int64_t p, const int64_t *index) {
        const T *from = data<const T>(x) + row * plane;
        int64_t best = -1;
        forTaps(window, index, [&](int64_t i, bool) {
          if (i >= 0 && (best < 0 || from[i] > from[best] || from[best] != from[best]))
            best = i;
        });
        T nothing = isReal<T>      ? T(-__builtin_inf())
                    : T(-1) < T(0) ? T(int64_t(1) << (8 * sizeof(T) - 1))
                                   : T(0);
        data<T>(out[0])[row * places + p] = best < 0 ? nothing : from[best];
        if (attrs[2] && best >= 0) { // the plane's dimensions in the other order
          int64_t rest = best, column = 0, stride[kMaxRank];
          stride[0] = 1;
          for (int64_t d = 1; d < window.n; ++d)
            stride[d] = stride[d - 1] * window.size[d - 1];
          for (int64_t d = window.n - 1; d >= 0; --d) {
            column += rest % window.size[d] * stride[d];
            rest /= window.size[d];
          }
          best = column;
        }
        data<int64_t>(out[1])[row * places + p] = row * plane + best;
      });
      return 0;
    });
  });
}
/// attrs: automatic padding, rounds up, padding counts, the kernel's list, lists of Window.
LLMC_GRAPH_KERNEL(average_pool) {
  return computed(g, in, out, type, 1, 1, [&](Value *const *in, Value **out) {
    return withFloatType(type, [&](auto sample) -> int32_t {
      using T = decltype(sample);
      Value *x = in[0];
      Window window;
      int64_t dims[kMaxRank];
      GRAPH_TRY(poolWindow(g, x, attrs + 3, attrs[0], attrs[1] != 0, window, dims));
      GRAPH_TRY(newTensor(g, x->type, x->rank, dims, out[0]));
      int64_t plane = window.sizeCount(), places = window.resultCount();
      forWindows(x, window, [&](int64_t row, int64_t p, const int64_t *index) {
        double sum = 0;
        int64_t count = 0;
        forTaps(window, index, [&](int64_t i, bool isPadded) {
          if (i >= 0)
            sum += double(data<const T>(x)[row * plane + i]);
          count += attrs[2] ? isPadded : i >= 0;
        });
        data<T>(out[0])[row * places + p] = T(sum / double(count));
      });
      return 0;
    });
  });
}
/// attrs: p, automatic padding, rounds up, the kernel's list, lists of Window.
LLMC_GRAPH_KERNEL(lp_pool) {
  return computed(g, in, out, type, 1, 1, [&](Value *const *in, Value **out) {
    return withFloatType(type, [&](auto sample) -> int32_t {
      using T = decltype(sample);
      Value *x = in[0];
      Window window;
      int64_t dims[kMaxRank];
      GRAPH_TRY(poolWindow(g, x, attrs + 3, attrs[1], attrs[2] != 0, window, dims));
      GRAPH_TRY(newTensor(g, x->type, x->rank, dims, out[0]));
      int64_t plane = window.sizeCount(), places = window.resultCount();
      double power = realAttr(attrs[0]);
      forWindows(x, window, [&](int64_t row, int64_t p, const int64_t *index) {
        double sum = 0;
        forTaps(window, index, [&](int64_t i, bool) {
          if (i >= 0)
            sum += mathOf(g, LLMRT_MATH_POW, double(absolute(data<const T>(x)[row * plane + i])),
                          power);
        });
        data<T>(out[0])[row * places + p] = T(mathOf(g, LLMRT_MATH_POW, sum, 1 / power));
      });
      return 0;
    });
  });
}
/// x, places in the whole result (for planes of its own size), output shape or null; attrs: the
/// kernel's list, lists of Window.
LLMC_GRAPH_KERNEL(max_unpool) {
  Value *x = in[0];
  const int64_t *at = attrs;
  Window window;
  window.n = x->rank - 2;
  if (x->rank < 3 || *at++ != window.n || in[1]->count != x->count)
    return fail(g, LLMRT_GRAPH_SHAPE, in[1]->count, x->count);
  for (int64_t d = 0; d < window.n; ++d) {
    window.kernel[d] = *at++;
    window.size[d] = x->dims[2 + d];
  }
  GRAPH_TRY(window.read(g, at));
  int64_t dims[kMaxRank] = {x->dims[0], x->dims[1]}, natural[kMaxRank] = {x->dims[0], x->dims[1]};
  if (in[2] && in[2]->count != x->rank)
    return fail(g, LLMRT_GRAPH_SHAPE, in[2]->count, x->rank);
  for (int64_t d = 0; d < window.n; ++d)
    natural[2 + d] = (x->dims[2 + d] - 1) * window.stride[d] - window.before[d] - window.after[d] +
                     window.kernel[d];
  for (int64_t d = 0; d < x->rank; ++d)
    dims[d] = in[2] ? indexAt(in[2], d) : natural[d];
  GRAPH_TRY(newTensor(g, type, x->rank, dims, out[0]));
  int64_t bytes = elementBytes(type);
  uint64_t zero = 0;
  for (int64_t i = 0; i < out[0]->count; ++i)
    copyElement(out[0]->data, i, &zero, 0, bytes);
  // Places count in the tensor that the pooling read, which the output shape may have widened.
  for (int64_t i = 0; i < x->count; ++i) {
    int64_t rest = indexAt(in[1], i), to = 0, stride = 1;
    if (rest < 0)
      return fail(g, LLMRT_GRAPH_INDEX, rest, out[0]->count);
    for (int64_t d = x->rank - 1; d >= 0; --d) {
      if (natural[d] < 1)
        return fail(g, LLMRT_GRAPH_ARGUMENT, natural[d]);
      int64_t place = d == 0 ? rest : rest % natural[d];
      rest /= natural[d];
      if (place >= dims[d])
        return fail(g, LLMRT_GRAPH_INDEX, place, dims[d]);
      to += place * stride;
      stride *= dims[d];
    }
    copyElement(out[0]->data, to, x->data, i, bytes);
  }
  return 0;
}
/// Local response normalization over channels; attrs: alpha, beta, bias, size.
LLMC_GRAPH_KERNEL(lrn) {
  return computed(g, in, out, type, 1, 1, [&](Value *const *in, Value **out) {
    return withFloatType(type, [&](auto sample) -> int32_t {
      using T = decltype(sample);
      Value *x = in[0];
      if (x->rank < 2)
        return fail(g, LLMRT_GRAPH_RANK, x->rank, 2);
      GRAPH_TRY(newTensor(g, x->type, x->rank, x->dims, out[0]));
      int64_t C = x->dims[1], inner = product(x, 2, x->rank), size = attrs[3];
      for (int64_t i = 0; i < x->count; ++i) {
        int64_t c = i / inner % C, base = i - c * inner;
        double sum = 0;
        for (int64_t k = max<int64_t>(0, c - (size - 1) / 2); k <= min(C - 1, c + size / 2); ++k) {
          double v = double(data<const T>(x)[base + k * inner]);
          sum += v * v;
        }
        data<T>(out[0])[i] = T(double(data<const T>(x)[i]) /
                               mathOf(g, LLMRT_MATH_POW,
                                      realAttr(attrs[2]) + realAttr(attrs[0]) / double(size) * sum,
                                      realAttr(attrs[1])));
      }
      return 0;
    });
  });
}
