//===- Step.h - The state of llmc-raise-step ----------------------*- C++ -*-===//
//
// The body of `@main` is read once, in order. Each value becomes a Lifted: rows of the llm dialect
// seen through axes, a cache with the step's rows appended, the tokens, or nothing with a reason.
// Reasons travel with the values and are reported only if an output needs one, so the first thing
// that could not be understood is what the user reads.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_PASSES_RAISE_STEP_H
#define LLMC_COMPILER_PASSES_RAISE_STEP_H

#include "compiler/passes/raise/MixtureMatch.h"
#include "compiler/passes/raise/StepAxes.h"
#include "dialects/llm/Blocks.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>
#include <string>

namespace llmc::raise {

struct Lifted {
  /// Pair: rows of which each head's rest is `tail`. Rotated: the rotation, by `angles`, of a part
  /// of each head of `rows` that no operation of the llm dialect rotates by itself.
  enum Kind { Unknown, Tokens, Rows, Cache, Pair, Rotated };
  Kind kind = Unknown;
  /// Rows: tensor<?xFxf32> of which this is a view from column `offset` on. Cache: the rows
  /// appended to it.
  mlir::Value rows;
  int64_t offset = 0;
  Axes axes;
  std::shared_ptr<Lifted> tail; ///< Pair, or a Cache of pairs.
  mlir::Value angles;           ///< Rotated.
  bool interleaved = false;     ///< Rotated.
  int64_t layer = -1;           ///< Cache: which.
  bool isKey = false;           ///< Cache: keys or values.
  bool isLast = false; ///< Only the last new token of each sequence, of which logits are asked.

  // Unknown: the operation that could not be understood, and why.
  mlir::Operation *culprit = nullptr;
  std::string reason = "it takes a value that is not computed from the tokens";
};

/// What a mask lets a query see.
struct MaskMeaning {
  std::optional<int64_t> window; ///< Keys a query sees at most, itself included.
  /// ALiBi: what a key one further to the left loses, one number for each head (or for all).
  std::vector<float> slopes;
  std::string problem; ///< Not empty: the mask is neither causal nor causal with a window.
};

/// Reads a mask's meaning off its values; `mask` is null for none. `isCausal` adds the causal rule
/// of graph.attention.
MaskMeaning readMask(SampleEvaluation &samples, mlir::Value mask, bool isCausal);

class Step {
public:
  Step(mlir::ModuleOp module, mlir::func::FuncOp main, SampleEvaluation &samples);

  /// Writes `@step` and removes `@main`; failure after a diagnostic.
  mlir::LogicalResult run();

private:
  // The walk (RaiseStep.cpp).
  void lift(mlir::Operation *op);
  /// Batch and sequence of the token ids must be dynamic, or the batch 1.
  mlir::LogicalResult checkSizes();
  mlir::LogicalResult finish();
  mlir::LogicalResult report(const Lifted &what, llvm::StringRef output);
  mlir::DictionaryAttr modelAttributes(int64_t vocabulary);
  Lifted fail(mlir::Operation *op, const llvm::Twine &reason);
  /// The reference stays valid when others are added.
  Lifted &of(mlir::Value value) {
    auto &place = values[value];
    if (!place)
      place = std::make_unique<Lifted>();
    return *place;
  }
  /// All operands' lifted values are needed: the first that is unknown, or null.
  const Lifted *firstUnknown(mlir::ValueRange operands);
  std::optional<llvm::SmallVector<Shape>> shapesOf(mlir::Value value) const;

  // Views (StepViews.cpp).
  Lifted liftView(mlir::Operation *op, mlir::Value x);
  Lifted liftTranspose(graph::TransposeOp op);
  Lifted liftExpand(graph::ExpandOp op);
  Lifted liftSlice(graph::SliceOp op);
  Lifted liftSplit(graph::SplitOp op, unsigned index);
  /// Elements [start, start + count) of a dimension; what is wrong, or nothing.
  std::string cut(Lifted &lifted, size_t dim, int64_t start, int64_t count);

