//===- GraphConstants.td - Constants and weights ---------------------------===//

#ifndef LLMC_DIALECTS_GRAPH_CONSTANTS_TD
#define LLMC_DIALECTS_GRAPH_CONSTANTS_TD

include "dialects/graph/GraphDialect.td"

def Graph_ConstantOp : Graph_Op<"constant", [ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "a small tensor whose values are in the IR";
  let description = [{
    Scalars, shapes, axes, epsilon, rotary frequencies: whatever a pass may want to look at. The importer writes a
    tensor as a constant up to some 64 KiB, and as a `graph.weight` above that or if the file gives it a weight's
    role; both are constant to every analysis.

    ```mlir
    %axes = graph.constant dense<[-1]> : tensor<1xi64>
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
  let builders = [OpBuilder<(ins "::mlir::ElementsAttr":$value), [{
    build($_builder, $_state, value.getType(), value);
  }]>];
}

def Graph_WeightOp : Graph_Op<"weight"> {
  let summary = "a tensor that stays in its file";
  let description = [{
    `bytes` bytes of `file` (relative to the module's `graph.folder`) from `offset` on, row-major and little-endian, in
    the element type of the result (4-bit integers packed two a byte, low nibble first, with no padding between rows).
    `name` is the tensor's name in the model. The importer has checked that the extent lies inside the file and fits the type.

    ```mlir
    %w = graph.weight "model.norm.weight" in "model.onnx.data" at 4096 bytes 2304 : tensor<576xf32>
    ```
  }];
  let arguments = (ins StrAttr:$name, StrAttr:$file, I64Attr:$offset, I64Attr:$bytes);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$name `in` $file `at` $offset `bytes` $bytes attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif
