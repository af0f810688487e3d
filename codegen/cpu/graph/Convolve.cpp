//===- Convolve.cpp - convolutions --------------------------------------------===//
#include "codegen/cpu/graph/Window.h"

namespace llmc::graphcode {

template <class T> struct SumOf {
  using Type = int64_t;
};
template <> struct SumOf<float> {
  using Type = double;
};
template <> struct SumOf<double> {
  using Type = double;
};

/// Checks x [N, C, ...] against weights and sets what of the window follows from them.
GRAPH_INLINE int32_t spatial(Graph *g, const Value *x, const Value *w, Window &window) {
  if (x->rank < 3 || w->rank != x->rank)
    return fail(g, LLMRT_GRAPH_RANK, w->rank, x->rank);
  window.n = x->rank - 2;
  for (int64_t d = 0; d < window.n; ++d) {
    window.size[d] = x->dims[2 + d];
    window.kernel[d] = w->dims[2 + d];
  }
  return 0;
}

template <class T>
GRAPH_INLINE int32_t conv(Graph *g, Value *const *in, Value **out, const int64_t *attrs) {
  using S = typename SumOf<T>::Type;
  Value *x = in[0], *w = in[1], *bias = in[2];
  int64_t group = attrs[0], dims[kMaxRank];
  Window window;
  GRAPH_TRY(spatial(g, x, w, window));
  const int64_t *at = attrs + 2;
  GRAPH_TRY(window.read(g, at));
  GRAPH_TRY(window.place(g, attrs[1], false));
  int64_t M = w->dims[0], perGroup = w->dims[1];
  if (group < 1 || perGroup * group != x->dims[1] || M % group != 0)
    return fail(g, LLMRT_GRAPH_SHAPE, x->dims[1], perGroup * group);
  if (bias && bias->count != M)
    return fail(g, LLMRT_GRAPH_SHAPE, bias->count, M);
  dims[0] = x->dims[0], dims[1] = M;
  for (int64_t d = 0; d < window.n; ++d)
    dims[2 + d] = window.result[d];
  GRAPH_TRY(newTensor(g, x->type, x->rank, dims, out[0]));
  int64_t taps = window.kernelCount(), plane = window.sizeCount(), places = window.resultCount();
  // For each place, where in a plane each tap reads; -1 outside.
  int64_t *reads;
  GRAPH_TRY(scratch(g, taps, reads));
  int64_t index[kMaxRank] = {};
  for (int64_t p = 0; p < places; ++p, window.next(index, window.result)) {
    int64_t tap[kMaxRank] = {};
    for (int64_t t = 0; t < taps; ++t, window.next(tap, window.kernel)) {
      int64_t from = 0;
      for (int64_t d = 0; d < window.n && from >= 0; ++d) {
        int64_t i = index[d] * window.stride[d] - window.before[d] + tap[d] * window.dilation[d];
        from = i < 0 || i >= window.size[d] ? -1 : from * window.size[d] + i;
      }
      reads[t] = from;
    }
    for (int64_t b = 0; b < x->dims[0]; ++b)
      for (int64_t m = 0; m < M; ++m) {
        const T *planes = data<const T>(x) + (b * x->dims[1] + m / (M / group) * perGroup) * plane;
        const T *weights = data<const T>(w) + m * perGroup * taps;
        S sum = bias ? S(data<const T>(bias)[m]) : S(0);
        for (int64_t c = 0; c < perGroup; ++c)
          for (int64_t t = 0; t < taps; ++t)
            if (reads[t] >= 0)
              sum += S(planes[c * plane + reads[t]]) * S(weights[c * taps + t]);
        data<T>(out[0])[(b * M + m) * places + p] = T(sum);
      }
  }
  g->release(g, reads);
  return 0;
}

template <class T>
GRAPH_INLINE int32_t convTranspose(Graph *g, Value *const *in, Value **out, const int64_t *attrs) {
  Value *x = in[0], *w = in[1], *bias = in[2];
  int64_t group = attrs[0], dims[kMaxRank];
  Window window;
  GRAPH_TRY(spatial(g, x, w, window));
  const int64_t *at = attrs + 2;
  GRAPH_TRY(window.read(g, at));
  int64_t numPadding = *at++;
  const int64_t *padding = at;
  at += numPadding;
  int64_t numShape = *at++;
  const int64_t *shape = at;
  if ((numPadding && numPadding != window.n) || (numShape && numShape < window.n))
    return fail(g, LLMRT_GRAPH_SHAPE, numPadding, window.n);
  shape += numShape > window.n ? numShape - window.n : 0;
  for (int64_t d = 0; d < window.n; ++d) {
    int64_t extra = numPadding ? padding[d] : 0;
    int64_t full = window.stride[d] * (window.size[d] - 1) + extra + window.extent(d);
    bool isSame = attrs[1] == PadSameUpper || attrs[1] == PadSameLower;
    if (numShape || isSame) {
      window.result[d] = numShape ? shape[d] : window.size[d] * window.stride[d];
      int64_t total = max<int64_t>(full - window.result[d], 0);
      window.before[d] = attrs[1] == PadSameUpper ? total / 2 : total - total / 2;
    } else {
      if (attrs[1] == PadValid)
        window.before[d] = window.after[d] = 0;
      window.result[d] = full - window.before[d] - window.after[d];
    }
    if (window.result[d] < 0)
      return fail(g, LLMRT_GRAPH_ARGUMENT, window.result[d]);
  }
  int64_t perGroup = w->dims[1], M = perGroup * group, C = x->dims[1];
  if (group < 1 || w->dims[0] != C || C % group != 0 || (bias && bias->count != M))
    return fail(g, LLMRT_GRAPH_SHAPE, w->dims[0], C);
  dims[0] = x->dims[0], dims[1] = M;
  for (int64_t d = 0; d < window.n; ++d)
    dims[2 + d] = window.result[d];
  GRAPH_TRY(newTensor(g, x->type, x->rank, dims, out[0]));
  int64_t taps = window.kernelCount(), plane = window.sizeCount(), places = window.resultCount();
  T *y = data<T>(out[0]);
  for (int64_t i = 0; i < out[0]->count; ++i)
    y[i] = bias ? data<const T>(bias)[i / max<int64_t>(places, 1) % M] : T(0);
  int64_t index[kMaxRank] = {};
  for (int64_t p = 0; p < plane; ++p, window.next(index, window.size)) {
    int64_t tap[kMaxRank] = {};
    for (int64_t t = 0; t < taps; ++t, window.next(tap, window.kernel)) {
      int64_t to = 0;
      for (int64_t d = 0; d < window.n && to >= 0; ++d) {
        int64_t i = index[d] * window.stride[d] - window.before[d] + tap[d] * window.dilation[d];
        to = i < 0 || i >= window.result[d] ? -1 : to * window.result[d] + i;
      }
      if (to < 0)
        continue;
      for (int64_t b = 0; b < x->dims[0]; ++b)
        for (int64_t c = 0; c < C; ++c)
          for (int64_t m = 0; m < perGroup; ++m) {
            T &element = y[(b * M + c / (C / group) * perGroup + m) * places + to];
            element = T(element + data<const T>(x)[(b * C + c) * plane + p] *
                                      data<const T>(w)[(c * perGroup + m) * taps + t]);
          }
    }
  }
  return 0;
}

} // namespace llmc::graphcode

