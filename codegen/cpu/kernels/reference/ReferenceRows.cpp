#include "codegen/cpu/kernels/reference/Reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

using namespace llmc;

reference::QuantizedRows reference::quantizeRows(int64_t rows, int64_t columns, int64_t group,
                                                 const float *x) {
  QuantizedRows result{rows, columns, group, {}, {}, {}};
  result.q.resize(rows * columns);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t g = 0; g < result.groups(); ++g) {
      const int64_t begin = g * group, end = std::min(begin + group, columns);
      float amax = 0;
      bool isFinite = true;
      for (int64_t k = begin; k < end; ++k) {
        isFinite &= std::isfinite(x[r * columns + k]);
        amax = std::max(amax, std::fabs(x[r * columns + k]));
      }
      const float scale = isFinite ? amax / 127.0f : std::numeric_limits<float>::quiet_NaN();
      int32_t sum = 0;
      for (int64_t k = begin; k < end; ++k) {
        float q = 0;
        if (scale > 0)
          q = std::clamp(std::nearbyint(x[r * columns + k] / scale), -127.0f, 127.0f);
        result.q[r * columns + k] = static_cast<int8_t>(q);
        sum += static_cast<int32_t>(q);
      }
      result.scales.push_back(scale);
      result.sums.push_back(sum);
    }
  return result;
}

std::vector<double> reference::norm(std::span<const float> x, std::span<const float> w,
                                    std::span<const float> bias, bool mean, double eps,
                                    bool plusOne) {
  double centre = 0, square = 0;
  if (mean) {
    for (float v : x)
      centre += v;
    centre /= static_cast<double>(x.size());
  }
  for (float v : x)
    square += (v - centre) * (v - centre);
  const double factor = 1 / std::sqrt(square / static_cast<double>(x.size()) + eps);
  std::vector<double> y;
  for (size_t i = 0; i < x.size(); ++i)
    y.push_back((x[i] - centre) * factor * (w[i] + (plusOne ? 1.0 : 0.0)) +
                (bias.empty() ? 0.0 : bias[i]));
  return y;
}

double reference::activate(double x, int64_t activation) {
  switch (activation) {
  case 1:
    return x / (1 + std::exp(-x));
  case 2:
    return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
  case 3:
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  case 4:
    return std::max(x, 0.0);
  case 5:
    return 1 / (1 + std::exp(-x));
  default:
    return x;
  }
}
