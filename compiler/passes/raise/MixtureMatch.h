//===- MixtureMatch.h - A mixture of experts in its exporters' spellings -*- C++ -*-===//
//
// What follows a router in an ONNX export is one of three graphs:
//
//   by choice   one-hot of the chosen experts, nonzero of each expert's plane, gather of its
//   tokens,
//               its MLP, a product with the gathered weights, scatter into zeros, and a sum
//   dense       [tokens, experts] weights (zero where not chosen), every expert's MLP on every
//               token times its column, and a sum
//   batched     the same with the experts as the batch of two matrix products, and a reduce
//
// All mean the same: each token's weighted sum over the experts that it chose. Every link of these
// chains is checked, so that a graph that only resembles them is left alone.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_COMPILER_PASSES_RAISE_MIXTUREMATCH_H
#define LLMC_COMPILER_PASSES_RAISE_MIXTUREMATCH_H

#include "compiler/passes/raise/SampleEvaluation.h"
#include "dialects/graph/GraphDialect.h"
#include "dialects/llm/LlmDialect.h"
#include <optional>

namespace llmc::raise {

/// How the experts are chosen and weighted, as llm.route has it.
struct RouterMatch {
  mlir::Value logits; ///< [tokens, experts]
  graph::TopKOp topK; ///< its indices are the chosen experts
  llm::Scoring scoring = llm::Scoring::SoftmaxChosen;
  mlir::Value correction; ///< null: none
  bool normalize = false, groupBestTwo = false;
  int64_t chosen = 0, experts = 0, groups = 0, topGroups = 0;
  double scale = 1;
};

/// A matrix product with a weight, and its bias.
struct ProductMatch {
  mlir::Operation *op = nullptr;
  mlir::Value x, weight, bias;
  bool isTransposed = false; ///< the weight is [out, in], not [in, out]
};

struct ExpertMatch {
  ProductMatch gate, up, down;
};

struct MixtureMatch {
  RouterMatch router;
  mlir::Value x; ///< [tokens, features]
  llm::Activation activation = llm::Activation::Silu;
  llvm::SmallVector<ExpertMatch> experts; ///< by number; empty for the batched form
  /// The batched form: weights [experts, in, out], gate and up in turn in the columns of the first.
  ProductMatch gateUp, down;
  double alpha = 0, limit = 0;
};

/// The mixture of which `sum` (an add, or a reduce in the batched form) is the result.
std::optional<MixtureMatch> matchMixture(mlir::Value sum, SampleEvaluation &samples);

} // namespace llmc::raise

#endif
