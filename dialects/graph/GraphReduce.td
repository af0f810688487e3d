//===- GraphReduce.td - Along dimensions -----------------------------------===//

#ifndef LLMC_DIALECTS_GRAPH_REDUCE_TD
#define LLMC_DIALECTS_GRAPH_REDUCE_TD

include "dialects/graph/GraphDialect.td"

def Graph_ReduceKind : I32EnumAttr<"ReduceKind", "how elements are put together", [
    I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Mean", 1, "mean">, I32EnumAttrCase<"Max", 2, "max">,
    I32EnumAttrCase<"Min", 3, "min">, I32EnumAttrCase<"Prod", 4, "prod">,
    I32EnumAttrCase<"SumSquare", 5, "sum_square">, I32EnumAttrCase<"L1", 6, "l1">,
    I32EnumAttrCase<"L2", 7, "l2">, I32EnumAttrCase<"LogSum", 8, "log_sum">,
    I32EnumAttrCase<"LogSumExp", 9, "log_sum_exp">]> {
  let cppNamespace = "::llmc::graph";
}

def Graph_ReduceOp : Graph_Op<"reduce", [Graph_SameElement<"x", "y">]> {
  let summary = "a reduction over `axes`";
  let description = [{
    Missing or empty axes mean all of them, or none with `noop_with_empty_axes`. An empty reduction gives the
    neutral element (max: -inf or the smallest integer; mean: NaN).

    ```mlir
    %y = graph.reduce mean %x axes %axes {keepdims = true} : (tensor<?x8xf32>, tensor<1xi64>) -> tensor<?x1xf32>
    ```
  }];
  let arguments = (ins Graph_ReduceKind:$kind, Graph_Tensor:$x, Optional<Graph_IndexTensor>:$axes,
                       DefaultValuedAttr<BoolAttr, "true">:$keepdims, UnitAttr:$noop_with_empty_axes);
  let results = (outs Graph_Tensor:$y);
  let assemblyFormat = "$kind $x (`axes` $axes^)? attr-dict `:` functional-type(operands, results)";
}

def Graph_ArgReduceOp : Graph_Op<"arg_reduce"> {
  let summary = "index of the largest (or smallest) element along `axis`";
  let description = [{ The first of equal elements, or the last with `select_last`. }];
  let arguments = (ins Graph_Tensor:$x, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "true">:$largest,
                       DefaultValuedAttr<BoolAttr, "true">:$keepdims, UnitAttr:$select_last);
  let results = (outs Graph_IndexTensor:$y);
}

def Graph_CumSumOp : Graph_Op<"cumsum", [Graph_SameElement<"x", "y">]> {
  let summary = "running sums (or products) along `axis` (a scalar)";
  let arguments = (ins Graph_Tensor:$x, Graph_IndexTensor:$axis, UnitAttr:$exclusive, UnitAttr:$reverse,
                       UnitAttr:$product);
  let results = (outs Graph_Tensor:$y);
}

def Graph_SoftmaxOp : Graph_Op<"softmax", [Graph_SameElement<"x", "y">]> {
  let summary = "softmax along one axis, or its logarithm";
  let description = [{
    The meaning since opset 13. Softmax of older opsets (over all dimensions from the axis on) is written by the
    importer as flatten, softmax, reshape. In f16 the exponentials and their sum are rounded, as by the operations of
    the operator's function body. A row of nothing but -inf gives zeros, where that body has NaNs.
  }];
  let arguments = (ins Graph_FloatTensor:$x, I64Attr:$axis, UnitAttr:$log);
  let results = (outs Graph_FloatTensor:$y);
}

#endif
