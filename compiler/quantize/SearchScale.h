//===- SearchScale.h - the best scale of a group without a minimum --------------===//
#ifndef LLMC_QUANTIZE_SEARCHSCALE_H
#define LLMC_QUANTIZE_SEARCHSCALE_H

#include "compiler/quantize/Lanes.h"

namespace llmc {

/// The scale s of each group, as \p type stores it, for codes q in -8 .. 7, that makes sum
/// importance * (w - s q)^2 small. The value of largest magnitude goes to the negative end, which
/// has one code more.
///
/// For fixed codes the best scale is sum(i w q) / sum(i q q), and it lowers the error by
/// sum(i w q)^2 / sum(i q q). So a few codings, from steps that cut the largest value off to steps
/// that leave room, are compared by that number; the best one's scale is then tried once more
/// with the codes that it gives itself.
void searchScale4(const GroupBlock &groups, Element type, Lanes &scale);

/// max|w| / 127, raised to the next f16 where rounding down would cut values off.
void scale8(const GroupBlock &groups, Element type, Lanes &scale);

} // namespace llmc

#endif // LLMC_QUANTIZE_SEARCHSCALE_H
