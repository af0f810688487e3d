//===- DecoderConfig.h - what a decoder is, whatever file it came from ----------===//
//
// The description that every importer of a checkpoint fills and the decoder builder turns into IR.
// A family is a choice of these fields, never code of its own in the builder. Shapes are written
// with H query heads, G key-value heads, d values a head.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_IMPORT_COMMON_DECODERCONFIG_H
#define LLMC_IMPORT_COMMON_DECODERCONFIG_H

#include "compiler/import/common/RopeConfig.h"

#include <cstdint>
#include <string>
#include <vector>

namespace llmc {

/// How a row is normalised; every norm of a model has the same form.
struct NormForm {
  enum class Kind {
    Rms,  ///< x / sqrt(mean(x^2) + eps) * w
    Layer ///< (x - mean) / sqrt(variance + eps) * w
  };
  Kind kind = Kind::Rms;
  double eps = 0;
  bool plusOne = false; ///< Rms: the factor is 1 + w
  bool bias = false;    ///< Layer: + b
};

/// Where the norms of a block f (attention or MLP) stand.
enum class NormPlace {
  Before, ///< x + f(norm(x))
  After,  ///< x + norm(f(x)): OLMo 2
  Around  ///< x + norm'(f(norm(x))): Gemma 2 and 3
};

/// How attention and MLP of a layer join the residual stream.
enum class ResidualForm {
  Sequential,        ///< h = x + attention(n1(x)), then h + mlp(n2(h))
  Parallel,          ///< x + attention(n1(x)) + mlp(n2(x))
  ParallelSharedNorm ///< x + attention(n(x)) + mlp(n(x))
};

/// How a checkpoint stores the projections of Q, K and V.
enum class QkvForm {
  Separate, ///< three matrices
  Stacked,  ///< one: the rows of Q, then those of K, then those of V
  Grouped   ///< one: for each key-value head the rows of its H/G query heads, its K, its V
};

/// RMS norms of Q and K before the rotation.
enum class QkNorm {
  None,
  Head, ///< each head by itself, w is [d]
  Row   ///< all heads together, w is [H * d] and [G * d]: OLMo 2
};

/// Multi-head latent attention (DeepSeek-V2, 2024): keys and values are projections of one latent
/// row a token, which is all that the cache holds, beside a rotated key that the heads share.
struct LatentForm {
  uint64_t rank = 0;      ///< values of a latent row; 0: attention is of the usual kind
  uint64_t queryRank = 0; ///< of the queries' own low-rank form; 0: one projection
  uint64_t nopeSize = 0, ropeSize = 0, valueSize = 0; ///< a head; ropeSize values are rotated
};

struct AttentionForm {
  uint64_t heads = 0, kvHeads = 0, headSize = 0; ///< H, G, d; H * d need not be the hidden size
  QkvForm qkv = QkvForm::Separate;
  bool qkvBias = false, outputBias = false;
  QkNorm qkNorm = QkNorm::None;
  bool interleavedRope = false; ///< rotates (2i, 2i+1) instead of (i, i + rotary/2)
  bool permutedHeads = false;   ///< rows of Q and K in GGUF's order for interleaved pairs
  double scale = 0;             ///< of the scores; 0: 1 / sqrt(d)
  double softcap = 0;           ///< of the scores; 0: none
  bool alibi = false;           ///< Press et al., 2022, with the paper's slopes
  double alibiScale = 1;        ///< of these slopes
  bool sinks = false;           ///< a learned score of each head that has no value: GPT-OSS
  LatentForm latent;
};

/// The activation functions of MLPs, with the numbers that the llm dialect and plans give them.
enum class MlpActivation { Silu = 1, Gelu = 2, GeluTanh = 3, Relu = 4 };

/// The function that Hugging Face's configurations call \p name; Unsupported, with those that are
/// supported, for another.
llmrt::Result<MlpActivation> activationNamed(const std::string &name);

struct MlpForm {
  uint64_t intermediate = 0;
  MlpActivation activation = MlpActivation::Silu;
  bool gated = true;                     ///< down(act(gate(x)) * up(x)), else down(act(up(x)))
  bool fusedGateUp = false;              ///< one matrix: the rows of gate, then those of up
  bool upBias = false, downBias = false; ///< upBias: of gate too
};

/// The scores by which a router chooses and weights experts, with the llm dialect's numbers.
enum class RouterScoring { Softmax = 0, Sigmoid = 1, SoftmaxOfChosen = 2 };

/// How a checkpoint stores the experts of a layer: E experts, D hidden, I inner values.
enum class ExpertStorage {
  Separate, ///< three matrices an expert
  Stacked,  ///< [E, I, D], [E, I, D], [E, D, I]
  Joined,   ///< [E, 2 I, D], gate rows before up rows, and [E, D, I]: Granite
  Turned,   ///< [E, D, 2 I], gate and up in turn, and [E, I, D]: GPT-OSS
  InTurn    ///< [E, 2 I, D], gate and up rows in turn, and [E, D, I]: GPT-OSS in MXFP4
};

/// A mixture of experts in the place of an MLP.
struct MixtureForm {
  uint64_t experts = 0; ///< 0: the model has none
  uint64_t chosen = 0, intermediate = 0;
  ExpertStorage storage = ExpertStorage::Separate;
  RouterScoring scoring = RouterScoring::Softmax;
  bool normalize = false;  ///< the weights are divided by their sum
  bool correction = false; ///< a bias that decides who is chosen and has no part in the weights
  uint64_t groups = 0, topGroups = 0; ///< experts are chosen from the best groups only; 0: from all
  bool groupBestTwo = false;          ///< a group's score is the sum of its two best, not its best
  double scale = 1;                   ///< of the weights
  bool routerBias = false, expertBias = false;
  double alpha = 0,
         limit = 0; ///< gate * sigmoid(alpha * gate) * (up + 1) within limit; 0: MlpForm's
  uint64_t sharedIntermediate = 0; ///< of an MLP that every token goes through as well; 0: none
  bool sharedGate = false;         ///< its result is weighted with a sigmoid of the token
};

/// What may differ from layer to layer.
struct DecoderLayer {
  bool mixture = false;      ///< a MixtureForm in the place of the MLP
  uint64_t window = 0;       ///< keys that a query sees, itself included; 0: all
  int rope = 0;              ///< index into DecoderConfig::ropes; -1: no rotation
  double attentionScale = 0; ///< 0: AttentionForm's
};

struct DecoderConfig {
  std::string name;         ///< what the model calls itself; may be empty
  std::string architecture; ///< "llama", "gemma2", ...
  uint64_t hidden = 0;
  uint64_t vocabulary = 0; ///< rows of the embedding
  uint64_t maxContext = 0; ///< tokens

