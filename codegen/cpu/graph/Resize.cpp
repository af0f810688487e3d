//===- Resize.cpp - resizing and sampling --------------------------------------===//
#include "codegen/cpu/graph/Graph.h"

namespace llmc::graphcode {

enum Mode : int64_t { Nearest = 0, Linear = 1, Cubic = 2 };
enum Coordinates : int64_t {
  HalfPixel = 0,
  HalfPixelSymmetric = 1,
  PytorchHalfPixel = 2,
  AlignCorners = 3,
  Asymmetric = 4,
  CropAndResize = 5,
  HalfPixelForNearest = 6
};
enum NearestMode : int64_t { PreferFloor = 0, PreferCeil = 1, Floor = 2, Ceil = 3 };

GRAPH_INLINE double floorOf(double x) { return __builtin_elementwise_floor(x); }

/// Keys' cubic convolution kernel with the coefficient a.
GRAPH_INLINE double cubicKernel(double x, double a) {
  x = absolute(x);
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// One axis of a resize: which elements make up one of the result, with what weights.
struct Axis {
  int64_t size, result;
  double scale, begin, end; ///< of the region of interest
};
struct ResizeMode {
  int64_t mode, coordinates, nearest;
  bool excludesOutside, antialiases;
  double cubic;
};

GRAPH_INLINE double original(const Axis &axis, int64_t coordinates, int64_t i) {
  double x = double(i), size = double(axis.size), result = double(axis.result);
  switch (coordinates) {
  case AlignCorners:
    return axis.result == 1 ? 0 : x * (size - 1) / (axis.scale * size - 1);
  case Asymmetric:
    return x / axis.scale;
  case CropAndResize:
    return axis.result > 1
               ? axis.begin * (size - 1) + x * (axis.end - axis.begin) * (size - 1) / (result - 1)
               : 0.5 * (axis.begin + axis.end) * (size - 1);
  case PytorchHalfPixel:
    return axis.result == 1 ? -0.5 : (x + 0.5) / axis.scale - 0.5;
  case HalfPixelSymmetric: {
    double adjustment = result / (axis.scale * size);
    return size / 2 * (1 - adjustment) + (x + 0.5) / axis.scale - 0.5;
  }
  case HalfPixelForNearest:
    return (x + 0.5) / axis.scale;
  default:
    return (x + 0.5) / axis.scale - 0.5;
  }
}

/// How many elements make up one at most.
GRAPH_INLINE int64_t taps(const Axis &axis, const ResizeMode &mode) {
  if (mode.mode == Nearest)
    return 2;
  double scale = mode.antialiases ? min(axis.scale, 1.0) : 1.0;
  double radius = mode.mode == Cubic ? 2 : 1;
  return 2 * (1 - int64_t(floorOf(-radius / scale) + 1)) + 2;
}

/// Sets the elements and weights of element \p i; false where it lies outside of the input.
GRAPH_INLINE bool weightsAt(const Axis &axis, const ResizeMode &mode, int64_t i, int64_t *places,
                            double *weights, int64_t &n) {
  double x = original(axis, mode.coordinates, i);
  bool isInside = mode.coordinates != CropAndResize || !(x < 0 || x > double(axis.size - 1));
  double base = floorOf(x), ratio = x - base;
  // The ratio is in (0, 1]: a whole x is the right one of its neighbours.
  if (ratio == 0)
    base -= 1, ratio = 1;
  double scale = mode.antialiases ? min(axis.scale, 1.0) : 1.0, sum = 0;
  int64_t first = 0;
  if (mode.mode == Nearest) {
    bool isLeft = false;
    if (ratio != 1)
      isLeft = mode.nearest == PreferFloor  ? ratio <= 0.5
               : mode.nearest == PreferCeil ? ratio < 0.5
                                            : mode.nearest == Floor;
    n = 2;
    weights[0] = isLeft, weights[1] = !isLeft;
  } else {
    double radius = mode.mode == Cubic ? 2 : 1;
    first = int64_t(floorOf(-radius / scale) + 1);
    n = 2 - 2 * first;
    for (int64_t k = 0; k < n; ++k) {
      double at = (double(first + k) - ratio) * scale;
      weights[k] =
          mode.mode == Cubic ? cubicKernel(at, mode.cubic) : max(0.0, min(1.0, 1 - absolute(at)));
    }
  }
  for (int64_t k = 0; k < n; ++k) {
    double place = base + double(first + k);
    if (mode.excludesOutside && (place < 0 || place >= double(axis.size)))
      weights[k] = 0;
    places[k] = int64_t(max(0.0, min(place, double(axis.size - 1))));
    sum += weights[k];
  }
  if (mode.excludesOutside || mode.antialiases)
    for (int64_t k = 0; k < n; ++k)
      weights[k] /= sum;
  return isInside;
}

} // namespace llmc::graphcode

using namespace llmc::graphcode;

/// x, region of interest or null, scales or null, sizes or null; attrs: cubic coefficient,
/// extrapolation value, mode, coordinates, nearest mode, exclude outside, antialias, aspect ratio
/// (0 stretch, 1 not larger, 2 not smaller), the list of axes (empty: all).
LLMC_GRAPH_KERNEL(resize) {
  Value *x = in[0];
  ResizeMode mode{attrs[2], attrs[3], attrs[4], attrs[5] != 0, attrs[6] != 0, realAttr(attrs[0])};
  int64_t n = attrs[8] ? attrs[8] : x->rank, listed[kMaxRank];
  Axis axes[kMaxRank];
  if (n > x->rank)
    return fail(g, LLMRT_GRAPH_RANK, n, x->rank);
  for (int64_t d = 0; d < x->rank; ++d)
    axes[d] = {x->dims[d], x->dims[d], 1, 0, 1};
  for (int64_t i = 0; i < n; ++i) {
    listed[i] = i;
    if (attrs[8])
      GRAPH_TRY(normalAxis(g, attrs[9 + i], x->rank, listed[i]));
  }
  auto real = [&](const Value *v, int64_t i) -> double {
    return v->type == LLMRT_TYPE_F64 ? data<double>(v)[i] : double(data<float>(v)[i]);
  };
  bool hasSizes = in[3] && in[3]->count > 0, hasScales = in[2] && in[2]->count > 0;
  if (hasSizes == hasScales)
    return fail(g, LLMRT_GRAPH_EMPTY);
  const Value *given = hasSizes ? in[3] : in[2];
  if (given->count != n)
    return fail(g, LLMRT_GRAPH_SHAPE, given->count, n);
  double common = attrs[7] == 1 ? __builtin_inf() : 0;
  for (int64_t i = 0; i < n; ++i) {
    Axis &axis = axes[listed[i]];
    if (hasScales) {
      axis.scale = real(in[2], i);
      double size = floorOf(double(axis.size) * axis.scale);
      if (!(axis.scale > 0) || size > double(kMaxElements))
        return fail(g, LLMRT_GRAPH_ARGUMENT, int64_t(axis.scale));
      axis.result = int64_t(size);
    } else {
      axis.result = indexAt(in[3], i);
      if (axis.result < 0 || axis.size == 0)
        return fail(g, LLMRT_GRAPH_ARGUMENT, axis.result);
      axis.scale = double(axis.result) / double(axis.size);
      common = attrs[7] == 1 ? min(common, axis.scale) : max(common, axis.scale);
    }
    if (in[1] && in[1]->count == 2 * n) {
      axis.begin = real(in[1], i);
      axis.end = real(in[1], n + i);
    }
  }
  if (hasSizes && attrs[7])
    for (int64_t i = 0; i < n; ++i) {
      Axis &axis = axes[listed[i]];
      axis.scale = common;
      axis.result = int64_t(floorOf(common * double(axis.size) + 0.5));
    }
  return computed(g, in, out, type, 1, 1, [&](Value *const *in, Value **out) {
    return withType(computeType(type), [&](auto sample) -> int32_t {
      using T = decltype(sample);
      Value *x = in[0];
      int64_t dims[kMaxRank], count = 1, largest = 1;
      for (int64_t d = 0; d < x->rank; ++d)
        dims[d] = axes[d].result;
      GRAPH_TRY(newTensor(g, x->type, x->rank, dims, out[0]));
      // Axis by axis, the last first, in buffers that hold any of the steps between.
      for (int64_t d = 0; d < x->rank; ++d)
        count *= x->dims[d];
      largest = count;
      int64_t step = count;
      for (int64_t d = x->rank - 1; d >= 0; --d) {
        step = axes[d].size ? step / axes[d].size * axes[d].result : 0;
        largest = max(largest, step);
      }
      double *from, *to;
      uint8_t *outside;
      GRAPH_TRY(scratch(g, 2 * largest, from));
      to = from + largest;
      GRAPH_TRY(scratch(g, out[0]->count, outside));
      for (int64_t i = 0; i < count; ++i)
        from[i] = double(data<const T>(x)[i]);
      for (int64_t i = 0; i < out[0]->count; ++i)
        outside[i] = 0;
      for (int64_t d = x->rank - 1; d >= 0; --d) {
        const Axis &axis = axes[d];
        bool isSame =
            axis.scale == 1 && axis.result == axis.size && mode.coordinates != CropAndResize;
        if (isSame)
          continue;
        int64_t outer = product(x, 0, d), inner = product(out[0], d + 1, x->rank), *places, m;
        double *weights;
        GRAPH_TRY(scratch(g, taps(axis, mode) + 4, places));
        GRAPH_TRY(scratch(g, taps(axis, mode) + 4, weights));
        for (int64_t i = 0; i < axis.result; ++i) {
          bool isInside = weightsAt(axis, mode, i, places, weights, m);
          for (int64_t o = 0; o < outer; ++o)
            for (int64_t j = 0; j < inner; ++j) {
              double sum = 0;
              for (int64_t k = 0; k < m; ++k)
                if (weights[k] != 0)
                  sum += weights[k] * from[(o * axis.size + places[k]) * inner + j];
              to[(o * axis.result + i) * inner + j] = sum;
            }
          if (!isInside)
            for (int64_t e = 0; e < out[0]->count; ++e)
              if (e / inner % axis.result == i)
                outside[e] = 1;
        }
        g->release(g, places);
        g->release(g, weights);
        double *swapped = from;
        from = to;
        to = swapped;
      }
      for (int64_t i = 0; i < out[0]->count; ++i)
        data<T>(out[0])[i] = T(outside[i] ? realAttr(attrs[1]) : from[i]);
      g->release(g, min(from, to));
      g->release(g, outside);
      return 0;
    });
  });
}

namespace llmc::graphcode {

/// x reflected into [low, high].
GRAPH_INLINE double reflect(double x, double low, double high) {
  double span = high - low;
  if (span <= 0)
    return low;
  double rest = x - low;
  rest -= floorOf(rest / (2 * span)) * 2 * span;
  return rest > span ? high - (rest - span) : low + rest;
}

} // namespace llmc::graphcode

/// x [N, C, ...], grid [N, ..., n]; attrs: mode (of Mode), padding (0 zeros, 1 border, 2
/// reflection), align corners.
LLMC_GRAPH_KERNEL(grid_sample) {
  return computed(g, in, out, type, 2, 1, [&](Value *const *in, Value **out) {
    return withFloatType(type, [&](auto sample) -> int32_t {
      using T = decltype(sample);
      Value *x = in[0], *grid = in[1];
      int64_t n = x->rank - 2, dims[kMaxRank];
      if (n < 1 || grid->rank != x->rank || grid->dims[x->rank - 1] != n ||
          grid->dims[0] != x->dims[0] || grid->type != x->type)
        return fail(g, LLMRT_GRAPH_SHAPE, grid->count, x->count);
      dims[0] = x->dims[0], dims[1] = x->dims[1];
      for (int64_t d = 0; d < n; ++d)
        dims[2 + d] = grid->dims[1 + d];
      GRAPH_TRY(newTensor(g, x->type, x->rank, dims, out[0]));
      int64_t plane = product(x, 2, x->rank), places = product(out[0], 2, x->rank);
      bool aligns = attrs[2] != 0;
      int64_t mode = attrs[0], taps = mode == Cubic ? 4 : mode == Linear ? 2 : 1, all = 1;
      for (int64_t d = 0; d < n; ++d)
        all *= taps;
      for (int64_t b = 0; b < x->dims[0]; ++b)
        for (int64_t p = 0; p < places; ++p) {
          double base[kMaxRank], weights[kMaxRank][4];
          for (int64_t d = 0; d < n; ++d) {
            // The grid's last dimension runs from the last spatial dimension to the first.
            double u = double(data<const T>(grid)[(b * places + p) * n + (n - 1 - d)]);
            double size = double(x->dims[2 + d]);
            double at = aligns ? (u + 1) / 2 * (size - 1) : ((u + 1) * size - 1) / 2;
            double low = aligns ? 0 : -0.5, high = aligns ? size - 1 : size - 0.5;
            if (mode != Cubic && attrs[1] == 1)
              at = max(0.0, min(at, size - 1));
            else if (mode != Cubic && attrs[1] == 2)
              at = max(0.0, min(reflect(at, low, high), size - 1));
            if (!(at > -1e15 && at < 1e15))
              at = -1e15;
            if (mode == Nearest) {
              base[d] = __builtin_elementwise_roundeven(at);
              weights[d][0] = 1;
            } else {
              base[d] = floorOf(at);
              double t = at - base[d];
              if (mode == Linear) {
                weights[d][0] = 1 - t, weights[d][1] = t;
              } else {
                for (int64_t k = 0; k < 4; ++k)
                  weights[d][k] = cubicKernel(double(k - 1) - t, -0.75);
                base[d] -= 1;
              }
            }
          }
          for (int64_t c = 0; c < x->dims[1]; ++c) {
            double sum = 0;
            for (int64_t k = 0; k < all; ++k) {
              int64_t rest = k, from = 0;
              double weight = 1;
              bool isInside = true;
              int64_t digits[kMaxRank];
              for (int64_t d = n - 1; d >= 0; --d) {
                digits[d] = rest % taps;
                rest /= taps;
              }
              for (int64_t d = 0; d < n; ++d) {
                double at = base[d] + double(digits[d]), size = double(x->dims[2 + d]);
                weight *= weights[d][digits[d]];
                if (at < 0 || at >= size) {
                  isInside &= attrs[1] != 0;
                  double low = aligns ? 0 : -0.5, high = aligns ? size - 1 : size - 0.5;
                  at = attrs[1] == 2 ? reflect(at, low, high) : at;
                  at = max(0.0, min(at, size - 1));
                }
                from = from * x->dims[2 + d] + int64_t(at);
              }
              if (isInside && plane > 0)
                sum += weight * double(data<const T>(x)[(b * x->dims[1] + c) * plane + from]);
            }
            data<T>(out[0])[(b * x->dims[1] + c) * places + p] = T(sum);
          }
        }
      return 0;
    });
  });
}

/// theta [N, n, n + 1], size [n + 2]; attrs: align corners. Gives [N, ..., n].
LLMC_GRAPH_KERNEL(affine_grid) {
  return computed(g, in, out, type, 2, 1, [&](Value *const *in, Value **out) {
    return withFloatType(type, [&](auto sample) -> int32_t {
      using T = decltype(sample);
      Value *theta = in[0];
      int64_t n = in[1]->count - 2, dims[kMaxRank];
      if (n < 1 || n + 2 > kMaxRank || theta->rank != 3 || theta->dims[1] != n ||
          theta->dims[2] != n + 1 || indexAt(in[1], 0) != theta->dims[0])
        return fail(g, LLMRT_GRAPH_SHAPE, theta->count, n * (n + 1));
      dims[0] = theta->dims[0];
      for (int64_t d = 0; d < n; ++d)
        dims[1 + d] = indexAt(in[1], 2 + d);
      dims[n + 1] = n;
      GRAPH_TRY(newTensor(g, theta->type, n + 2, dims, out[0]));
      int64_t places = product(out[0], 1, n + 1);
      for (int64_t b = 0; b < dims[0]; ++b)
        for (int64_t p = 0; p < places; ++p) {
          double at[kMaxRank];
          int64_t rest = p;
          for (int64_t d = n - 1; d >= 0; --d) {
            double i = double(rest % dims[1 + d]), size = double(dims[1 + d]);
            rest /= dims[1 + d];
            at[n - 1 - d] =
                attrs[0] ? (size > 1 ? -1 + 2 * i / (size - 1) : -1) : (2 * i + 1) / size - 1;
          }
          for (int64_t r = 0; r < n; ++r) {
            double sum = double(data<const T>(theta)[(b * n + r) * (n + 1) + n]);
            for (int64_t c = 0; c < n; ++c)
              sum += double(data<const T>(theta)[(b * n + r) * (n + 1) + c]) * at[c];
            data<T>(out[0])[(b * places + p) * n + r] = T(sum);
          }
        }
      return 0;
    });
  });
}

/// x [N, C, H, W], boxes [R, 4], batch indices [R]; attrs: spatial scale, mode (0 average, 1 max),
/// output height, width, sampling ratio (0: adaptive), half pixels.
LLMC_GRAPH_KERNEL(roi_align) {
  return computed(g, in, out, type, 3, 1, [&](Value *const *in, Value **out) {
    return withFloatType(type, [&](auto sample) -> int32_t {
      using T = decltype(sample);
      Value *x = in[0], *boxes = in[1], *batches = in[2];
      if (x->rank != 4 || boxes->rank != 2 || boxes->dims[1] != 4 ||
          batches->count != boxes->dims[0] || attrs[2] < 1 || attrs[3] < 1)
        return fail(g, LLMRT_GRAPH_SHAPE, boxes->count, batches->count);
      int64_t R = boxes->dims[0], C = x->dims[1], H = x->dims[2], W = x->dims[3];
      int64_t oh = attrs[2], ow = attrs[3], dims[4] = {R, C, oh, ow};
      double scale = realAttr(attrs[0]), offset = attrs[5] ? 0.5 : 0;
      GRAPH_TRY(newTensor(g, x->type, 4, dims, out[0]));
      for (int64_t r = 0; r < R; ++r) {
        int64_t batch = indexAt(batches, r);
        if (batch < 0 || batch >= x->dims[0])
          return fail(g, LLMRT_GRAPH_INDEX, batch, x->dims[0]);
        double edge[4];
        for (int i = 0; i < 4; ++i)
          edge[i] = double(data<const T>(boxes)[r * 4 + i]) * scale - offset;
        double width = edge[2] - edge[0], height = edge[3] - edge[1];
        if (!attrs[5])
          width = max(width, 1.0), height = max(height, 1.0);
        double binH = height / double(oh), binW = width / double(ow);
        if (!(absolute(binH) < 1e6 && absolute(binW) < 1e6))
          return fail(g, LLMRT_GRAPH_ARGUMENT, int64_t(width));
        int64_t nh = attrs[4] > 0 ? attrs[4] : int64_t(-floorOf(-binH));
        int64_t nw = attrs[4] > 0 ? attrs[4] : int64_t(-floorOf(-binW));
        for (int64_t c = 0; c < C; ++c)
          for (int64_t i = 0; i < oh; ++i)
            for (int64_t j = 0; j < ow; ++j) {
              double sum = 0, best = 0;
              bool isFirst = true;
              const T *plane = data<const T>(x) + (batch * C + c) * H * W;
              for (int64_t a = 0; a < nh; ++a)
                for (int64_t b = 0; b < nw; ++b) {
                  double y = edge[1] + (double(i) + (double(a) + 0.5) / double(nh)) * binH;
                  double z = edge[0] + (double(j) + (double(b) + 0.5) / double(nw)) * binW;
                  double corner[4] = {0, 0, 0, 0};
                  if (y >= -1 && y <= double(H) && z >= -1 && z <= double(W)) {
                    y = max(y, 0.0), z = max(z, 0.0);
                    int64_t y0 = min(int64_t(y), H - 1), z0 = min(int64_t(z), W - 1);
                    int64_t y1 = min(y0 + 1, H - 1), z1 = min(z0 + 1, W - 1);
                    double fy = y0 >= H - 1 ? 0 : y - double(y0);
                    double fz = z0 >= W - 1 ? 0 : z - double(z0);
                    corner[0] = (1 - fy) * (1 - fz) * double(plane[y0 * W + z0]);
                    corner[1] = (1 - fy) * fz * double(plane[y0 * W + z1]);
                    corner[2] = fy * (1 - fz) * double(plane[y1 * W + z0]);
                    corner[3] = fy * fz * double(plane[y1 * W + z1]);
                  }
                  double largest = max(max(corner[0], corner[1]), max(corner[2], corner[3]));
                  sum += corner[0] + corner[1] + corner[2] + corner[3];
                  best = isFirst ? largest : max(best, largest);
                  isFirst = false;
                }
              data<T>(out[0])[((r * C + c) * oh + i) * ow + j] =
                  T(attrs[1] ? best : sum / double(max<int64_t>(nh * nw, 1)));
            }
      }
      return 0;
    });
  });
}

/// boxes [N, B, 4], scores [N, C, B], most a class or null, IoU threshold or null, score threshold
/// or null; attrs: boxes as centres and sizes. Gives [n, 3]: batch, class, box.
LLMC_GRAPH_KERNEL(non_max_suppression) {
  Value *boxes = in[0], *scores = in[1];
  if (boxes->rank != 3 || scores->rank != 3 || boxes->dims[2] != 4 ||
      boxes->dims[0] != scores->dims[0] || boxes->dims[1] != scores->dims[2])
    return fail(g, LLMRT_GRAPH_SHAPE, boxes->count, scores->count);
  for (int i = 2; i < 5; ++i)
    if (in[i] && in[i]->count != 1)
      return fail(g, LLMRT_GRAPH_SHAPE, in[i]->count, 1);
  int64_t N = boxes->dims[0], B = boxes->dims[1], C = scores->dims[1], found = 0;
  int64_t most = in[2] ? max<int64_t>(indexAt(in[2], 0), 0) : 0;
  float iouThreshold = in[3] ? data<float>(in[3])[0] : 0;
  const float *least = in[4] ? data<float>(in[4]) : nullptr;
  most = min(most, B);
  int64_t *kept, *order;
  GRAPH_TRY(scratch(g, 3 * max<int64_t>(N * C * most, 1), kept));
  GRAPH_TRY(scratch(g, B + 1, order));
  auto corners = [&](const float *box, double *c) {
    if (attrs[0]) {
      c[0] = double(box[1]) - double(box[3]) / 2, c[1] = double(box[0]) - double(box[2]) / 2;
      c[2] = double(box[1]) + double(box[3]) / 2, c[3] = double(box[0]) + double(box[2]) / 2;
    } else {
      c[0] = double(min(box[0], box[2])), c[1] = double(min(box[1], box[3]));
      c[2] = double(max(box[0], box[2])), c[3] = double(max(box[1], box[3]));
    }
  };
  for (int64_t n = 0; n < N; ++n)
    for (int64_t c = 0; c < C; ++c) {
      const float *score = data<float>(scores) + (n * C + c) * B;
      int64_t first = found, count = 0;
      for (int64_t i = 0; i < B; ++i)
        if (!least || score[i] > *least) {
          int64_t at = count++; // by insertion: the best first, equal ones in order
          for (; at > 0 && score[order[at - 1]] < score[i]; --at)
            order[at] = order[at - 1];
          order[at] = i;
        }
      for (int64_t k = 0; k < count && found - first < most; ++k) {
        double p[4], q[4];
        corners(data<float>(boxes) + (n * B + order[k]) * 4, p);
        bool isKept = true;
        for (int64_t f = first; f < found && isKept; ++f) {
          corners(data<float>(boxes) + (n * B + kept[3 * f + 2]) * 4, q);
          double h = min(p[2], q[2]) - max(p[0], q[0]), w = min(p[3], q[3]) - max(p[1], q[1]);
          double both = h > 0 && w > 0 ? h * w : 0;
          double either = (p[2] - p[0]) * (p[3] - p[1]) + (q[2] - q[0]) * (q[3] - q[1]) - both;
          isKept = !(either > 0 && both / either > double(iouThreshold));
        }
        if (isKept) {
          kept[3 * found] = n, kept[3 * found + 1] = c, kept[3 * found + 2] = order[k];
          ++found;
        }
      }
    }
  int64_t dims[2] = {found, 3};
  GRAPH_TRY(newTensor(g, LLMRT_TYPE_I64, 2, dims, out[0]));
  copyBytes(out[0]->data, kept, 3 * found * int64_t(sizeof(int64_t)));
  g->release(g, kept);
  g->release(g, order);
  return 0;
}
