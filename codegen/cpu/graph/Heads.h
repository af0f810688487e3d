//===- Heads.h - tensors of heads in either of their layouts ---------------------===//
#ifndef LLMC_CODEGEN_CPU_GRAPH_HEADS_H
#define LLMC_CODEGEN_CPU_GRAPH_HEADS_H

#include "codegen/cpu/graph/Real.h"

namespace llmc::graphcode {

/// A tensor [batch, heads, length, size], or [batch, length, heads * size] with its strides.
struct Heads {
  int64_t batch, heads, length, size;
  int64_t strides[3]; ///< of batch, head, place
};

/// Those of \p v, which has \p heads heads where its rank is 3; fails for another rank and where
/// they don't divide it.
int32_t headsOf(Graph *g, const Value *v, int64_t heads, Heads &h);

} // namespace llmc::graphcode

#endif // LLMC_CODEGEN_CPU_GRAPH_HEADS_H
