#include "compiler/import/decoder/LlamaBuilder.h"

#include "dialects/llm/LlmDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"

#include <cmath>

using namespace mlir;
using namespace llmc;

namespace {

class StepBuilder {
public:
  StepBuilder(MLIRContext *context, const DecoderConfig &config, TensorTable &tensors,
              LlamaNames names)
      : config(config), tensors(tensors), names(names), builder(context),
        loc(UnknownLoc::get(context)) {}

  OwningOpRef<ModuleOp> build();

private:
  // Each returns a null value after a failure, which is reported; `failed` then stops the building.
  Value weight(LlamaPart part, uint64_t layer, ArrayRef<int64_t> shape);
  Value bias(LlamaPart part, uint64_t layer, int64_t size);
  Value take(const std::string &name, ArrayRef<int64_t> shape);
  Value norm(Value x, Value weight, std::optional<int64_t> group = std::nullopt);
  Value linear(Value x, LlamaPart part, uint64_t layer, int64_t outputs, bool hasBias,
               int64_t permutedHeads = 0);
  Value head(Value x);
  Value angles(Value positions);
  Value attention(Value x, uint64_t layer);
  Value mlp(Value x, uint64_t layer);

  RankedTensorType rows(int64_t columns) {
    return RankedTensorType::get({ShapedType::kDynamic, columns}, builder.getF32Type());
  }
  IntegerAttr number(int64_t value) { return builder.getI64IntegerAttr(value); }
  Location at(uint64_t layer, StringRef what) {
    return NameLoc::get(
        builder.getStringAttr("layers." + std::to_string(layer) + "." + what.str()));
  }
  DictionaryAttr modelAttributes();

  const DecoderConfig &config;
  TensorTable &tensors;
  LlamaNames names;
  OpBuilder builder;
  Location loc;
  Value ropeAngles;
  bool failed = false;
};

} // namespace

Value StepBuilder::take(const std::string &name, ArrayRef<int64_t> shape) {
  if (failed)
    return {};
  FailureOr<Value> value = tensors.take(builder, loc, name, shape);
  failed = mlir::failed(value);
  return failed ? Value() : *value;
}

Value StepBuilder::weight(LlamaPart part, uint64_t layer, ArrayRef<int64_t> shape) {
  return take(names(part, layer) + ".weight", shape);
}

Value StepBuilder::bias(LlamaPart part, uint64_t layer, int64_t size) {
  return take(names(part, layer) + ".bias", {size});
}

Value StepBuilder::norm(Value x, Value weight, std::optional<int64_t> group) {
  if (failed)
    return {};
  return llm::RmsNormOp::create(builder, loc, x.getType(), x, weight,
                                builder.getF64FloatAttr(config.normEps), /*plus_one=*/UnitAttr(),
                                group ? number(*group) : IntegerAttr());
}

Value StepBuilder::linear(Value x, LlamaPart part, uint64_t layer, int64_t outputs, bool hasBias,
                          int64_t permutedHeads) {
  if (failed)
    return {};
  Value matrix = weight(part, layer, {outputs, llm::dim(x, 1)});
  Value shift = hasBias ? bias(part, layer, outputs) : Value();
  if (failed)
    return {};
  if (permutedHeads) {
    matrix = llm::WeightUnpermuteOp::create(builder, loc, matrix.getType(), matrix,
                                            number(permutedHeads));
    if (shift)
      shift = llm::WeightUnpermuteOp::create(builder, loc, shift.getType(), shift,
                                             number(permutedHeads));
  }
  return llm::LinearOp::create(builder, loc, rows(outputs), x, matrix, shift);
}

Value StepBuilder::angles(Value positions) {
  llmrt::Result<RopeTable> table = resolveRope(config.rope);
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
      positions, frequencies, builder.getF64FloatAttr(table->scale));
}

