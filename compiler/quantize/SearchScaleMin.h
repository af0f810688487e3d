//===- SearchScaleMin.h - the best scale and minimum of a group ------------------===//
#ifndef LLMC_QUANTIZE_SEARCHSCALEMIN_H
#define LLMC_QUANTIZE_SEARCHSCALEMIN_H

#include "compiler/quantize/Lanes.h"

namespace llmc {

struct ScaleMin {
  Lanes scale, min;
};

/// The scale s and minimum m of each group, as \p type stores them, for codes q in 0 .. 15, that
/// make sum importance * (w - s q - m)^2 small. Starts from ranges around the group's middle, from
/// 0.85 to 1.03 of its extent; for the codes of each the best s and m are the solution of a linear
/// regression, which is repeated with the codes that they give.
void searchScaleMin4(const GroupBlock &groups, Element type, ScaleMin &result);

/// Each group's range cut in 255 steps, for codes -128 .. 127.
void scaleMin8(const GroupBlock &groups, Element type, ScaleMin &result);

} // namespace llmc

#endif // LLMC_QUANTIZE_SEARCHSCALEMIN_H
