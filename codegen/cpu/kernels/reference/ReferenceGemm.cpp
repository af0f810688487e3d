#include "codegen/cpu/kernels/reference/Reference.h"

#include <cmath>

using namespace llmc;

std::vector<float> reference::gemmFloat(int64_t m, int64_t n, int64_t k, const float *x,
                                        const float *w) {
  std::vector<float> y(m * n);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum = std::fma(w[j * k + l], x[i * k + l], sum);
      y[i * n + j] = sum;
    }
  return y;
}

std::vector<float> reference::gemmInt(const QuantizedRows &x, const QuantizedMatrix &w) {
  std::vector<float> y(x.rows * w.rows);
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t j = 0; j < w.rows; ++j) {
      float acc = 0;
      for (int64_t g = 0; g < x.groups(); ++g) {
        int64_t dot = 0;
        for (int64_t k = g * x.group; k < std::min((g + 1) * x.group, x.columns); ++k)
          dot += int64_t(x.q[i * x.columns + k]) * w.q[j * w.columns + k];
        const int64_t weightGroup = j * w.groups() + g * x.group / w.group;
        const float sa = x.scales[i * x.groups() + g];
        const float scale = w.scales[weightGroup] * sa;
        acc = std::fma(static_cast<float>(dot), scale, acc);
        if (!w.mins.empty()) {
          const float offset = sa * static_cast<float>(x.sums[i * x.groups() + g]);
          acc = std::fma(w.mins[weightGroup], offset, acc);
        }
      }
      y[i * w.rows + j] = acc;
    }
  return y;
}
