//===- LlmOps.cpp - keywords of the operations -------------------------------===//

#include "dialects/llm/LlmDialect.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace llmc::llm;

// An enum as a bare keyword: `as q4_1`, `glu silu`.
static ParseResult parseEncodingKeyword(OpAsmParser &parser, EncodingAttr &attr) {
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<Encoding> value = symbolizeEncoding(keyword);
  if (!value)
    return parser.emitError(loc) << "unknown encoding '" << keyword << "'";
  attr = EncodingAttr::get(parser.getContext(), *value);
  return success();
}

static void printEncodingKeyword(OpAsmPrinter &printer, Operation *, EncodingAttr attr) {
  if (attr)
    printer << stringifyEncoding(attr.getValue());
}

static ParseResult parseActivationKeyword(OpAsmParser &parser, ActivationAttr &attr) {
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<Activation> value = symbolizeActivation(keyword);
  if (!value)
    return parser.emitError(loc) << "unknown activation '" << keyword
                                 << "'; known: none, silu, gelu, gelu_tanh, relu, sigmoid";
  attr = ActivationAttr::get(parser.getContext(), *value);
  return success();
}

static void printActivationKeyword(OpAsmPrinter &printer, Operation *, ActivationAttr attr) {
  printer << stringifyActivation(attr.getValue());
}

static ParseResult parseScoringKeyword(OpAsmParser &parser, ScoringAttr &attr) {
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<Scoring> value = symbolizeScoring(keyword);
  if (!value)
    return parser.emitError(loc) << "unknown scoring '" << keyword
                                 << "'; known: softmax, sigmoid, softmax_chosen";
  attr = ScoringAttr::get(parser.getContext(), *value);
  return success();
}

static void printScoringKeyword(OpAsmPrinter &printer, Operation *, ScoringAttr attr) {
  printer << stringifyScoring(attr.getValue());
}

#define GET_OP_CLASSES
#include "dialects/llm/LlmOps.cpp.inc"
