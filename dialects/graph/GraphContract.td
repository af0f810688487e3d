//===- GraphContract.td - Matrix products ----------------------------------===//

#ifndef LLMC_DIALECTS_GRAPH_CONTRACT_TD
#define LLMC_DIALECTS_GRAPH_CONTRACT_TD

include "dialects/graph/GraphDialect.td"

def Graph_MatMulOp : Graph_Op<"matmul", [Graph_SameElement<"a", "b">, Graph_SameElement<"a", "y">]> {
  let summary = "matrix product over the last two dimensions, the others broadcast as NumPy's matmul does";
  let arguments = (ins Graph_Tensor:$a, Graph_Tensor:$b);
  let results = (outs Graph_Tensor:$y);
}

def Graph_GemmOp : Graph_Op<"gemm", [Graph_SameElement<"a", "b">, Graph_SameElement<"a", "y">]> {
  let summary = "alpha * op(a) * op(b) + beta * c of matrices, c broadcast";
  let arguments = (ins Graph_Tensor:$a, Graph_Tensor:$b, Optional<Graph_Tensor>:$c,
                       DefaultValuedAttr<F32Attr, "1.0f">:$alpha, DefaultValuedAttr<F32Attr, "1.0f">:$beta,
                       UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs Graph_Tensor:$y);
  let assemblyFormat = "$a `,` $b (`plus` $c^)? attr-dict `:` functional-type(operands, results)";
}

#endif
