//===- RouterMatch.h - The router of a mixture, from the weights it gives -*- C++ -*-===//
#ifndef LLMC_COMPILER_PASSES_RAISE_ROUTERMATCH_H
#define LLMC_COMPILER_PASSES_RAISE_ROUTERMATCH_H

#include "compiler/passes/raise/MixtureMatch.h"

namespace llmc::raise {

/// The value before any casts, between whatever types.
mlir::Value peelAnyCasts(mlir::Value value);
/// A tensor of zeros (or of another number), whatever its shape: a fill, or a scalar expanded.
bool isFilledWith(mlir::Value value, double number);
/// A reduction over the last axis.
graph::ReduceOp matchLastReduce(mlir::Value value, graph::ReduceKind kind,
                                SampleEvaluation &samples);
/// Size of the last dimension where it is the same at every sample, or 0.
int64_t lastSize(mlir::Value value, SampleEvaluation &samples);

/// The router whose chosen experts are the indices of `topK` and whose weights, [tokens, chosen],
/// are `weights`.
std::optional<RouterMatch> matchRouter(mlir::Value weights, graph::TopKOp topK,
                                       SampleEvaluation &samples);

} // namespace llmc::raise

#endif
