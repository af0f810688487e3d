//===- Blocks.h - the blocks of a decoder in their one form --------------------===//
//
// What every importer ends in: a mixture of experts and latent attention are several operations,
// and the same ones whatever file the model came from.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_DIALECTS_LLM_BLOCKS_H
#define LLMC_DIALECTS_LLM_BLOCKS_H

#include "dialects/llm/WeightViews.h"

namespace llmc::llm {

/// How a router chooses, see llm.route.
struct RouteForm {
  Scoring scoring = Scoring::Softmax;
  int64_t chosen = 1;
  bool normalize = false;
  int64_t groups = 0, topGroups = 0; ///< 0: none
  bool groupBestTwo = false;
  double scale = 1;
};

/// One expert's projections: gate and up [I, D], down [D, I]; biases [I], [I], [D] or null.
struct ExpertWeights {
  mlir::Value gate, up, down;
  mlir::Value gateBias, upBias, downBias;
};

/// What the gated units of experts compute.
struct ExpertForm {
  Activation activation = Activation::Silu;
  double alpha = 0, limit = 0; ///< see llm.expert_linear; 0: not
};

/// The sum of the chosen experts for the rows \p x [T, D]; \p logits are [T, E], \p correction [E]
/// or null.
mlir::Value buildMixture(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x,
                         mlir::Value logits, mlir::Value correction, const RouteForm &route,
                         const ExpertForm &form, llvm::ArrayRef<ExpertWeights> experts);

/// Multi-head latent attention with its up projections absorbed.
struct LatentAttention {
  int64_t layer = 0, heads = 0;
  int64_t nope = 0;    ///< values of a head's query and key that are not rotated
  int64_t value = 0;   ///< values of a head's result
  mlir::Value query;   ///< [T, H * S]: the first `nope` of each head are not rotated
  mlir::Value rotated; ///< [T, H * P], or `query` again: the last P of each head are to be rotated
  mlir::Value latent;  ///< [T, R], normalised
  mlir::Value key;     ///< [T, P], to be rotated
  mlir::Value angles;
  bool interleaved = false;
  double scale = 1;
  /// Each head's up projections, [nope, R] and [value, R].
  llvm::SmallVector<mlir::Value> keyUp, valueUp;
};
/// Rows [T, H * value].
mlir::Value buildLatentAttention(mlir::OpBuilder &builder, mlir::Location loc,
                                 const LatentAttention &parts);

} // namespace llmc::llm

#endif // LLMC_DIALECTS_LLM_BLOCKS_H
