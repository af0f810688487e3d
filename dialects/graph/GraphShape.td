//===- GraphShape.td - Shapes and their changes ----------------------------===//

#ifndef LLMC_DIALECTS_GRAPH_SHAPE_TD
#define LLMC_DIALECTS_GRAPH_SHAPE_TD

include "dialects/graph/GraphDialect.td"

def Graph_ShapeOp : Graph_Op<"shape"> {
  let summary = "dimensions [start, end) of a tensor, as i64";
  let description = [{
    Negative bounds count from the end and both are clamped to the rank; without `end` all from `start` on.
    Folds if the dimensions are static.
  }];
  let arguments = (ins Graph_Tensor:$x, DefaultValuedAttr<I64Attr, "0">:$start, OptionalAttr<I64Attr>:$end);
  let results = (outs Graph_IndexTensor:$y);
  let hasFolder = 1;
}

def Graph_SizeOp : Graph_Op<"size"> {
  let summary = "number of elements, as an i64 scalar";
  let arguments = (ins Graph_Tensor:$x);
  let results = (outs Graph_IndexTensor:$y);
  let hasFolder = 1;
}

def Graph_ReshapeOp : Graph_Op<"reshape", [Graph_SameElement<"x", "y">]> {
  let summary = "the same elements in row-major order under another shape";
  let description = [{
    `shape` has at most one -1, which is inferred; a 0 keeps the input's dimension unless `allow_zero` is set.
  }];
  let arguments = (ins Graph_Tensor:$x, Graph_IndexTensor:$shape, UnitAttr:$allow_zero);
  let results = (outs Graph_Tensor:$y);
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Graph_FlattenOp : Graph_Op<"flatten", [Graph_SameElement<"x", "y">]> {
  let summary = "to a matrix: dimensions before `axis` are rows, the rest columns";
  let arguments = (ins Graph_Tensor:$x, I64Attr:$axis);
  let results = (outs Graph_Tensor:$y);
}

def Graph_SqueezeOp : Graph_Op<"squeeze", [Graph_SameElement<"x", "y">]> {
  let summary = "drops dimensions of size 1: those in `axes`, or all";
  let arguments = (ins Graph_Tensor:$x, Optional<Graph_IndexTensor>:$axes);
  let results = (outs Graph_Tensor:$y);
  let assemblyFormat = "$x (`axes` $axes^)? attr-dict `:` functional-type(operands, results)";
}

def Graph_UnsqueezeOp : Graph_Op<"unsqueeze", [Graph_SameElement<"x", "y">]> {
  let summary = "inserts dimensions of size 1 at the places `axes` of the result";
  let arguments = (ins Graph_Tensor:$x, Graph_IndexTensor:$axes);
  let results = (outs Graph_Tensor:$y);
}

def Graph_ExpandOp : Graph_Op<"expand", [Graph_SameElement<"x", "y">]> {
  let summary = "broadcast to the two-way broadcast of the input's shape and `shape`";
  let arguments = (ins Graph_Tensor:$x, Graph_IndexTensor:$shape);
  let results = (outs Graph_Tensor:$y);
}

def Graph_TileOp : Graph_Op<"tile", [Graph_SameElement<"x", "y">]> {
  let summary = "the tensor repeated `repeats[i]` times along dimension i";
  let arguments = (ins Graph_Tensor:$x, Graph_IndexTensor:$repeats);
  let results = (outs Graph_Tensor:$y);
}

def Graph_TransposeOp : Graph_Op<"transpose", [Graph_SameElement<"x", "y">]> {
  let summary = "dimension i of the result is dimension `perm[i]` of the input";
  let description = [{ Two transposes in a row fold into one; one that changes nothing folds away. }];
  let arguments = (ins Graph_Tensor:$x, DenseI64ArrayAttr:$perm);
  let results = (outs Graph_Tensor:$y);
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Graph_ConcatOp : Graph_Op<"concat"> {
  let summary = "tensors one after the other along `axis`";
  let arguments = (ins Variadic<Graph_Tensor>:$parts, I64Attr:$axis);
  let results = (outs Graph_Tensor:$y);
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Graph_SplitOp : Graph_Op<"split"> {
  let summary = "a tensor cut along `axis` into as many parts as there are results";
  let description = [{
    With `sizes` part i has size `sizes[i]`; without, all are ceil(size / parts) but for the last, which takes the
    rest.
  }];
  let arguments = (ins Graph_Tensor:$x, Optional<Graph_IndexTensor>:$sizes, I64Attr:$axis);
  let results = (outs Variadic<Graph_Tensor>:$parts);
  let assemblyFormat = "$x (`sizes` $sizes^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Graph_SliceOp : Graph_Op<"slice", [AttrSizedOperandSegments, Graph_SameElement<"x", "y">]> {
  let summary = "elements starts, starts + steps, ... before ends, for each of the axes";
  let description = [{
    Bounds are clamped as ONNX says: INT64_MAX and INT64_MIN mean "to the end" for positive and negative steps.
    Missing axes are 0, 1, ...; missing steps are 1. An empty result is allowed.
  }];
  let arguments = (ins Graph_Tensor:$x, Graph_IndexTensor:$starts, Graph_IndexTensor:$ends,
                       Optional<Graph_IndexTensor>:$axes, Optional<Graph_IndexTensor>:$steps);
  let results = (outs Graph_Tensor:$y);
  let assemblyFormat = [{
    $x `from` $starts `to` $ends (`axes` $axes^)? (`steps` $steps^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Graph_PadMode : I32EnumAttr<"PadMode", "what padding holds", [
    I32EnumAttrCase<"Constant", 0, "constant">, I32EnumAttrCase<"Reflect", 1, "reflect">,
    I32EnumAttrCase<"Edge", 2, "edge">, I32EnumAttrCase<"Wrap", 3, "wrap">]> {
  let cppNamespace = "::llmc::graph";
}

def Graph_PadOp : Graph_Op<"pad", [AttrSizedOperandSegments, Graph_SameElement<"x", "y">]> {
  let summary = "elements added (or, with negative pads, removed) at the ends of dimensions";
  let description = [{ `pads` holds all begins, then all ends, of the axes (all dimensions if missing). }];
  let arguments = (ins Graph_Tensor:$x, Graph_IndexTensor:$pads, Optional<Graph_Tensor>:$value,
                       Optional<Graph_IndexTensor>:$axes, Graph_PadMode:$mode);
  let results = (outs Graph_Tensor:$y);
  let assemblyFormat = [{
    $mode $x `by` $pads (`value` $value^)? (`axes` $axes^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Graph_RangeOp : Graph_Op<"range"> {
  let summary = "start, start + step, ... before limit (scalars of one type)";
  let description = [{ max(ceil((limit - start) / step), 0) elements: none if the step leads away from the limit. }];
  let arguments = (ins Graph_Tensor:$start, Graph_Tensor:$limit, Graph_Tensor:$step);
  let results = (outs Graph_Tensor:$y);
}

def Graph_FillOp : Graph_Op<"fill"> {
  let summary = "a tensor of the given shape full of one value (ONNX ConstantOfShape)";
  let description = [{ `value` has one element; its type is the result's. }];
  let arguments = (ins Graph_IndexTensor:$shape, ElementsAttr:$value);
  let results = (outs Graph_Tensor:$y);
  let hasVerifier = 1;
}

#endif
