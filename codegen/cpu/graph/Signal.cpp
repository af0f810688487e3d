//===- Signal.cpp - Fourier transforms, windows ---------------------------------===//
#include "codegen/cpu/graph/Real.h"

namespace llmc::graphcode {

constexpr double kPi = 3.14159265358979323846;

/// The transform of n complex numbers at \p x into \p y: radix 2 where n allows, by definition
/// otherwise.
static void transform(Graph *g, int64_t n, const double *x, double *y, double sign) {
  if ((n & (n - 1)) != 0) {
    for (int64_t k = 0; k < n; ++k) {
      double re = 0, im = 0;
      for (int64_t i = 0; i < n; ++i) {
        double angle = sign * 2 * kPi * double(k * i % n) / double(n);
        double c = mathOf(g, LLMRT_MATH_COS, angle), s = mathOf(g, LLMRT_MATH_SIN, angle);
        re += x[2 * i] * c - x[2 * i + 1] * s;
        im += x[2 * i] * s + x[2 * i + 1] * c;
      }
      y[2 * k] = re, y[2 * k + 1] = im;
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i) { // bits in reverse
    int64_t j = 0;
    for (int64_t bit = 1, k = i; bit < n; bit *= 2, k /= 2)
      j = 2 * j + k % 2;
    y[2 * j] = x[2 * i], y[2 * j + 1] = x[2 * i + 1];
  }
  for (int64_t half = 1; half < n; half *= 2)
    for (int64_t k = 0; k < half; ++k) {
      double angle = sign * kPi * double(k) / double(half);
      double c = mathOf(g, LLMRT_MATH_COS, angle), s = mathOf(g, LLMRT_MATH_SIN, angle);
      for (int64_t i = k; i < n; i += 2 * half) {
        double *p = y + 2 * i, *q = y + 2 * (i + half);
        double re = q[0] * c - q[1] * s, im = q[0] * s + q[1] * c;
        q[0] = p[0] - re, q[1] = p[1] - im;
        p[0] += re, p[1] += im;
      }
    }
}

} // namespace llmc::graphcode

using namespace llmc::graphcode;

/// x [..., 1 or 2], length or null, axis; attrs: inverse, one-sided.
LLMC_GRAPH_KERNEL(dft) {
  Value *x = in[0];
  int64_t axis, last = x->rank - 1, dims[kMaxRank];
  if (x->rank < 2)
    return fail(g, LLMRT_GRAPH_RANK, x->rank, 2);
  GRAPH_TRY(normalAxis(g, indexAt(in[2], 0), x->rank, axis));
  int64_t parts = x->dims[last];
  bool isInverse = attrs[0] != 0, isHalf = attrs[1] != 0;
  if (axis == last || (parts != 1 && parts != 2))
    return fail(g, LLMRT_GRAPH_SHAPE, parts, 2);
  int64_t size = x->dims[axis];
  int64_t n = in[1] ? indexAt(in[1], 0) : isInverse && isHalf ? 2 * (size - 1) : size;
  if (n < 1 || n > (int64_t(1) << 30))
    return fail(g, LLMRT_GRAPH_ARGUMENT, n);
  for (int64_t d = 0; d < x->rank; ++d)
    dims[d] = x->dims[d];
  dims[axis] = isHalf && !isInverse ? n / 2 + 1 : n;
  dims[last] = isHalf && isInverse ? 1 : 2;
  GRAPH_TRY(newTensor(g, type, x->rank, dims, out[0]));
  int64_t outer = product(x, 0, axis), inner = product(x, axis + 1, last);
  double *from, *to;
  GRAPH_TRY(scratch(g, 4 * n, from));
  to = from + 2 * n;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      for (int64_t k = 0; k < n; ++k) {
        // A one-sided spectrum stands for a real signal's: the other half is its conjugate.
        int64_t at = isHalf && isInverse && k > n / 2 ? n - k : k;
        bool isThere = at < size;
        int64_t place = ((o * size + at) * inner + i) * parts;
        from[2 * k] = isThere ? realAt(x, place) : 0;
        from[2 * k + 1] = isThere && parts == 2 ? realAt(x, place + 1) : 0;
        if (at != k)
          from[2 * k + 1] = -from[2 * k + 1];
      }
      transform(g, n, from, to, isInverse ? 1 : -1);
      double scale = isInverse ? 1 / double(n) : 1;
      for (int64_t k = 0; k < dims[axis]; ++k)
        for (int64_t p = 0; p < dims[last]; ++p)
          storeReal(out[0], ((o * dims[axis] + k) * inner + i) * dims[last] + p,
                    to[2 * k + p] * scale);
    }
  g->release(g, from);
  return 0;
}

