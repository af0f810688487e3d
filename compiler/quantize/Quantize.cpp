#include "compiler/quantize/Quantize.h"

#include "compiler/quantize/SearchScale.h"
#include "compiler/quantize/SearchScaleMin.h"

#include <algorithm>
#include <cmath>

using namespace llmrt;

namespace llmc {
namespace {

/// Codes and scales of one group at a time.
class GroupQuantizer {
public:
  GroupQuantizer(const WeightFormat &format, std::span<const float> importance)
      : format_(format), importance_(importance),
        padded_((format.group + laneCount - 1) / laneCount * laneCount), values_(padded_),
        weights_(padded_) {}

  /// \p count values (at most a group) from column \p column on. False when a scale or minimum
  /// overflows.
  bool quantize(const float *values, uint64_t column, uint32_t count, uint8_t *codes, float &scale,
                float *min) {
    load(values, column, count);
    const GroupView group{values_.data(), weights_.data(), padded_};
    const bool four = format_.element == Element::I4;
    ScaleMin found;
    if (format_.hasMin)
      found = four ? searchScaleMin4(group, format_.scale) : scaleMin8(group, format_.scale);
    else
      found.scale = four ? searchScale4(group, format_.scale) : scale8(group, format_.scale);
    scale = found.scale;
    if (min)
      *min = found.min;
    if (!std::isfinite(found.scale) || !std::isfinite(found.min))
      return false;
    const float inverse = scale != 0 ? 1 / scale : 0;
    // A tiny scale in f32 has no finite inverse; dividing is right for it.
    const bool divides = !std::isfinite(inverse);
    const float low = four ? (format_.hasMin ? 0 : -8) : (format_.hasMin ? -128 : -127);
    const float high = four ? (format_.hasMin ? 15 : 7) : 127;
    const int bias = four && !format_.hasMin ? 8 : 0;
    for (uint32_t i = 0; i != padded_; i += laneCount) {
      const Lanes w = loadLanes(values_.data() + i) - found.min;
      const Lanes q = roundLanes(clampLanes(divides ? w / scale : w * inverse, low, high));
      for (uint32_t k = 0; k != std::min(laneCount, count - std::min(count, i)); ++k)
        codes[i + k] = static_cast<uint8_t>(static_cast<int>(q[k]) + bias);
    }
    return true;
  }

private:
  /// Copies a group, pads it and sets the weights of its errors, scaled to about 1 so that neither
  /// large nor small factors leave the range of f32 in the sums.
  void load(const float *values, uint64_t column, uint32_t count) {
    std::copy_n(values, count, values_.begin());
    std::fill(values_.begin() + count, values_.end(), 0.0f);
    std::fill(weights_.begin() + count, weights_.end(), 0.0f);
    float largest = 0;
    for (uint32_t i = 0; i != count; ++i) {
      weights_[i] = importance_.empty() ? std::abs(values[i]) : importance_[column + i];
      largest = std::max(largest, weights_[i]);
    }
    // Not all zero, and no column at all without weight: 0/0 would follow.
    const float factor = largest > 0 && std::isfinite(1 / largest) ? 1 / largest : 0;
    for (uint32_t i = 0; i != count; ++i)
      weights_[i] = weights_[i] * factor + 1e-6f;
  }

  const WeightFormat format_;
  std::span<const float> importance_;
  uint32_t padded_;
  std::vector<float> values_, weights_;
};

} // namespace

Status quantizeRows(const WeightFormat &format, const float *values, uint64_t rows,
                    uint64_t columns, QuantizedRows &result, std::span<const float> importance) {
  if (!isValidFormat(format) || format.packing != Packing::N16K4)
    return internalError("quantizing to a format that isn't one of grouped integers");
  if (!importance.empty() && importance.size() != columns)
    return internalError("importance of " + std::to_string(importance.size()) + " columns for " +
                         std::to_string(columns));
  result.resize(format, rows, columns);
  GroupQuantizer quantizer(format, importance);
  const uint64_t groups = result.groups();
  for (uint64_t row = 0; row != rows; ++row)
    for (uint64_t group = 0; group != groups; ++group) {
      const uint64_t column = group * format.group, at = row * columns + column;
      const uint32_t count =
          static_cast<uint32_t>(std::min<uint64_t>(format.group, columns - column));
      const uint64_t index = row * groups + group;
      if (!quantizer.quantize(values + at, column, count, result.codes.data() + at,
                              result.scales[index], format.hasMin ? &result.mins[index] : nullptr))
        return unsupported("weights around row " + std::to_string(row) + ", column " +
                           std::to_string(column) +
                           " are too large for a scale in f16 (up to 65504 times the range of the "
                           "codes); compile without quantization");
    }
  return Status::ok();
}

double relativeError(const float *values, const QuantizedRows &quantized) {
  double error = 0, norm = 0;
  for (uint64_t r = 0; r != quantized.rows; ++r) {
    const QuantizedRow row = quantized.row(r);
    for (uint64_t c = 0; c != quantized.columns; ++c) {
      const uint64_t group = c / quantized.format.group;
      const double w = values[r * quantized.columns + c];
      const double d = w - decodeValue(quantized.format, row.q[c], row.scales[group],
                                       row.mins ? row.mins[group] : 0);
      error += d * d;
      norm += w * w;
    }
  }
  return norm == 0 ? 0 : std::sqrt(error / norm);
}

} // namespace llmc
