//===- GraphOps.td - All operations of the graph dialect -------------------===//

#ifndef LLMC_DIALECTS_GRAPH_OPS_TD
#define LLMC_DIALECTS_GRAPH_OPS_TD

include "dialects/graph/GraphConstants.td"
include "dialects/graph/GraphElementwise.td"
include "dialects/graph/GraphShape.td"
include "dialects/graph/GraphIndex.td"
include "dialects/graph/GraphReduce.td"
include "dialects/graph/GraphContract.td"
include "dialects/graph/GraphComposite.td"
include "dialects/graph/GraphQuantized.td"
include "dialects/graph/GraphControl.td"
include "dialects/graph/GraphSequence.td"

#endif
