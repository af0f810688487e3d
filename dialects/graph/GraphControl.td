//===- GraphControl.td - Branches and loops --------------------------------===//

#ifndef LLMC_DIALECTS_GRAPH_CONTROL_TD
#define LLMC_DIALECTS_GRAPH_CONTROL_TD

include "dialects/graph/GraphDialect.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def Graph_YieldOp : Graph_Op<"yield", [Terminator, ReturnLike]> {
  let summary = "the values that a branch or a loop's body gives";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

class Graph_RegionOp<string mnemonic, list<Trait> traits = []>
    : Op<Graph_Dialect, mnemonic, !listconcat([RecursiveMemoryEffects, SingleBlock], traits)>;

def Graph_IfOp : Graph_RegionOp<"if", [NoRegionArguments]> {
  let summary = "what one of two branches gives";
  let description = [{
    The branches may use values from around them. They need not give the same shapes.

    ```mlir
    %y = graph.if %c : (tensor<i1>) -> tensor<*xf32> {
      graph.yield %a : tensor<2xf32>
    } else {
      graph.yield %b : tensor<3xf32>
    }
    ```
  }];
  let arguments = (ins Graph_BoolTensor:$condition);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$then_branch, SizedRegion<1>:$else_branch);
  let assemblyFormat = [{
    $condition attr-dict `:` functional-type(operands, results) $then_branch `else` $else_branch
  }];
}

def Graph_LoopOp : Graph_RegionOp<"loop", [AttrSizedOperandSegments]> {
  let summary = "a body run again and again (ONNX Loop)";
  let description = [{
    Runs while fewer than `trips` turns were made (any number, if it is missing) and the condition holds (true, if
    it is missing). The body takes the turn's number (i64), the condition and the carried values; it gives the next
    condition, the next carried values and one tensor for each scan. Results are the last carried values, then for
    each scan the tensors of all turns stacked along a new first dimension. Of no turn at all that tensor is empty, and
    its other dimensions are those that `scan_shapes` has for it (an array each, a negative number for what is not
    known), or 0.
  }];
  let arguments = (ins Optional<Graph_IndexTensor>:$trips, Optional<Graph_BoolTensor>:$condition,
                       Variadic<AnyType>:$carried, OptionalAttr<ArrayAttr>:$scan_shapes);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    (`trips` $trips^)? (`while` $condition^)? (`carry` $carried^)? attr-dict `:` functional-type(operands, results) $body
  }];
  let hasVerifier = 1;
}

#endif
