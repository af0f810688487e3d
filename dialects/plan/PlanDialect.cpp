//===- PlanDialect.cpp - attributes, verifiers and registration ---------------===//

#include "dialects/plan/PlanDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llmc::plan;

#include "dialects/plan/PlanDialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/plan/PlanAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/plan/PlanTypes.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/plan/PlanOps.cpp.inc"

void PlanDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/plan/PlanOps.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/plan/PlanTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/plan/PlanAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// AffineAttr: 64 + 2304 T + 8 R
//===----------------------------------------------------------------------===//

LogicalResult AffineAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t constant,
                                 int64_t perToken, int64_t perSequence, int64_t perRow,
                                 int64_t perTile) {
  for (int64_t value : {constant, perToken, perSequence, perRow, perTile})
    if (value < 0)
      return emitError() << "terms must not be negative, got " << value;
  return success();
}

void AffineAttr::print(AsmPrinter &printer) const {
  printer << "<";
  bool first = true;
  auto term = [&](int64_t value, StringRef symbol) {
    if (!value)
      return;
    printer << (first ? "" : " + ") << value << symbol;
    first = false;
  };
  term(getConstant(), "");
  term(getPerToken(), " T");
  term(getPerSequence(), " S");
  term(getPerRow(), " R");
  term(getPerTile(), " Q");
  printer << (first ? "0>" : ">");
}

Attribute AffineAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  int64_t terms[5] = {};
  if (parser.parseLess())
    return {};
  do {
    int64_t value;
    StringRef symbol;
    if (parser.parseInteger(value))
      return {};
    size_t index = 0;
    if (succeeded(parser.parseOptionalKeyword(&symbol, {"T", "S", "R", "Q"})))
      index = symbol == "T" ? 1 : symbol == "S" ? 2 : symbol == "R" ? 3 : 4;
    if (llvm::AddOverflow(terms[index], value, terms[index])) {
      parser.emitError(loc, "term is too large");
      return {};
    }
  } while (succeeded(parser.parseOptionalPlus()));
  if (parser.parseGreater())
    return {};
  return parser.getChecked<AffineAttr>(loc, parser.getContext(), terms[0], terms[1], terms[2],
                                       terms[3], terms[4]);
}

LogicalResult LimitsAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t tokens,
                                 int64_t sequences, int64_t rows, int64_t queryTile) {
  if (tokens < 1 || sequences < 1 || rows < 1 || queryTile < 1)
    return emitError() << "limits must be at least 1";
  return success();
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

LogicalResult ProgramOp::verify() {
  for (Attribute type : getKv()) {
    auto kv = dyn_cast<llm::KvType>(cast<TypeAttr>(type).getValue());
    if (!kv || !kv.getPaged())
      return emitOpError() << "caches must be paged !llm.kv types, got " << type;
  }
  if (getKv().size() != getWindows().size())
    return emitOpError() << "has " << getKv().size() << " caches and " << getWindows().size()
                         << " windows";
  return success();
}

LogicalResult WeightOp::verify() {
  if (getFormat() && llm::tensorType(getSource()).getRank() != 2)
    return emitOpError() << "only a matrix has a format, got " << getSource().getType();
  return success();
}

LogicalResult BufferOp::verify() {
  if (static_cast<int64_t>(getSlot()) < 0)
    return emitOpError() << "slot must not be negative";
  return success();
}

LogicalResult OutputOp::verify() {
  if (static_cast<int64_t>(getColumns()) < 1)
    return emitOpError() << "needs at least one column";
  return success();
}

LogicalResult KernelOp::verify() {
  for (NamedAttribute constant : getConstants())
    if (!isa<IntegerAttr, FloatAttr, StringAttr>(constant.getValue()))
      return emitOpError() << "constant '" << constant.getName().getValue()
                           << "' must be an integer, a real or a string";
  return success();
}

LogicalResult CommandOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError() << "runs " << getKernelAttr() << ", which is no kernel of this program";
  if (kernel.getSignature().size() != getBindings().size())
    return emitOpError() << "binds " << getBindings().size() << " operands; " << getKernelAttr()
                         << " takes " << kernel.getSignature().size();
  return success();
}
