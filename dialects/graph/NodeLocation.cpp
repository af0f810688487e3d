#include "dialects/graph/NodeLocation.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

Location llmc::graph::nodeLocation(MLIRContext *context, StringRef file, unsigned index,
                                   StringRef opType, StringRef name) {
  Location place = FileLineColLoc::get(context, file, index, 0);
  Location kind = NameLoc::get(StringAttr::get(context, opType), place);
  return NameLoc::get(StringAttr::get(context, name), kind);
}

/// The outer of the two nested names that nodeLocation writes.
static NameLoc findNode(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    if (isa<NameLoc>(name.getChildLoc()))
      return name;
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (NameLoc found = findNode(part))
        return found;
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return findNode(call.getCallee());
  return nullptr;
}

std::string llmc::graph::describeNode(Operation *op) {
  NameLoc node = findNode(op->getLoc());
  if (!node)
    return ("operation '" + op->getName().getStringRef() + "'").str();
  return ("node '" + node.getName().getValue() + "' (" +
          cast<NameLoc>(node.getChildLoc()).getName().getValue() + ")")
      .str();
}

StringRef llmc::graph::nodeName(Location loc) {
  NameLoc node = findNode(loc);
  return node ? node.getName().getValue() : StringRef();
}