using namespace llmc::graphcode;

/// x, weights, bias or null; attrs: group, automatic padding, then the lists of Window.
LLMC_GRAPH_KERNEL(conv) {
  return computed(g, in, out, type, 3, 1, [&](Value *const *in, Value **out) {
    return withType(computeType(type),
                    [&](auto sample) { return conv<decltype(sample)>(g, in, out, attrs); });
  });
}
/// The same with the lists output padding and output shape behind.
LLMC_GRAPH_KERNEL(conv_transpose) {
  return computed(g, in, out, type, 3, 1, [&](Value *const *in, Value **out) {
    return withFloatType(
        type, [&](auto sample) { return convTranspose<decltype(sample)>(g, in, out, attrs); });
  });
}

/// x, weights, offsets, bias or null, mask or null; attrs: group, offset groups, lists of Window.
/// Two spatial dimensions.
LLMC_GRAPH_KERNEL(deform_conv) {
  return computed(g, in, out, type, 5, 1, [&](Value *const *in, Value **out) {
    return withFloatType(type, [&](auto sample) -> int32_t {
      using T = decltype(sample);
      Value *x = in[0], *w = in[1], *offset = in[2], *bias = in[3], *mask = in[4];
      int64_t group = attrs[0], offsetGroups = attrs[1];
      Window window;
      GRAPH_TRY(spatial(g, x, w, window));
      if (window.n != 2)
        return fail(g, LLMRT_GRAPH_RANK, x->rank, 4);
      const int64_t *at = attrs + 2;
      GRAPH_TRY(window.read(g, at));
      GRAPH_TRY(window.place(g, PadAsGiven, false));
      int64_t M = w->dims[0], perGroup = w->dims[1], C = x->dims[1];
      int64_t oh = window.result[0], ow = window.result[1], kh = window.kernel[0],
              kw = window.kernel[1], H = window.size[0], W = window.size[1], taps = kh * kw;
      if (group < 1 || offsetGroups < 1 || perGroup * group != C || M % group != 0 ||
          C % offsetGroups != 0 || (bias && bias->count != M))
        return fail(g, LLMRT_GRAPH_SHAPE, C, perGroup * group);
      if (offset->count != x->dims[0] * offsetGroups * taps * 2 * oh * ow ||
          (mask && mask->count != x->dims[0] * offsetGroups * taps * oh * ow))
        return fail(g, LLMRT_GRAPH_SHAPE, offset->count, offsetGroups * taps * 2 * oh * ow);
      int64_t dims[4] = {x->dims[0], M, oh, ow};
      GRAPH_TRY(newTensor(g, x->type, 4, dims, out[0]));
      for (int64_t b = 0; b < x->dims[0]; ++b)
        for (int64_t m = 0; m < M; ++m)
          for (int64_t i = 0; i < oh; ++i)
            for (int64_t j = 0; j < ow; ++j) {
              double sum = bias ? double(data<const T>(bias)[m]) : 0;
              for (int64_t c = 0; c < perGroup; ++c) {
                int64_t channel = m / (M / group) * perGroup + c;
                int64_t og = channel / (C / offsetGroups);
                const T *plane = data<const T>(x) + (b * C + channel) * H * W;
                for (int64_t t = 0; t < taps; ++t) {
                  int64_t base = ((b * offsetGroups + og) * taps + t) * 2 * oh * ow + i * ow + j;
                  double y = double(i * window.stride[0] - window.before[0] +
                                    t / kw * window.dilation[0]) +
                             double(data<const T>(offset)[base]);
                  double z = double(j * window.stride[1] - window.before[1] +
                                    t % kw * window.dilation[1]) +
                             double(data<const T>(offset)[base + oh * ow]);
                  if (!(y > -1 && y < double(H) && z > -1 && z < double(W)))
                    continue;
                  int64_t y0 = int64_t(__builtin_elementwise_floor(y));
                  int64_t z0 = int64_t(__builtin_elementwise_floor(z));
                  double fy = y - double(y0), fz = z - double(z0), value = 0;
                  for (int64_t dy = 0; dy < 2; ++dy)
                    for (int64_t dz = 0; dz < 2; ++dz)
                      if (y0 + dy >= 0 && y0 + dy < H && z0 + dz >= 0 && z0 + dz < W)
                        value += (dy ? fy : 1 - fy) * (dz ? fz : 1 - fz) *
                                 double(plane[(y0 + dy) * W + z0 + dz]);
                  if (mask)
                    value *= double(data<const T>(
                        mask)[((b * offsetGroups + og) * taps + t) * oh * ow + i * ow + j]);
                  sum += value * double(data<const T>(w)[(m * perGroup + c) * taps + t]);
                }
              }
              data<T>(out[0])[((b * M + m) * oh + i) * ow + j] = T(sum);
            }
      return 0;
    });
  });
}

