#include "compiler/quantize/Quantize.h"

#include "compiler/quantize/SearchScale.h"
#include "compiler/quantize/SearchScaleMin.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace llmrt;

namespace llmc {
namespace {

/// The weights of a stretch of columns (at most a group) of up to sixteen rows.
struct Stretch {
  const float *values; ///< of the first row
  uint64_t rowSize;    ///< from one row to the next
  uint32_t rows;
  uint32_t count;          ///< columns
  const float *importance; ///< of each column, or null
};

using Quad = float __attribute__((ext_vector_type(partCount)));

/// Turns rows into lanes: values[i][row]. Lanes beyond the rows are zeros.
LLMC_ALWAYS_INLINE void transpose(const Stretch &from, uint32_t padded, Lanes *values) {
  auto *scalars = reinterpret_cast<float *>(values);
  if (from.rows != laneCount)
    std::fill_n(values, padded, Lanes(0));
  uint32_t row = 0;
  const uint32_t whole = from.count / partCount * partCount;
  for (; row + partCount <= from.rows; row += partCount)
    for (uint32_t i = 0; i != whole; i += partCount) {
      Quad in[partCount];
      for (uint32_t k = 0; k != partCount; ++k)
        std::memcpy(&in[k], from.values + (row + k) * from.rowSize + i, sizeof(Quad));
      const Quad low01 = __builtin_shufflevector(in[0], in[1], 0, 4, 1, 5),
                 low23 = __builtin_shufflevector(in[2], in[3], 0, 4, 1, 5),
                 high01 = __builtin_shufflevector(in[0], in[1], 2, 6, 3, 7),
                 high23 = __builtin_shufflevector(in[2], in[3], 2, 6, 3, 7);
      const Quad out[partCount] = {__builtin_shufflevector(low01, low23, 0, 1, 4, 5),
                                   __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
                                   __builtin_shufflevector(high01, high23, 0, 1, 4, 5),
                                   __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
      for (uint32_t k = 0; k != partCount; ++k)
        std::memcpy(scalars + (i + k) * laneCount + row, &out[k], sizeof(Quad));
    }
  for (uint32_t rest = 0; rest != from.rows; ++rest)
    for (uint32_t i = rest < row ? whole : 0; i != from.count; ++i)
      scalars[i * laneCount + rest] = from.values[rest * from.rowSize + i];
}

/// Gets a stretch into lanes, padded, and sets the weights of the errors, scaled to about 1 so that
/// neither large nor small factors leave the range of f32 in the sums.
LLMC_CPU_CLONES void load(const Stretch &from, uint32_t padded, Lanes *values, Lanes *importance) {
  transpose(from, padded, values);
  Lanes largest = 0;
  for (uint32_t i = 0; i != from.count; ++i) {
    if (from.importance)
      importance[i] = from.importance[i];
    else
      magnitudeOf(values[i], importance[i]);
    largest = importance[i] > largest ? importance[i] : largest;
  }
  // Not all zero, and no column at all without weight: 0/0 would follow.
  Lanes factor = 1 / largest;
  IntLanes finite;
  finiteLanes(factor, finite);
  factor = finite ? factor : Lanes(0);
  for (uint32_t i = 0; i != from.count; ++i)
    importance[i] = importance[i] * factor + 1e-6f;
  for (uint32_t i = from.count; i != padded; ++i)
    values[i] = importance[i] = 0;
}

/// What a code is, by format: round((w - min) / scale) between low and high, plus bias.
struct CodeRange {
  float low, high;
  int32_t bias;
};

CodeRange codeRange(const WeightFormat &format) {
  if (format.element == Element::I4)
    return format.hasMin ? CodeRange{0, 15, 0} : CodeRange{-8, 7, 8};
  return {format.hasMin ? -128.0f : -127.0f, 127, 0};
}

/// The codes of a stretch, row-major with \p rowSize from one row to the next.
LLMC_CPU_CLONES void encode(const Stretch &from, const Lanes *values, const ScaleMin &at,
                            const CodeRange &range, uint8_t *codes) {
  Lanes inverse;
  invertLanes(at.scale, inverse);
  IntLanes finite;
  finiteLanes(inverse, finite);
  const bool multiplies = __builtin_reduce_and(finite) != 0;
  // Four columns make a word of each row.
  for (uint32_t i = 0; i < from.count; i += partCount) {
    IntLanes word = 0;
    for (uint32_t k = 0; k != partCount; ++k) {
      const Lanes w = values[i + k] - at.min;
      // A tiny scale in f32 has no finite inverse; dividing is right for it.
      Lanes q = w * inverse;
      if (!multiplies)
        q = finite ? q : w / at.scale;
      clampLanes(q, range.low, range.high);
      roundLanes(q);
      word |= ((__builtin_convertvector(q, IntLanes) + range.bias) & 255) << (8 * k);
    }
    int32_t words[laneCount];
    std::memcpy(words, &word, sizeof(words));
    if (i + partCount <= from.count)
      for (uint32_t row = 0; row != from.rows; ++row)
        std::memcpy(codes + row * from.rowSize + i, &words[row], sizeof(words[row]));
    else
      for (uint32_t row = 0; row != from.rows; ++row)
        std::memcpy(codes + row * from.rowSize + i, &words[row], from.count - i);
  }
}

/// Codes and scales of one column of groups of up to sixteen rows at a time.
class GroupQuantizer {
public:
  explicit GroupQuantizer(const WeightFormat &format)
      : format(format), padded((format.group + partCount - 1) / partCount * partCount),
        values(padded), importance(padded) {}

  void quantize(const Stretch &from, uint8_t *codes, ScaleMin &found) {
    const uint32_t size = (from.count + partCount - 1) / partCount * partCount;
    load(from, size, values.data(), importance.data());
    const GroupBlock groups{values.data(), importance.data(), from.count, size};
    const bool four = format.element == Element::I4;
    if (format.hasMin) {
      (four ? searchScaleMin4 : scaleMin8)(groups, format.scale, found);
    } else {
      found.min = 0;
      (four ? searchScale4 : scale8)(groups, format.scale, found.scale);
    }
    encode(from, values.data(), found, codeRange(format), codes);
  }

private:
  const WeightFormat format;
  uint32_t padded;
  std::vector<Lanes> values, importance;
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
  GroupQuantizer quantizer(format);
  const uint64_t groups = result.groups();
  for (uint64_t row = 0; row < rows; row += laneCount)
    for (uint64_t group = 0; group != groups; ++group) {
      const uint64_t column = group * format.group, at = row * columns + column;
      const Stretch stretch{
          values + at, columns, static_cast<uint32_t>(std::min<uint64_t>(laneCount, rows - row)),
          static_cast<uint32_t>(std::min<uint64_t>(format.group, columns - column)),
          importance.empty() ? nullptr : importance.data() + column};
      ScaleMin found;
      quantizer.quantize(stretch, result.codes.data() + at, found);
      for (uint32_t lane = 0; lane != stretch.rows; ++lane) {
        if (!std::isfinite(found.scale[lane]) || !std::isfinite(found.min[lane]))
          return unsupported("weights around row " + std::to_string(row + lane) + ", column " +
                             std::to_string(column) +
                             " are too large for a scale in f16 (up to 65504 times the range of "
                             "the codes); compile without quantization");
        const uint64_t index = (row + lane) * groups + group;
        result.scales[index] = found.scale[lane];
        if (format.hasMin)
          result.mins[index] = found.min[lane];
      }
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
