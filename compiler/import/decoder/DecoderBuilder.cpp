//===- DecoderBuilder.cpp - from tokens to logits ----------------------------------===//

#include "compiler/import/decoder/StepBuilder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace llmc;

Value StepBuilder::take(const std::string &name, ArrayRef<int64_t> shape) {
  if (failed)
    return {};
  FailureOr<Value> value = tensors.take(builder, loc, name, shape);
  failed = mlir::failed(value);
  return failed ? Value() : *value;
}

Value StepBuilder::weight(DecoderPart part, uint64_t layer, ArrayRef<int64_t> shape) {
  return take(names.of(part, layer) + ".weight", shape);
}

Value StepBuilder::bias(DecoderPart part, uint64_t layer, int64_t size) {
  return take(names.of(part, layer) + ".bias", {size});
}

Value StepBuilder::norm(Value x, DecoderPart part, uint64_t layer) {
  if (failed)
    return {};
  const NormForm &form = config.norm;
  const int64_t size = llm::dim(x, 1);
  Value factor = weight(part, layer, {size});
  Value shift = form.bias ? bias(part, layer, size) : Value();
  if (failed)
    return {};
  if (form.kind == NormForm::Kind::Layer)
    return llm::LayerNormOp::create(builder, loc, x.getType(), x, factor, shift, real(form.eps));
  return llm::RmsNormOp::create(builder, loc, x.getType(), x, factor, real(form.eps),
                                form.plusOne ? builder.getUnitAttr() : UnitAttr(), IntegerAttr());
}

Value StepBuilder::matrix(DecoderPart part, uint64_t layer, int64_t outputs, int64_t inputs) {
  if (!config.transposedProjections)
    return weight(part, layer, {outputs, inputs});
  Value stored = weight(part, layer, {inputs, outputs});
  return failed ? Value()
                : llm::WeightTransposeOp::create(
                      builder, loc, RankedTensorType::get({outputs, inputs}, builder.getF32Type()),
                      stored)
                      .getResult();
}

Value StepBuilder::linear(Value x, DecoderPart part, uint64_t layer, int64_t outputs,
                          bool hasBias) {
  if (failed)
    return {};
  Value w = matrix(part, layer, outputs, llm::dim(x, 1));
  Value shift = hasBias ? bias(part, layer, outputs) : Value();
  return failed ? Value()
                : llm::LinearOp::create(builder, loc, rows(outputs), x, w, shift).getResult();
}

Value StepBuilder::columns(Value x, int64_t offset, int64_t count) {
  return failed ? Value()
                : llm::ColumnsOp::create(builder, loc, rows(count), x, number(offset)).getResult();
}

Value StepBuilder::scale(Value x, double factor) {
  return failed || factor == 1 ? x
                               : llm::ScaleOp::create(builder, loc, x.getType(), x, real(factor));
}

Value StepBuilder::add(Value a, Value b) {
  return failed ? Value() : llm::AddOp::create(builder, loc, a.getType(), a, b).getResult();
}

Value StepBuilder::angles(const RopeParameters &rope, RopeContext context) {
  llmrt::Result<RopeTable> table = resolveRope(rope, context);
  if (!table) {
    emitError(loc) << table.status().message();
    failed = true;
    return {};
  }
  const int64_t pairs = static_cast<int64_t>(table->frequencies.size());
  auto values = DenseElementsAttr::get(RankedTensorType::get({pairs}, builder.getF32Type()),
                                       ArrayRef<float>(table->frequencies));
  Value frequencies = llm::WeightConstantOp::create(builder, loc, values.getType(), values);
  return llm::RopeAnglesOp::create(
      builder, loc, RankedTensorType::get({ShapedType::kDynamic, 2, pairs}, builder.getF32Type()),
      positions, frequencies, real(table->scale));
}

Value StepBuilder::angles(size_t index) {
  if (ropeAngles[index])
    return ropeAngles[index];
  const RopeParameters &rope = config.ropes[index];
  Value result = angles(rope, RopeContext::Short);
  if (rope.hasLongContexts && result)
    if (Value other = angles(rope, RopeContext::Long))
      result = llm::RopeSelectOp::create(builder, loc, result.getType(), result, other);
  return ropeAngles[index] = result;
}

Value StepBuilder::embed(Value tokens, Value positions) {
  loc = NameLoc::get(builder.getStringAttr("embedding"));
  const int64_t hidden = config.hidden;
  Value table = weight(DecoderPart::Embedding, 0, {(int64_t)config.vocabulary, hidden});
  Value places;
  if (config.learnedPositions)
    places = weight(DecoderPart::PositionEmbedding, 0, {(int64_t)config.learnedPositions, hidden});
  if (failed)
    return {};
  Value x = llm::EmbeddingOp::create(builder, loc, rows(hidden), tokens, table, llm::FormatAttr());
  x = scale(x, config.embeddingScale);
  if (places)
    x = add(x, llm::EmbeddingOp::create(builder, loc, rows(hidden), positions, places,
                                        llm::FormatAttr()));
  return config.embeddingNorm ? norm(x, DecoderPart::EmbeddingNorm, 0) : x;
}

