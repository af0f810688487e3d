//===- MlpBuilder.cpp - the MLP block of a decoder layer --------------------------===//

#include "compiler/import/decoder/StepBuilder.h"

using namespace mlir;
using namespace llmc;

static_assert(static_cast<int>(MlpActivation::Silu) == static_cast<int>(llm::Activation::Silu) &&
                  static_cast<int>(MlpActivation::Gelu) ==
                      static_cast<int>(llm::Activation::Gelu) &&
                  static_cast<int>(MlpActivation::GeluTanh) ==
                      static_cast<int>(llm::Activation::GeluTanh) &&
                  static_cast<int>(MlpActivation::Relu) == static_cast<int>(llm::Activation::Relu),
              "the two enums have the same numbers");

Value StepBuilder::gatedMlp(Value x, uint64_t layer, DecoderPart gatePart, DecoderPart upPart,
                            DecoderPart downPart, int64_t size, bool hasUpBias, bool hasDownBias) {
  Value gate = linear(x, gatePart, layer, size, hasUpBias);
  Value up = linear(x, upPart, layer, size, hasUpBias);
  if (failed)
    return {};
  auto activation = llm::ActivationAttr::get(builder.getContext(),
                                             static_cast<llm::Activation>(config.mlp.activation));
  Value inner = llm::GluOp::create(builder, loc, gate.getType(), activation, gate, up);
  return linear(inner, downPart, layer, config.hidden, hasDownBias);
}

/// What the MLP adds, but for the norm after it and the multiplier.
Value StepBuilder::mlp(Value x, uint64_t layer) {
  const MlpForm &form = config.mlp;
  if (config.layers[layer].mixture)
    return mixture(x, layer);
  if (failed)
    return {};
  auto activation =
      llm::ActivationAttr::get(builder.getContext(), static_cast<llm::Activation>(form.activation));
  const int64_t size = form.intermediate;
  Value inner;
  if (form.gated) {
    Value gate, up;
    if (form.fusedGateUp) {
      Value both = linear(x, DecoderPart::GateUp, layer, 2 * size, form.upBias);
      gate = columns(both, 0, size);
      up = columns(both, size, size);
    } else {
      return gatedMlp(x, layer, DecoderPart::Gate, DecoderPart::Up, DecoderPart::Down, size,
                      form.upBias, form.downBias);
    }
    if (failed)
      return {};
    inner = llm::GluOp::create(builder, loc, gate.getType(), activation, gate, up);
  } else {
    Value up = linear(x, DecoderPart::Up, layer, size, form.upBias);
    if (failed)
      return {};
    inner = llm::ActivateOp::create(builder, loc, up.getType(), activation, up);
  }
  return linear(inner, DecoderPart::Down, layer, config.hidden, form.downBias);
}
