//===- PlainQuantizer.h - the quantizers as plain loops over one group ----------===//
//
// What SearchScale.h and SearchScaleMin.h describe, one group at a time and one value at a time,
// with the sums in the order that Lanes.h sets down: the oracle of the vectorised ones.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TEST_QUANTIZE_PLAINQUANTIZER_H
#define LLMC_TEST_QUANTIZE_PLAINQUANTIZER_H

#include "compiler/quantize/HalfFloat.h"
#include "compiler/quantize/Quantize.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace llmc::test {

class PlainGroup {
public:
  /// \p importance: null, or a factor a value.
  PlainGroup(const WeightFormat &format, const float *values, uint64_t count,
             const float *importance)
      : format(format), w(values, values + count) {
    float largest = 0;
    for (uint64_t i = 0; i != count; ++i) {
      weight.push_back(importance ? importance[i] : std::abs(w[i]));
      largest = std::max(largest, weight[i]);
    }
    const float factor = largest > 0 && std::isfinite(1 / largest) ? 1 / largest : 0;
    for (float &f : weight)
      f = f * factor + 1e-6f;
    if (format.hasMin)
      format.element == Element::I4 ? searchScaleMin() : scaleMin();
    else
      scale = format.element == Element::I4 ? searchScale() : scale8();
  }

  float scale = 0, min = 0;

  uint8_t code(uint64_t i) const {
    const bool four = format.element == Element::I4;
    const float low = four ? (format.hasMin ? 0 : -8) : (format.hasMin ? -128 : -127);
    const float inverse = scale != 0 ? 1 / scale : 0;
    const float steps = std::isfinite(inverse) ? (w[i] - min) * inverse : (w[i] - min) / scale;
    const float high = four ? (format.hasMin ? 15 : 7) : 127;
    const int q = static_cast<int>(std::nearbyint(std::clamp(steps, low, high)));
    return static_cast<uint8_t>(q + (four && !format.hasMin ? 8 : 0));
  }

private:
  float stored(float v) const { return format.scale == Element::F16 ? roundToHalf(v) : v; }

  template <typename F> float sum(F term) const {
    float parts[4] = {};
    for (size_t i = 0; i != w.size(); ++i)
      parts[i % 4] += term(i);
    return (parts[0] + parts[2]) + (parts[1] + parts[3]);
  }

  float extreme() const {
    float best = 0;
    for (float v : w)
      if (std::abs(v) > std::abs(best))
        best = v;
    return best;
  }

  struct Fit {
    float scale = 0, gain = 0;
  };
  Fit fit(float inverse) const {
    auto q = [&](size_t i) { return std::clamp(std::nearbyint(w[i] * inverse), -8.0f, 7.0f); };
    const float wq = sum([&](size_t i) { return weight[i] * q(i) * w[i]; });
    const float qq = sum([&](size_t i) { return weight[i] * q(i) * q(i); });
    return qq > 0 ? Fit{wq / qq, wq * wq / qq} : Fit{};
  }

  float searchScale() const {
    const float largest = extreme();
    Fit best;
    for (int quarter = 25; quarter <= 36 && largest != 0; ++quarter) {
      const float inverse = -0.25f * static_cast<float>(quarter) / largest;
      if (!std::isfinite(inverse))
        break;
      if (const Fit found = fit(inverse); found.gain > best.gain)
        best = found;
    }
    if (best.scale == 0)
      return stored(largest / -8);
    const float first = stored(best.scale);
    if (first == 0)
      return 0;
    const float second = stored(fit(1 / first).scale);
    auto error = [&](float s) {
      return sum([&](size_t i) {
        const float inverse = s != 0 ? 1 / s : 0;
        const float d = w[i] - std::clamp(std::nearbyint(w[i] * inverse), -8.0f, 7.0f) * s;
        return weight[i] * d * d;
      });
    };
    return error(second) < error(first) ? second : first;
  }

  float scale8() const {
    const float largest = std::abs(extreme()), rounded = stored(largest / 127);
    if (format.scale != Element::F16 || largest <= 127.49f * rounded)
      return rounded;
    return halfToFloat(static_cast<uint16_t>(floatToHalf(rounded) + 1));
  }

  void searchScaleMin() {
    const auto [low, high] = std::minmax_element(w.begin(), w.end());
    const float middle = 0.5f * *low + 0.5f * *high, half = 0.5f * *high - 0.5f * *low;
    min = stored(middle);
    if (half == 0)
      return;
    const float all = sum([&](size_t i) { return weight[i]; });
    const float weighted = sum([&](size_t i) { return weight[i] * w[i]; });
    float atScale, atMin;
    auto q = [&](size_t i) {
      const float inverse = atScale != 0 ? 1 / atScale : 0;
      return std::clamp(std::nearbyint((w[i] - atMin) * inverse), 0.0f, 15.0f);
    };
    auto error = [&] {
      return sum([&](size_t i) {
        const float d = w[i] - (q(i) * atScale + atMin);
        return weight[i] * d * d;
      });
    };
    scale = atScale = stored(2 * half / 15), min = atMin = stored(*low);
    float least = error();
    for (const float part : {0.85f, 0.895f, 0.94f, 0.985f, 1.03f}) {
      atScale = stored(2 * half * part / 15), atMin = stored(middle - half * part);
      for (int round = 0; round != 3; ++round) {
        if (const float e = error(); e < least)
          least = e, scale = atScale, min = atMin;
        const float sq = sum([&](size_t i) { return weight[i] * q(i); });
        const float sqq = sum([&](size_t i) { return weight[i] * q(i) * q(i); });
        const float swq = sum([&](size_t i) { return weight[i] * q(i) * w[i]; });
        const float determinant = all * sqq - sq * sq;
        if (!(determinant > 0))
          break;
        const float next = (all * swq - sq * weighted) / determinant;
        atMin = stored((weighted - next * sq) / all);
        atScale = stored(next);
      }
    }
  }

  void scaleMin() {
    const auto [low, high] = std::minmax_element(w.begin(), w.end());
    scale = stored(*high / 255 - *low / 255);
    min = stored(*low + 128 * scale);
  }

  const WeightFormat format;
  std::vector<float> w, weight;
};

} // namespace llmc::test

#endif // LLMC_TEST_QUANTIZE_PLAINQUANTIZER_H
