//===- StepBuilder.h - the step of a decoder while it is built --------------------===//
//
// One class in several files: DecoderBuilder.cpp has the way from tokens to logits,
// AttentionBuilder.cpp and MlpBuilder.cpp the blocks of a layer. Every function that makes values
// returns null after a failure, which is reported; `failed` then stops the building.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_IMPORT_DECODER_STEPBUILDER_H
#define LLMC_IMPORT_DECODER_STEPBUILDER_H

#include "compiler/import/decoder/DecoderBuilder.h"
#include "dialects/llm/Blocks.h"

namespace llmc {

class StepBuilder {
public:
  StepBuilder(mlir::MLIRContext *context, const DecoderConfig &config, TensorTable &tensors,
              const DecoderNames &names)
      : config(config), tensors(tensors), names(names), builder(context),
        loc(mlir::UnknownLoc::get(context)) {}

  mlir::OwningOpRef<mlir::ModuleOp> build();

private:
  using Value = mlir::Value;

  // From tokens to logits (DecoderBuilder.cpp).
  Value embed(Value tokens, Value positions);
  Value layer(Value x, uint64_t layer);
  Value head(Value x);
  mlir::DictionaryAttr modelAttributes();

  // Tensors, and what all blocks are made of (DecoderBuilder.cpp).
  Value weight(DecoderPart part, uint64_t layer, llvm::ArrayRef<int64_t> shape);
  Value bias(DecoderPart part, uint64_t layer, int64_t size);
  Value take(const std::string &name, llvm::ArrayRef<int64_t> shape);
  Value norm(Value x, DecoderPart part, uint64_t layer);
  /// The matrix [outputs, inputs] of a projection, whichever way round the file has it.
  Value matrix(DecoderPart part, uint64_t layer, int64_t outputs, int64_t inputs);
  Value linear(Value x, DecoderPart part, uint64_t layer, int64_t outputs, bool hasBias);
  Value columns(Value x, int64_t offset, int64_t count);
  Value scale(Value x, double factor);
  Value add(Value a, Value b);
  /// Cosines and sines of rope \p index, made once.
  Value angles(size_t index);
  Value angles(const RopeParameters &rope, RopeContext context);

  // Attention (AttentionBuilder.cpp).
  struct Qkv {
    Value q, k, v; ///< [T, H * d], [T, G * d], [T, G * d]
  };
  Value attention(Value x, uint64_t layer);
  Qkv projectQkv(Value x, uint64_t layer);
  Qkv projectGrouped(Value x, uint64_t layer);
  Value unpermuted(Value weight, int64_t heads);
  Value headNorm(Value x, DecoderPart part, uint64_t layer);

  // Latent attention (LatentBuilder.cpp).
  Value latentAttention(Value x, uint64_t layer);
  Value rmsNorm(Value x, DecoderPart part, uint64_t layer);

  // MLP (MlpBuilder.cpp).
  Value mlp(Value x, uint64_t layer);
  /// down(activation(gate(x)) * up(x)) of \p size inner values.
  Value gatedMlp(Value x, uint64_t layer, DecoderPart gate, DecoderPart up, DecoderPart down,
                 int64_t size, bool hasUpBias, bool hasDownBias);

  // Mixtures of experts (MixtureBuilder.cpp).
  Value mixture(Value x, uint64_t layer);
  std::vector<llm::ExpertWeights> experts(uint64_t layer, int64_t hidden);

  mlir::RankedTensorType rows(int64_t columns) {
    return mlir::RankedTensorType::get({mlir::ShapedType::kDynamic, columns}, builder.getF32Type());
  }
  mlir::IntegerAttr number(int64_t value) { return builder.getI64IntegerAttr(value); }
  mlir::FloatAttr real(double value) { return builder.getF64FloatAttr(value); }
  void setLocation(uint64_t layer, llvm::StringRef what) {
    loc = mlir::NameLoc::get(
        builder.getStringAttr("layers." + std::to_string(layer) + "." + what.str()));
  }

  const DecoderConfig &config;
  TensorTable &tensors;
  const DecoderNames &names;
  mlir::OpBuilder builder;
  mlir::Location loc;
  Value positions;
  std::vector<Value> ropeAngles; ///< by rope; null until a layer asks
  bool failed = false;
};

} // namespace llmc

#endif // LLMC_IMPORT_DECODER_STEPBUILDER_H