Value StepBuilder::attention(Value x, uint64_t layer) {
  loc = at(layer, "attention");
  const int64_t heads = config.heads, kvHeads = config.kvHeads, size = config.headSize;
  const int64_t permutedQ = config.permutedHeads ? heads : 0;
  const int64_t permutedK = config.permutedHeads ? kvHeads : 0;
  Value normed = norm(x, weight(LlamaPart::AttentionNorm, layer, {(int64_t)config.hidden}));
  Value q = linear(normed, LlamaPart::Query, layer, heads * size, config.qkvBias, permutedQ);
  Value k = linear(normed, LlamaPart::Key, layer, kvHeads * size, config.qkvBias, permutedK);
  Value v = linear(normed, LlamaPart::Value, layer, kvHeads * size, config.qkvBias);
  if (config.headNorms) {
    q = norm(q, weight(LlamaPart::QueryNorm, layer, {size}), size);
    k = norm(k, weight(LlamaPart::KeyNorm, layer, {size}), size);
  }
  if (failed)
    return {};
  q = llm::RopeOp::create(builder, loc, q.getType(), q, ropeAngles, number(heads), UnitAttr());
  k = llm::RopeOp::create(builder, loc, k.getType(), k, ropeAngles, number(kvHeads), UnitAttr());
  auto kvType = llm::KvType::get(builder.getContext(), kvHeads, size, size, llm::Element::F32,
                                 /*paged=*/false);
  Value cache = llm::KvCacheOp::create(builder, loc, kvType, number(layer));
  cache = llm::KvAppendOp::create(builder, loc, kvType, cache, k, v);
  const uint64_t window = config.windows[layer];
  Value mixed = llm::AttentionOp::create(
      builder, loc, rows(heads * size), q, cache, number(heads),
      builder.getF64FloatAttr(1.0 / std::sqrt(static_cast<double>(size))),
      window ? number(window) : IntegerAttr(), /*softcap=*/FloatAttr(), /*key_tile=*/IntegerAttr(),
      /*query_tile=*/IntegerAttr());
  Value y = linear(mixed, LlamaPart::Output, layer, config.hidden, config.outputBias);
  return failed ? Value() : llm::AddOp::create(builder, loc, x.getType(), x, y);
}

Value StepBuilder::mlp(Value x, uint64_t layer) {
  loc = at(layer, "mlp");
  Value normed = norm(x, weight(LlamaPart::MlpNorm, layer, {(int64_t)config.hidden}));
  Value gate = linear(normed, LlamaPart::Gate, layer, config.intermediate, config.mlpBias);
  Value up = linear(normed, LlamaPart::Up, layer, config.intermediate, config.mlpBias);
  if (failed)
    return {};
  auto silu = llm::ActivationAttr::get(builder.getContext(), llm::Activation::Silu);
  Value product = llm::GluOp::create(builder, loc, gate.getType(), silu, gate, up);
  Value y = linear(product, LlamaPart::Down, layer, config.hidden, config.mlpBias);
  return failed ? Value() : llm::AddOp::create(builder, loc, x.getType(), x, y);
}

Value StepBuilder::head(Value x) {
  loc = NameLoc::get(builder.getStringAttr("head"));
  Value wanted = llm::GatherRowsOp::create(builder, loc, x);
  wanted = norm(wanted, weight(LlamaPart::FinalNorm, 0, {(int64_t)config.hidden}));
  const std::string name = names(LlamaPart::Head, 0) + ".weight";
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
    matrix = weight(LlamaPart::Embedding, 0, {vocabulary, hidden});
  }
  if (failed)
    return {};
  return llm::LinearOp::create(builder, loc, rows(vocabulary), wanted, matrix, Value());
}

DictionaryAttr StepBuilder::modelAttributes() {
  NamedAttrList list;
  list.set("name", builder.getStringAttr(config.name));
  list.set("architecture", builder.getStringAttr(config.architecture));
  const std::pair<StringRef, uint64_t> numbers[] = {
      {"layers", config.layers},
      {"hidden_size", config.hidden},
      {"intermediate_size", config.intermediate},
      {"heads", config.heads},
      {"kv_heads", config.kvHeads},
      {"key_size", config.headSize},
      {"value_size", config.headSize},
      {"vocab_size", config.vocabulary},
      {"max_context", config.maxContext},
      {"rotary_size", config.rope.rotarySize},
      {"sliding_window", *llvm::max_element(config.windows)}};
  for (auto [name, value] : numbers)
    list.set(name, number(static_cast<int64_t>(value)));
  list.set("rope_theta", builder.getF64FloatAttr(config.rope.theta));
  return list.getDictionary(builder.getContext());
}

OwningOpRef<ModuleOp> StepBuilder::build() {
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
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

  loc = NameLoc::get(builder.getStringAttr("embedding"));
  Value table =
      weight(LlamaPart::Embedding, 0, {(int64_t)config.vocabulary, (int64_t)config.hidden});
  ropeAngles = failed ? Value() : angles(body->getArgument(1));
  if (failed)
    return nullptr;
  Value x = llm::EmbeddingOp::create(builder, loc, rows(static_cast<int64_t>(config.hidden)),
                                     body->getArgument(0), table, llm::FormatAttr());
  for (uint64_t layer = 0; layer != config.layers && !failed; ++layer) {
    x = attention(x, layer);
    if (!failed)
      x = mlp(x, layer);
  }
  Value logits = failed ? Value() : head(x);
  loc = UnknownLoc::get(builder.getContext());
  if (failed || mlir::failed(tensors.checkAllUsed(loc, config.architecture)))
    return nullptr;
  func::ReturnOp::create(builder, loc, logits);
  if (mlir::failed(verify(*module)))
    return nullptr;
  return module;
}

OwningOpRef<ModuleOp> llmc::buildLlama(MLIRContext *context, const DecoderConfig &config,
                                       TensorTable &tensors, LlamaNames names) {
  return StepBuilder(context, config, tensors, names).build();
}
