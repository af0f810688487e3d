//===- GraphIndex.td - Reading and writing by index ------------------------===//

#ifndef LLMC_DIALECTS_GRAPH_INDEX_TD
#define LLMC_DIALECTS_GRAPH_INDEX_TD

include "dialects/graph/GraphDialect.td"

def Graph_GatherOp : Graph_Op<"gather", [Graph_SameElement<"x", "y">]> {
  let summary = "slices of `x` along `axis`, chosen by index";
  let description = [{
    The result has x's dimensions before the axis, then the indices' shape, then x's dimensions after it. An index
    may be negative; out of range is an error. An embedding is a gather from a weight.
  }];
  let arguments = (ins Graph_Tensor:$x, Graph_IndexTensor:$indices, DefaultValuedAttr<I64Attr, "0">:$axis);
  let results = (outs Graph_Tensor:$y);
}

def Graph_GatherElementsOp : Graph_Op<"gather_elements", [Graph_SameElement<"x", "y">]> {
  let summary = "y[i][j] = x[indices[i][j]][j] for axis 0, and so on for other axes";
  let arguments = (ins Graph_Tensor:$x, Graph_IndexTensor:$indices, DefaultValuedAttr<I64Attr, "0">:$axis);
  let results = (outs Graph_Tensor:$y);
}

def Graph_GatherNDOp : Graph_Op<"gather_nd", [Graph_SameElement<"x", "y">]> {
  let summary = "slices of `x` addressed by the index vectors in the last dimension of `indices`";
  let description = [{ The last dimension of `indices` may be shorter than the rank of x (a slice is read then). }];
  let arguments = (ins Graph_Tensor:$x, Graph_IndexTensor:$indices, DefaultValuedAttr<I64Attr, "0">:$batch_dims);
  let results = (outs Graph_Tensor:$y);
}

def Graph_ScatterKind : I32EnumAttr<"ScatterKind", "how an update meets the old element", [
    I32EnumAttrCase<"None", 0, "none">, I32EnumAttrCase<"Add", 1, "add">, I32EnumAttrCase<"Mul", 2, "mul">,
    I32EnumAttrCase<"Min", 3, "min">, I32EnumAttrCase<"Max", 4, "max">]> {
  let cppNamespace = "::llmc::graph";
}

def Graph_ScatterElementsOp : Graph_Op<"scatter_elements", [Graph_SameElement<"x", "y">, Graph_SameElement<"x", "updates">]> {
  let summary = "a copy of `x` with single elements replaced or combined";
  let arguments = (ins Graph_ScatterKind:$kind, Graph_Tensor:$x, Graph_IndexTensor:$indices, Graph_Tensor:$updates,
                       DefaultValuedAttr<I64Attr, "0">:$axis);
  let results = (outs Graph_Tensor:$y);
  let assemblyFormat = "$kind operands attr-dict `:` functional-type(operands, results)";
}

def Graph_ScatterNDOp : Graph_Op<"scatter_nd", [Graph_SameElement<"x", "y">, Graph_SameElement<"x", "updates">]> {
  let summary = "a copy of `x` with slices replaced or combined at index vectors";
  let arguments = (ins Graph_ScatterKind:$kind, Graph_Tensor:$x, Graph_IndexTensor:$indices, Graph_Tensor:$updates);
  let results = (outs Graph_Tensor:$y);
  let assemblyFormat = "$kind operands attr-dict `:` functional-type(operands, results)";
}

def Graph_OneHotOp : Graph_Op<"one_hot"> {
  let summary = "`values[1]` at the index along a new axis of size `depth`, `values[0]` elsewhere";
  let description = [{ Indices in [-depth, depth) count, others give an all-off row. }];
  let arguments = (ins Graph_Tensor:$indices, Graph_Tensor:$depth, Graph_Tensor:$values, I64Attr:$axis);
  let results = (outs Graph_Tensor:$y);
}

def Graph_NonZeroOp : Graph_Op<"nonzero"> {
  let summary = "indices of the elements that are not zero, [rank, count], in row-major order";
  let arguments = (ins Graph_Tensor:$x);
  let results = (outs Graph_IndexTensor:$y);
}

def Graph_TopKOp : Graph_Op<"top_k", [Graph_SameElement<"x", "values">]> {
  let summary = "the `k` largest (or smallest) elements along `axis` and their indices; ties by lower index";
  let arguments = (ins Graph_Tensor:$x, Graph_IndexTensor:$k, I64Attr:$axis,
                       DefaultValuedAttr<BoolAttr, "true">:$largest, DefaultValuedAttr<BoolAttr, "true">:$sorted);
  let results = (outs Graph_Tensor:$values, Graph_IndexTensor:$indices);
}

def Graph_TriluOp : Graph_Op<"trilu", [Graph_SameElement<"x", "y">]> {
  let summary = "the upper or lower triangle of the last two dimensions, zeros elsewhere";
  let description = [{ `k` (0 if missing) moves the diagonal: positive to the right. }];
  let arguments = (ins Graph_Tensor:$x, Optional<Graph_IndexTensor>:$k, DefaultValuedAttr<BoolAttr, "true">:$upper);
  let results = (outs Graph_Tensor:$y);
  let assemblyFormat = "$x (`diagonal` $k^)? attr-dict `:` functional-type(operands, results)";
}

#endif