/// x [N, C * block, L], image shape, block shape; attrs: lists of Window. Gives [N, C, image].
LLMC_GRAPH_KERNEL(col2im) {
  return computed(g, in, out, type, 3, 1, [&](Value *const *in, Value **out) {
    return withType(computeType(type), [&](auto sample) -> int32_t {
      using T = decltype(sample);
      Value *x = in[0];
      Window window;
      window.n = in[1]->count;
      if (x->rank != 3 || window.n > kMaxRank - 2 || in[2]->count != window.n)
        return fail(g, LLMRT_GRAPH_RANK, x->rank, 3);
      for (int64_t d = 0; d < window.n; ++d) {
        window.size[d] = indexAt(in[1], d);
        window.kernel[d] = indexAt(in[2], d);
        if (window.size[d] < 0)
          return fail(g, LLMRT_GRAPH_ARGUMENT, window.size[d]);
      }
      const int64_t *at = attrs;
      GRAPH_TRY(window.read(g, at));
      GRAPH_TRY(window.place(g, PadAsGiven, false));
      int64_t taps = window.kernelCount(), places = window.resultCount(), dims[kMaxRank];
      if (x->dims[1] % taps != 0 || x->dims[2] != places)
        return fail(g, LLMRT_GRAPH_SHAPE, x->dims[2], places);
      int64_t C = x->dims[1] / taps, plane = window.sizeCount();
      dims[0] = x->dims[0], dims[1] = C;
      for (int64_t d = 0; d < window.n; ++d)
        dims[2 + d] = window.size[d];
      GRAPH_TRY(newTensor(g, x->type, 2 + window.n, dims, out[0]));
      for (int64_t i = 0; i < out[0]->count; ++i)
        data<T>(out[0])[i] = 0;
      int64_t index[kMaxRank] = {};
      for (int64_t p = 0; p < places; ++p, window.next(index, window.result)) {
        int64_t tap[kMaxRank] = {};
        for (int64_t t = 0; t < taps; ++t, window.next(tap, window.kernel)) {
          int64_t to = 0;
          for (int64_t d = 0; d < window.n && to >= 0; ++d) {
            int64_t i =
                index[d] * window.stride[d] - window.before[d] + tap[d] * window.dilation[d];
            to = i < 0 || i >= window.size[d] ? -1 : to * window.size[d] + i;
          }
          if (to < 0)
            continue;
          for (int64_t row = 0; row < x->dims[0] * C; ++row) {
            T &element = data<T>(out[0])[row * plane + to];
            element = T(element + data<const T>(x)[(row * taps + t) * places + p]);
          }
        }
      }
      return 0;
    });
  });
}