  // Embeddings, caches, norms (StepValues.cpp).
  Lifted liftGather(graph::GatherOp op);
  Lifted liftPick(graph::GatherOp op, int64_t axis);
  Lifted liftConcat(graph::ConcatOp op);
  Lifted liftNorm(mlir::Operation *op, mlir::Value x, mlir::Value scale, mlir::Value bias,
                  int64_t axis, double epsilon);

  // Linear layers and element by element (StepLinear.cpp).
  Lifted liftUnary(graph::UnaryOp op);
  Lifted liftBinary(graph::BinaryOp op);
  Lifted liftLinear(mlir::Operation *op, mlir::Value x, mlir::Value weight, mlir::Value bias);
  Lifted liftMatMul(graph::MatMulOp op);
  Lifted liftGemm(graph::GemmOp op);
  Lifted addBias(graph::BinaryOp op, Lifted x, mlir::Value bias);

  /// Rows whose columns are exactly the view's features, contiguous and in the view's order; null
  /// (with a reason in `problem`) if the features are not contiguous and not reorderable.
  mlir::Value materialize(Lifted &view, std::string &problem);
  /// As materialize, for an operand whose last dimension must hold all features and whose others
  /// are tokens.
  mlir::Value tokenRows(Lifted &view, std::string &problem);
  Lifted rowsLike(const Axes &axes, mlir::Value rows);

  // Rotary embedding (StepRotary.cpp).
  Lifted liftRotary(graph::RotaryEmbeddingOp op);
  mlir::Value rotate(mlir::Operation *op, mlir::Value rows, mlir::Value angles, int64_t heads,
                     bool isInterleaved);
  mlir::Value angles(mlir::Operation *op, mlir::Value cos, mlir::Value sin, mlir::Value positions,
                     int64_t rotary, bool isInterleaved, std::string &problem);
  mlir::Value anglesFromTables(mlir::Operation *op, mlir::Value cos, mlir::Value sin,
                               int64_t rotary, std::string &problem);
  /// Tables that an If chooses by the length of the context: longrope.
  mlir::Value anglesByLength(mlir::Operation *op, mlir::Value cos, mlir::Value sin, int64_t rotary,
                             std::string &problem);
  /// The most tokens for which \p condition chooses the other than \p longBranch.
  std::optional<int64_t> lengthLimit(mlir::Value condition, unsigned &longBranch);
  /// Columns of a table of cosines; 0: it is no matrix.
  static int64_t tableColumns(mlir::Value table);
  mlir::Value anglesFromFrequencies(mlir::Operation *op, mlir::Value cos, mlir::Value sin,
                                    int64_t rotary, bool isInterleaved, std::string &problem);
  /// Whether an integer value is each token's position plus a constant, which is returned.
  std::optional<int64_t> positionOffset(mlir::Value value);

  // Mixtures of experts (StepMixture.cpp).
  /// Rows where `sum` is the result of a mixture; else unknown without a culprit.
  Lifted liftMixture(mlir::Operation *op, mlir::Value sum);
  /// A matrix [out, in] of the llm dialect, or a bias [out].
  mlir::Value projection(const ProductMatch &product, std::string &problem);
  mlir::Value projectionBias(const ProductMatch &product, std::string &problem);
  bool expertWeights(const MixtureMatch &mixture,
                     llvm::SmallVectorImpl<llm::ExpertWeights> &experts, std::string &problem);
  /// A column that weights rows: the shared expert's gate.
  std::optional<Lifted> liftRowWeight(graph::BinaryOp op, Lifted &a, Lifted &b);

  // Latent attention (StepLatent.cpp).
  std::optional<Lifted> liftPartRotation(graph::RotaryEmbeddingOp op, const Lifted &x);
  std::optional<Lifted> liftPair(const Lifted &first, const Lifted &second, int64_t axis);
  Lifted liftLatentAttention(graph::AttentionOp op, Lifted &q, Lifted &k, Lifted &v);
  struct Rotation {
    mlir::Value rows, angles; ///< what is rotated, [T, heads * size]
    bool interleaved = false;
  };
  std::optional<Rotation> rotationOf(Lifted tail, std::string &problem);

