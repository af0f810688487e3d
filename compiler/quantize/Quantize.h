//===- Quantize.h - floats to integers in groups --------------------------------===//
//
// The one entry for all integer formats of a plan. What happens depends on the format only:
//
//   i8            round to nearest, scale = max|w| / 127
//   i4            a search for the scale of least weighted square error, see SearchScale.h
//   i4 with min   a search for scale and minimum, see SearchScaleMin.h
//   i8 with min   scale and minimum from the group's range, round to nearest
//
// Results are the same bits on every machine: sums have one fixed order.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_QUANTIZE_QUANTIZE_H
#define LLMC_QUANTIZE_QUANTIZE_H

#include "compiler/quantize/QuantizedRows.h"
#include "runtime/support/Status.h"

#include <span>

namespace llmc {

/// Quantizes \p rows rows of \p columns finite values into \p result. A group of zeros gets scale 0
/// (and minimum 0). Scales and minimums are rounded to the format's type before the codes are
/// chosen.
///
/// \p importance, empty or one factor a column, says how much an error in that column counts: the
/// mean square of the input that the column meets, where that is known. Without it errors of large
/// weights count more (by |w|), which follows the output better than plain square error.
///
/// Fails for a format that is none of the above, and where a value doesn't fit an f16 scale.
llmrt::Status quantizeRows(const WeightFormat &format, const float *values, uint64_t rows,
                           uint64_t columns, QuantizedRows &result,
                           std::span<const float> importance = {});

/// sqrt(sum (w - q(w))^2 / sum w^2) of rows that were quantized.
double relativeError(const float *values, const QuantizedRows &quantized);

} // namespace llmc

#endif // LLMC_QUANTIZE_QUANTIZE_H
