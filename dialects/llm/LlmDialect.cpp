//===- LlmDialect.cpp - types, attributes and registration -------------------===//

#include "dialects/llm/LlmDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llmc::llm;

#include "dialects/llm/LlmDialect.cpp.inc"
#include "dialects/llm/LlmEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/llm/LlmAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/llm/LlmTypes.cpp.inc"

void LlmDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/llm/LlmOps.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/llm/LlmTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/llm/LlmAttrs.cpp.inc"
      >();
}

Operation *LlmDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type,
                                           Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return WeightConstantOp::create(builder, loc, type, elements);
}

LogicalResult LlmDialect::verifyOperationAttribute(Operation *op, NamedAttribute attr) {
  StringRef name = attr.getName();
  if (name == kFilesAttr) {
    auto files = dyn_cast<ArrayAttr>(attr.getValue());
    if (!files || !llvm::all_of(files, [](Attribute a) { return isa<StringAttr>(a); }))
      return op->emitOpError() << "'" << name << "' must be an array of file names";
    return success();
  }
  if (name == kModelAttr) {
    if (!isa<DictionaryAttr>(attr.getValue()))
      return op->emitOpError() << "'" << name << "' must be a dictionary";
    return success();
  }
  return op->emitOpError() << "has an unknown attribute of the llm dialect, '" << name << "'";
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

LogicalResult SourceAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t file,
                                 int64_t offset, int64_t size) {
  if (file < 0 || offset < 0 || size < 0)
    return emitError() << "a source's file, offset and size must not be negative";
  return success();
}

LogicalResult FormatAttr::verify(function_ref<InFlightDiagnostic()> emitError, Element element,
                                 int64_t group, Element scale, bool hasMin) {
  const bool isE2m1 = element == Element::E2M1;
  bool integer = element == Element::I8 || element == Element::I4 || isE2m1;
  if (element == Element::E8M0)
    return emitError() << "e8m0 is for the scales of e2m1";
  if (!integer && (group != 0 || hasMin))
    return emitError() << "a format of float elements has neither groups nor minimums";
  if (integer && (group < 16 || group > 4096 || group % 16 != 0))
    return emitError() << "group must be a multiple of 16 from 16 to 4096, got " << group;
  if (isE2m1 != (scale == Element::E8M0) || (isE2m1 && hasMin))
    return emitError() << "e2m1 has scales of e8m0, which nothing else has, and no minimums";
  if (!isE2m1 && scale != Element::F32 && scale != Element::F16)
    return emitError() << "scales are stored as f32 or f16";
  return success();
}

void FormatAttr::print(AsmPrinter &printer) const {
  printer << "<" << stringifyElement(getElement());
  if (isInteger()) {
    printer << ", group = " << getGroup() << ", scale = " << stringifyElement(getScale());
    if (getHasMin())
      printer << ", min";
  }
  printer << ">";
}

static ParseResult parseElement(AsmParser &parser, Element &element) {
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<Element> parsed = symbolizeElement(keyword);
  if (!parsed)
    return parser.emitError(loc) << "unknown element '" << keyword
                                 << "'; known: f32, f16, bf16, i8, i4, e2m1, e8m0";
  element = *parsed;
  return success();
}

Attribute FormatAttr::parse(AsmParser &parser, Type) {
  Element element = Element::F32, scale = Element::F32;
  int64_t group = 0;
  bool hasMin = false;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parseElement(parser, element))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    StringRef key;
    if (parser.parseKeyword(&key))
      return {};
    if (key == "min") {
      hasMin = true;
      continue;
    }
    if (parser.parseEqual())
      return {};
    if (key == "group") {
      if (parser.parseInteger(group))
        return {};
    } else if (key == "scale") {
      if (parseElement(parser, scale))
        return {};
    } else {
      parser.emitError(loc) << "unknown key '" << key << "'; known: group, scale, min";
      return {};
    }
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<FormatAttr>(loc, parser.getContext(), element, group, scale, hasMin);
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

LogicalResult KvType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t heads,
                             int64_t keySize, int64_t valueSize, Element element, bool,
                             bool latent) {
  if (heads < 1 || keySize < 1 || valueSize < 1)
    return emitError() << "a cache needs at least one head and head sizes of at least 1";
  if (latent && valueSize > keySize)
    return emitError() << "a latent cache reads its values out of the keys: value size "
                       << valueSize << " is above key size " << keySize;
  if (latent && element == Element::I8)
    return emitError() << "a latent cache of i8 is not supported; supported: f32, f16, bf16";
  if (element == Element::I4 || element == Element::E2M1 || element == Element::E8M0)
    return emitError() << "a cache of " << stringifyElement(element)
                       << " is not supported; supported: f32, f16, bf16, i8";
  return success();
}

int64_t KvType::getBytesPerToken() const {
  const bool isInt8 = getElement() == Element::I8;
  const int64_t element = isInt8 ? 1 : getElement() == Element::F32 ? 4 : 2;
  const int64_t values = getLatent() ? 0 : getValueSize();
  return getHeads() * ((getKeySize() + values) * element + (isInt8 ? 8 : 0));
}

void KvType::print(AsmPrinter &printer) const {
  printer << "<" << getHeads() << " x " << getKeySize() << " x " << getValueSize() << " x "
          << stringifyElement(getElement()) << (getLatent() ? ", latent" : "")
          << (getPaged() ? ", paged>" : ">");
}

Type KvType::parse(AsmParser &parser) {
  int64_t heads, keySize, valueSize;
  Element element;
  bool paged = false, latent = false;
  SMLoc loc = parser.getCurrentLocation();
  auto x = [&] { return parser.parseKeyword("x"); };
  if (parser.parseLess() || parser.parseInteger(heads) || x() || parser.parseInteger(keySize) ||
      x() || parser.parseInteger(valueSize) || x() || parseElement(parser, element))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    StringRef word;
    SMLoc at = parser.getCurrentLocation();
    if (parser.parseKeyword(&word))
      return {};
    if (word != "paged" && word != "latent") {
      parser.emitError(at) << "unknown layout '" << word << "'; known: latent, paged";
      return {};
    }
    (word == "paged" ? paged : latent) = true;
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<KvType>(loc, parser.getContext(), heads, keySize, valueSize, element,
                                   paged, latent);
}

LogicalResult Q8Type::verify(function_ref<InFlightDiagnostic()> emitError, int64_t group) {
  if (group != 16 && group != 32)
    return emitError() << "activations are quantized in groups of 16 or 32, got " << group;
  return success();
}
