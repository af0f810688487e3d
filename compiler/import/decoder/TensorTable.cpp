#include "compiler/import/decoder/TensorTable.h"

#include "dialects/llm/LlmDialect.h"

using namespace mlir;
using namespace llmc;

static_assert(static_cast<int>(WeightEncoding::Q6_K) == static_cast<int>(llm::Encoding::Q6_K) &&
                  static_cast<int>(WeightEncoding::BF16) == static_cast<int>(llm::Encoding::BF16) &&
                  static_cast<int>(WeightEncoding::F64) == static_cast<int>(llm::Encoding::F64) &&
                  static_cast<int>(WeightEncoding::MXFP4) ==
                      static_cast<int>(llm::Encoding::MXFP4) &&
                  static_cast<int>(WeightEncoding::FP8) == static_cast<int>(llm::Encoding::FP8) &&
                  static_cast<int>(WeightEncoding::IQ3_S) == static_cast<int>(llm::Encoding::IQ3_S),
              "the two enums have the same numbers");

static std::string shapeText(ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (auto [i, size] : llvm::enumerate(shape))
    text += (i ? ", " : "") + std::to_string(size);
  return text + "]";
}

void TensorTable::add(TensorEntry entry) {
  index.try_emplace(entry.name, slots.size());
  slots.push_back({std::move(entry), false, Value()});
}

FailureOr<Value> TensorTable::take(OpBuilder &builder, Location loc, StringRef name,
                                   ArrayRef<int64_t> shape) {
  auto found = index.find(name);
  if (found == index.end()) {
    emitError(loc) << "tensor '" << name << "' of shape " << shapeText(shape) << " is missing";
    return failure();
  }
  Slot &slot = slots[found->second];
  const TensorEntry &entry = slot.entry;
  if (!entry.unsupported.empty()) {
    emitError(loc) << entry.unsupported;
    return failure();
  }
  if (ArrayRef<int64_t>(entry.shape) != shape) {
    emitError(loc) << "tensor '" << name << "' has the shape " << shapeText(entry.shape)
                   << "; the configuration needs " << shapeText(shape);
    return failure();
  }
  slot.used = true;
  MLIRContext *context = builder.getContext();
  auto type = RankedTensorType::get(shape, builder.getF32Type());
  auto source = llm::SourceAttr::get(context, entry.file, entry.offset, entry.size);
  if (!slot.value && entry.parts.empty())
    slot.value = llm::WeightOp::create(builder, loc, type, name, source,
                                       static_cast<llm::Encoding>(entry.encoding));
  if (!slot.value) {
    SmallVector<Attribute> sources = {source};
    for (const TensorEntry::Part &part : entry.parts)
      sources.push_back(llm::SourceAttr::get(context, part.file, part.offset, part.size));
    auto encodingOf = [&](WeightEncoding encoding) {
      return llm::EncodingAttr::get(context, static_cast<llm::Encoding>(encoding));
    };
    slot.value = llm::WeightOp::create(
        builder, loc, type, builder.getStringAttr(name), builder.getArrayAttr(sources),
        encodingOf(entry.encoding), builder.getI64IntegerAttr(entry.block),
        encodingOf(entry.scaleEncoding), builder.getI64IntegerAttr(entry.bits), UnitAttr(),
        UnitAttr(), entry.scaleOffset ? builder.getF32FloatAttr(entry.scaleOffset) : FloatAttr());
  }
  return slot.value;
}

void TensorTable::ignore(StringRef name) {
  if (auto found = index.find(name); found != index.end())
    slots[found->second].used = true;
}

void TensorTable::ignoreIf(llvm::function_ref<bool(StringRef)> isKnown) {
  for (Slot &slot : slots)
    if (isKnown(slot.entry.name))
      slot.used = true;
}

LogicalResult TensorTable::checkAllUsed(Location loc, StringRef architecture) const {
  std::string names;
  size_t count = 0;
  for (const Slot &slot : slots)
    if (!slot.used && ++count <= 5)
      names += (names.empty() ? "'" : ", '") + slot.entry.name + "'";
  if (count == 0)
    return success();
  return emitError(loc) << count << " tensors are not part of a model of architecture '"
                        << architecture << "': " << names << (count > 5 ? ", ..." : "");
}
