//===- NodeLocation.h - A model file's node as an MLIR location -*- C++ -*-===//

#ifndef LLMC_DIALECTS_GRAPH_NODELOCATION_H
#define LLMC_DIALECTS_GRAPH_NODELOCATION_H

#include "mlir/IR/Location.h"
#include "mlir/IR/Operation.h"
#include <string>

namespace llmc::graph {

/// Module attribute: the folder of the model file, which the `file` of a graph.weight is relative to.
inline constexpr llvm::StringLiteral kFolderAttr = "graph.folder";

/// The location of node number `index` of `file`: loc("name"("opType"("file":index:0))).
mlir::Location nodeLocation(mlir::MLIRContext *context, llvm::StringRef file, unsigned index,
                            llvm::StringRef opType, llvm::StringRef name);

/// "node 'layers.3/attn' (GroupQueryAttention)" from a location that nodeLocation made; of a fused
/// location the first such part; for any other location "operation 'graph.x'".
std::string describeNode(mlir::Operation *op);

/// The node's name, or "" if the location holds none.
llvm::StringRef nodeName(mlir::Location loc);

} // namespace llmc::graph

#endif
