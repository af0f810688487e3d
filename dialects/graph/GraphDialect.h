//===- GraphDialect.h - The array dialect and its operations ----*- C++ -*-===//
//
// See GraphDialect.td for what the dialect is, and the other .td files beside it for each
// operation.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_DIALECTS_GRAPH_GRAPHDIALECT_H
#define LLMC_DIALECTS_GRAPH_GRAPHDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/graph/GraphDialect.h.inc"
#include "dialects/graph/GraphEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/graph/GraphTypes.h.inc"

#define GET_OP_CLASSES
#include "dialects/graph/GraphOps.h.inc"

namespace llmc::graph {

/// Argument and result attribute that holds a name of the model file: "graph.name".
inline constexpr llvm::StringLiteral kNameAttr = "graph.name";
/// Argument and result attribute with one string a dimension, "" for one that has no symbol:
/// "graph.dims".
inline constexpr llvm::StringLiteral kDimsAttr = "graph.dims";

/// Adds the dialect and what it depends on.
void registerGraphDialect(mlir::DialectRegistry &registry);

} // namespace llmc::graph

namespace llmc {
using graph::registerGraphDialect;
} // namespace llmc

#endif
