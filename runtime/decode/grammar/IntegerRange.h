//===- IntegerRange.h - the decimal forms of the integers in a range --------===//
#ifndef LLMRT_DECODE_GRAMMAR_INTEGERRANGE_H
#define LLMRT_DECODE_GRAMMAR_INTEGERRANGE_H

#include "runtime/decode/grammar/GrammarBuilder.h"

namespace llmrt {

/// 16 digits: what a double holds.
inline constexpr int64_t integerLimit = 9999999999999999;

/// The integers from \p low to \p high, both within integerLimit, as JSON writes them.
GrammarBuilder::Expr integerRange(GrammarBuilder &builder, int64_t low, int64_t high);

} // namespace llmrt

#endif // LLMRT_DECODE_GRAMMAR_INTEGERRANGE_H