  // Attention (StepAttention.cpp).
  Lifted liftAttention(graph::AttentionOp op);
  Lifted liftGroupQueryAttention(graph::GroupQueryAttentionOp op);
  struct Projection {
    mlir::Value rows; ///< [T, heads * size]
    int64_t heads = 1, size = 0, repeat = 1, layer = -1;
  };
  std::optional<Projection> readProjection(Lifted &value, int64_t headsIfFolded, AxisKind sequence,
                                           std::string &problem);
  mlir::Value attend(mlir::Operation *op, const Projection &q, const Projection &k,
                     const Projection &v, double scale, double softcap, const MaskMeaning &mask,
                     std::string &problem, mlir::Value sinks = mlir::Value());
  Lifted cacheOf(mlir::Value rows, int64_t layer, bool isKey, int64_t heads, int64_t size);

  // Weights (StepWeights.cpp).
  mlir::Value weight(mlir::Value value, llvm::StringRef nameHint, std::string &problem);
  mlir::Value weightOf(graph::WeightOp op, llvm::StringRef nameHint, std::string &problem);
  mlir::Value dequantized(graph::DequantizeOp op, llvm::StringRef nameHint, std::string &problem);
  /// \p op is a MatMulNBitsOp, whose matrix this is, or a DequantizeNBitsOp.
  template <typename Op>
  mlir::Value nbits(Op op, mlir::Value data, int64_t rows, int64_t columns, std::string &problem);
  mlir::Value nbits(graph::MatMulNBitsOp op, std::string &problem);
  mlir::Value nbits(graph::DequantizeNBitsOp op, std::string &problem);
  mlir::Value weightConstant(const HostArray &array, mlir::Location loc);
  llm::SourceAttr source(graph::WeightOp op);

  mlir::ModuleOp module;
  mlir::func::FuncOp main;
  SampleEvaluation &samples;
  mlir::OpBuilder builder;
  mlir::func::FuncOp step;
  mlir::Value tokens, positions;
  AxisGroup batch; ///< [Batch], or nothing in a graph for one sequence.

  llvm::DenseMap<mlir::Value, std::unique_ptr<Lifted>> values;
  llvm::DenseMap<mlir::Value, mlir::Value> weights; ///< By graph value.
  std::map<std::pair<int64_t, int64_t>, mlir::Value>
      weightsByPlace; ///< By file and offset: tied weights are one.
  /// By rows, offset, and sizes and strides of the features: a view that is asked for twice is made
  /// once.
  std::map<std::pair<const void *, std::vector<int64_t>>, mlir::Value> materialized;
  llvm::SmallVector<mlir::Attribute> files;
  std::map<std::string, int64_t> fileIndex;
  llvm::MapVector<std::pair<mlir::Value, mlir::Value>, mlir::Value> tableAngles,
      selectedAngles; ///< By cosines and sines; by the angles of short and of long contexts.
  llvm::DenseMap<mlir::Attribute, mlir::Value> frequencyAngles;
  /// What the rows of a rotation were a view of: rows and offset, to know the part of a head that
  /// is not rotated.
  llvm::DenseMap<mlir::Value, std::pair<mlir::Value, int64_t>> ropeOrigins;

  /// What the attention of each layer was, for the model's attributes and for what is written back.
  struct Layer {
    int64_t heads = 0, kvHeads = 0, keySize = 0, valueSize = 0;
    std::optional<int64_t> window;
    mlir::Value appended; ///< !llm.kv
  };
  std::map<int64_t, Layer> layers;
  int64_t hiddenSize = 0, intermediateSize = 0, rotarySize = 0, tableRows = 0, originalContext = 0;
  double ropeTheta = 0;
};

/// The name of a weight that the exporter called onnx::MatMul_123, from the node that uses it.
std::string readableName(llvm::StringRef weight, llvm::StringRef node);

} // namespace llmc::raise

#endif