/// signal [batch, length(, 1 or 2)], step, window or null, frame length or null; attrs: one-sided.
LLMC_GRAPH_KERNEL(stft) {
  Value *x = in[0];
  int64_t parts = x->rank == 3 ? x->dims[2] : 1;
  if (x->rank < 2 || x->rank > 3 || (parts != 1 && parts != 2))
    return fail(g, LLMRT_GRAPH_RANK, x->rank, 3);
  int64_t step = indexAt(in[1], 0), length = x->dims[1];
  int64_t n = in[3] ? indexAt(in[3], 0) : in[2] ? in[2]->count : length;
  if (step < 1 || n < 1 || n > length || (in[2] && in[2]->count != n))
    return fail(g, LLMRT_GRAPH_ARGUMENT, step < 1 ? step : n);
  int64_t frames = (length - n) / step + 1, bins = attrs[0] ? n / 2 + 1 : n;
  int64_t dims[4] = {x->dims[0], frames, bins, 2};
  GRAPH_TRY(newTensor(g, type, 4, dims, out[0]));
  double *from, *to;
  GRAPH_TRY(scratch(g, 4 * n, from));
  to = from + 2 * n;
  for (int64_t b = 0; b < x->dims[0]; ++b)
    for (int64_t f = 0; f < frames; ++f) {
      for (int64_t k = 0; k < n; ++k) {
        double weight = in[2] ? realAt(in[2], k) : 1;
        int64_t place = (b * length + f * step + k) * parts;
        from[2 * k] = weight * realAt(x, place);
        from[2 * k + 1] = parts == 2 ? weight * realAt(x, place + 1) : 0;
      }
      transform(g, n, from, to, -1);
      for (int64_t k = 0; k < 2 * bins; ++k)
        storeReal(out[0], (b * frames + f) * bins * 2 + k, to[k]);
    }
  g->release(g, from);
  return 0;
}

/// size; attrs: a0, a1, a2, periodic: a0 - a1 cos(2 pi i / N) + a2 cos(4 pi i / N), in f64.
LLMC_GRAPH_KERNEL(cosine_window) {
  if (in[0]->count != 1)
    return fail(g, LLMRT_GRAPH_SHAPE, in[0]->count, 1);
  int64_t n = indexAt(in[0], 0);
  GRAPH_TRY(newTensor(g, LLMRT_TYPE_F64, 1, &n, out[0]));
  double period = double(attrs[3] ? n : n - 1);
  for (int64_t i = 0; i < n; ++i) {
    double angle = 2 * kPi * double(i) / period;
    data<double>(out[0])[i] = realAttr(attrs[0]) -
                              realAttr(attrs[1]) * mathOf(g, LLMRT_MATH_COS, angle) +
                              realAttr(attrs[2]) * mathOf(g, LLMRT_MATH_COS, 2 * angle);
  }
  return 0;
}

/// mel bins, transform length, sample rate (integers), lower and upper edge in Hz (floats): weights
/// [length / 2 + 1, bins] of triangles that are even in mel, in f64.
LLMC_GRAPH_KERNEL(mel_weights) {
  for (int i = 0; i < 5; ++i)
    if (in[i]->count != 1)
      return fail(g, LLMRT_GRAPH_SHAPE, in[i]->count, 1);
  int64_t bins = indexAt(in[0], 0), length = indexAt(in[1], 0), rate = indexAt(in[2], 0);
  double low = realAt(in[3], 0), high = realAt(in[4], 0), log10 = mathOf(g, LLMRT_MATH_LOG, 10);
  if (bins < 1 || bins > (1 << 24) || length < 1 || length > (int64_t(1) << 40) || rate < 1)
    return fail(g, LLMRT_GRAPH_ARGUMENT, bins);
  int64_t dims[2] = {length / 2 + 1, bins}, *edges;
  GRAPH_TRY(newTensor(g, LLMRT_TYPE_F64, 2, dims, out[0]));
  GRAPH_TRY(scratch(g, bins + 2, edges));
  double *y = data<double>(out[0]);
  for (int64_t i = 0; i < out[0]->count; ++i)
    y[i] = 0;
  auto mel = [&](double hertz) { return 2595 * mathOf(g, LLMRT_MATH_LOG1P, hertz / 700) / log10; };
  double first = mel(low), step = (mel(high) - first) / double(bins + 2);
  for (int64_t i = 0; i < bins + 2; ++i) {
    double hertz =
        700 * (mathOf(g, LLMRT_MATH_EXP, (double(i) * step + first) / 2595 * log10) - 1);
    double edge = __builtin_elementwise_floor(double(length + 1) * hertz / double(rate));
    if (!(edge >= 0 && edge < double(dims[0])))
      return fail(g, LLMRT_GRAPH_INDEX, int64_t(edge), dims[0]);
    edges[i] = int64_t(edge);
  }
  for (int64_t i = 0; i < bins; ++i) {
    int64_t left = edges[i], center = edges[i + 1], right = edges[i + 2];
    if (center == left)
      y[center * bins + i] = 1;
    for (int64_t j = left; center > left && j <= center; ++j)
      y[j * bins + i] = double(j - left) / double(center - left);
    for (int64_t j = center; j < right; ++j)
      y[j * bins + i] = double(right - j) / double(right - center);
  }
  g->release(g, edges);
  return 0;
}
