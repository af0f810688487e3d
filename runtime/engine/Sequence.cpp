#include "runtime/engine/Sequence.h"

#include "runtime/decode/grammar/GrammarMatcher.h"
#include "runtime/engine/Speculator.h"

#include <limits>

namespace llmrt {

Sequence::Sequence() : surprise(std::numeric_limits<double>::quiet_NaN()) {}
Sequence::~Sequence() = default;

} // namespace llmrt
