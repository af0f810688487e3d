//===- Real.h - elements of any float type, and integer codes, one at a time ----===//
#ifndef LLMC_CODEGEN_CPU_GRAPH_REAL_H
#define LLMC_CODEGEN_CPU_GRAPH_REAL_H

#include "codegen/cpu/graph/SmallFloat.h"

namespace llmc::graphcode {

/// Element \p i of a tensor of any float type, and its counterpart.
double realAt(const Value *v, int64_t i);
void storeReal(Value *v, int64_t i, double x);
/// Element \p i of a tensor of one of the integer types that values are quantized to.
int64_t codeAt(const Value *v, int64_t i);
double sigmoidOf(Graph *g, double x);

} // namespace llmc::graphcode

#endif // LLMC_CODEGEN_CPU_GRAPH_REAL_H