  NormForm norm;
  NormPlace normPlace = NormPlace::Before;
  ResidualForm residual = ResidualForm::Sequential;
  AttentionForm attention;
  MlpForm mlp;
  MixtureForm mixture;
  std::vector<DecoderLayer> layers;
  std::vector<RopeParameters> ropes;

  bool embeddingNorm = false;    ///< a norm right after the embedding: Bloom
  uint64_t learnedPositions = 0; ///< rows of a table that is added to the embedding; 0: none
  double embeddingScale = 1;     ///< of the token's row
  double residualScale = 1;      ///< of what a block adds
  double logitScale = 1;         ///< of the logits, before the cap
  double logitSoftcap = 0;       ///< 0: none
  bool tiedHead = false;         ///< the head is the embedding
  bool headBias = false;
  bool transposedProjections = false; ///< matrices are [in, out]: GPT-2
  uint64_t draftLayers =
      0; ///< layers after the last that predict further tokens; not part of a step

  /// Fails where numbers contradict each other; called by every importer before anything is built.
  llmrt::Status check() const;
};

/// The slopes of ALiBi for \p heads heads: powers of 2^(-8/n) for the largest power of two n that
/// fits, and every other one of 2^(-4/n) for the rest.
std::vector<float> alibiSlopes(uint64_t heads);

} // namespace llmc

#endif // LLMC_IMPORT_COMMON_DECODERCONFIG_H
