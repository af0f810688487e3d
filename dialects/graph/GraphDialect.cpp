#include "dialects/graph/GraphDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llmc::graph;

#include "dialects/graph/GraphDialect.cpp.inc"
#include "dialects/graph/GraphEnums.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/graph/GraphTypes.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/graph/GraphOps.cpp.inc"

void GraphDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/graph/GraphTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/graph/GraphOps.cpp.inc"
      >();
}

Operation *GraphDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type,
                                             Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  auto tensor = dyn_cast<TensorType>(type);
  // An unranked result may become a constant of the shape that was computed; element types must
  // agree.
  if (!elements || !tensor || elements.getElementType() != tensor.getElementType() ||
      elements.getType() != type)
    return nullptr;
  return ConstantOp::create(builder, loc, elements);
}

void llmc::graph::registerGraphDialect(DialectRegistry &registry) {
  registry.insert<GraphDialect, func::FuncDialect>();
}