Value StepBuilder::layer(Value x, uint64_t index) {
  const bool before = config.normPlace != NormPlace::After;
  const bool after = config.normPlace != NormPlace::Before;
  const auto normedBefore = [&](Value input, DecoderPart part) {
    return before ? norm(input, part, index) : input;
  };
  const auto adjusted = [&](Value output, DecoderPart part) {
    if (after && !failed)
      output = norm(output, part, index);
    return scale(output, config.residualScale);
  };
  setLocation(index, "attention");
  Value normed = normedBefore(x, DecoderPart::AttentionNorm);
  Value attended = adjusted(attention(normed, index), DecoderPart::AttentionPostNorm);
  if (failed)
    return {};
  if (config.residual == ResidualForm::Sequential) {
    x = add(x, attended);
    setLocation(index, "mlp");
    normed = normedBefore(x, DecoderPart::MlpNorm);
    return add(x, adjusted(mlp(normed, index), DecoderPart::MlpPostNorm));
  }
  setLocation(index, "mlp");
  if (config.residual == ResidualForm::Parallel)
    normed = normedBefore(x, DecoderPart::MlpNorm);
  return add(add(adjusted(mlp(normed, index), DecoderPart::MlpPostNorm), attended), x);
}

Value StepBuilder::head(Value x) {
  loc = NameLoc::get(builder.getStringAttr("head"));
  Value wanted = llm::GatherRowsOp::create(builder, loc, x);
  wanted = norm(wanted, DecoderPart::FinalNorm, 0);
  const std::string name = names.of(DecoderPart::Head, 0) + ".weight";
  Value matrix;
  const int64_t vocabulary = config.vocabulary, hidden = config.hidden;
  if (!config.tiedHead) {
    matrix = take(name, {vocabulary, hidden});
  } else {
    if (tensors.has(name)) {
      emitRemark(loc) << "tensor '" << name
                      << "' is ignored: the configuration ties the head to the embedding";
      tensors.ignore(name);
    }
    matrix = weight(DecoderPart::Embedding, 0, {vocabulary, hidden});
  }
  Value shift = config.headBias ? bias(DecoderPart::Head, 0, vocabulary) : Value();
  if (failed)
    return {};
  Value logits = llm::LinearOp::create(builder, loc, rows(vocabulary), wanted, matrix, shift);
  logits = scale(logits, config.logitScale);
  if (config.logitSoftcap > 0)
    logits =
        llm::SoftcapOp::create(builder, loc, logits.getType(), logits, real(config.logitSoftcap));
  return logits;
}

DictionaryAttr StepBuilder::modelAttributes() {
  NamedAttrList list;
  list.set("name", builder.getStringAttr(config.name));
  list.set("architecture", builder.getStringAttr(config.architecture));
  uint64_t window = 0;
  for (const DecoderLayer &layer : config.layers)
    window = std::max(window, layer.window);
  const std::pair<StringRef, uint64_t> numbers[] = {
      {"layers", config.layers.size()},
      {"hidden_size", config.hidden},
      {"intermediate_size", config.mlp.intermediate},
      {"heads", config.attention.heads},
      {"kv_heads", config.attention.latent.rank ? 1 : config.attention.kvHeads}, // of the cache
      {"key_size", config.attention.headSize},
      {"value_size", config.attention.latent.rank ? config.attention.latent.valueSize
                                                  : config.attention.headSize},
      {"vocab_size", config.vocabulary},
      {"max_context", config.maxContext},
      {"rotary_size", config.ropes.empty() ? 0 : config.ropes.front().rotarySize},
      {"sliding_window", window}};
  for (auto [name, value] : numbers)
    list.set(name, number(static_cast<int64_t>(value)));
  for (const RopeParameters &rope : config.ropes)
    if (rope.hasLongContexts)
      list.set("rope_original_context", number(static_cast<int64_t>(rope.originalContext)));
  list.set("rope_theta", real(config.ropes.empty() ? 0 : config.ropes.front().theta));
  return list.getDictionary(builder.getContext());
}

OwningOpRef<ModuleOp> StepBuilder::build() {
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder, loc);
  SmallVector<Attribute> files;
  for (const std::string &file : tensors.files)
    files.push_back(builder.getStringAttr(file));
  (*module)->setAttr(llm::kFilesAttr, builder.getArrayAttr(files));
  (*module)->setAttr(llm::kModelAttr, modelAttributes());

  builder.setInsertionPointToEnd(module->getBody());
  auto ids = RankedTensorType::get({ShapedType::kDynamic}, builder.getI32Type());
  auto step = func::FuncOp::create(
      builder, loc, llm::kStepFunction,
      builder.getFunctionType({ids, ids}, {rows(static_cast<int64_t>(config.vocabulary))}));
  Block *body = step.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  positions = body->getArgument(1);
  ropeAngles.resize(config.ropes.size());

  Value x = embed(body->getArgument(0), positions);
  for (uint64_t index = 0; index != config.layers.size() && !failed; ++index)
    x = layer(x, index);
  Value logits = failed ? Value() : head(x);
  loc = UnknownLoc::get(builder.getContext());
  if (failed || mlir::failed(tensors.checkAllUsed(loc, config.architecture)))
    return nullptr;
  func::ReturnOp::create(builder, loc, logits);
  if (mlir::failed(verify(*module)))
    return nullptr;
  return module;
}

OwningOpRef<ModuleOp> llmc::buildDecoder(MLIRContext *context, const DecoderConfig &config,
                                         TensorTable &tensors, const DecoderNames &names) {
  return StepBuilder(context, config, tensors, names).build();
}
