//===- GraphElementwise.td - Element by element ----------------------------===//

#ifndef LLMC_DIALECTS_GRAPH_ELEMENTWISE_TD
#define LLMC_DIALECTS_GRAPH_ELEMENTWISE_TD

include "dialects/graph/GraphDialect.td"

def Graph_UnaryKind : I32EnumAttr<"UnaryKind", "function of one element", [
    I32EnumAttrCase<"Neg", 0, "neg">, I32EnumAttrCase<"Abs", 1, "abs">, I32EnumAttrCase<"Exp", 2, "exp">,
    I32EnumAttrCase<"Log", 3, "log">, I32EnumAttrCase<"Sqrt", 4, "sqrt">,
    I32EnumAttrCase<"Reciprocal", 5, "reciprocal">, I32EnumAttrCase<"Sin", 6, "sin">,
    I32EnumAttrCase<"Cos", 7, "cos">, I32EnumAttrCase<"Tan", 8, "tan">, I32EnumAttrCase<"Tanh", 9, "tanh">,
    I32EnumAttrCase<"Erf", 10, "erf">, I32EnumAttrCase<"Sigmoid", 11, "sigmoid">,
    I32EnumAttrCase<"Relu", 12, "relu">, I32EnumAttrCase<"Softplus", 13, "softplus">,
    I32EnumAttrCase<"Silu", 14, "silu">, I32EnumAttrCase<"GeluErf", 15, "gelu_erf">,
    I32EnumAttrCase<"GeluTanh", 16, "gelu_tanh">, I32EnumAttrCase<"Floor", 17, "floor">,
    I32EnumAttrCase<"Ceil", 18, "ceil">, I32EnumAttrCase<"Round", 19, "round">,
    I32EnumAttrCase<"Sign", 20, "sign">, I32EnumAttrCase<"Not", 21, "not">,
    I32EnumAttrCase<"BitNot", 22, "bit_not">, I32EnumAttrCase<"IsNaN", 23, "is_nan">,
    I32EnumAttrCase<"IsInf", 24, "is_inf">, I32EnumAttrCase<"Asin", 25, "asin">,
    I32EnumAttrCase<"Acos", 26, "acos">, I32EnumAttrCase<"Atan", 27, "atan">,
    I32EnumAttrCase<"Sinh", 28, "sinh">, I32EnumAttrCase<"Cosh", 29, "cosh">,
    I32EnumAttrCase<"Asinh", 30, "asinh">, I32EnumAttrCase<"Acosh", 31, "acosh">,
    I32EnumAttrCase<"Atanh", 32, "atanh">]> {
  let cppNamespace = "::llmc::graph";
}

def Graph_BinaryKind : I32EnumAttr<"BinaryKind", "function of two elements", [
    I32EnumAttrCase<"Add", 0, "add">, I32EnumAttrCase<"Sub", 1, "sub">, I32EnumAttrCase<"Mul", 2, "mul">,
    I32EnumAttrCase<"Div", 3, "div">, I32EnumAttrCase<"Pow", 4, "pow">, I32EnumAttrCase<"Mod", 5, "mod">,
    I32EnumAttrCase<"FMod", 6, "fmod">, I32EnumAttrCase<"Min", 7, "min">, I32EnumAttrCase<"Max", 8, "max">,
    I32EnumAttrCase<"And", 9, "and">, I32EnumAttrCase<"Or", 10, "or">, I32EnumAttrCase<"Xor", 11, "xor">,
    I32EnumAttrCase<"BitAnd", 12, "bit_and">, I32EnumAttrCase<"BitOr", 13, "bit_or">,
    I32EnumAttrCase<"BitXor", 14, "bit_xor">, I32EnumAttrCase<"ShiftLeft", 15, "shl">,
    I32EnumAttrCase<"ShiftRight", 16, "shr">]> {
  let cppNamespace = "::llmc::graph";
}

def Graph_CompareKind : I32EnumAttr<"CompareKind", "relation of two elements", [
    I32EnumAttrCase<"Eq", 0, "eq">, I32EnumAttrCase<"Ne", 1, "ne">, I32EnumAttrCase<"Lt", 2, "lt">,
    I32EnumAttrCase<"Le", 3, "le">, I32EnumAttrCase<"Gt", 4, "gt">, I32EnumAttrCase<"Ge", 5, "ge">]> {
  let cppNamespace = "::llmc::graph";
}

def Graph_UnaryOp : Graph_Op<"unary"> {
  let summary = "a function of every element";
  let description = [{
    `round` rounds halves to even; `silu` is x*sigmoid(x); `gelu_erf` is the exact GELU, `gelu_tanh` its tanh
    approximation; `is_nan`, `is_inf` give i1; `not` is logical (i1), `bit_not` bitwise. Element type and shape are
    the operand's otherwise.

    ```mlir
    %y = graph.unary neg %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
  }];
  let arguments = (ins Graph_UnaryKind:$kind, Graph_Tensor:$x);
  let results = (outs Graph_Tensor:$y);
  let assemblyFormat = "$kind $x attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Graph_BinaryOp : Graph_Op<"binary", [Graph_SameElement<"a", "b">, Graph_SameElement<"a", "y">]> {
  let summary = "a function of two elements, broadcast as NumPy does";
  let description = [{
    `div` of integers truncates towards zero; `mod` takes the sign of the divisor, `fmod` of the dividend. `pow` with
    an exponent of another type is written with a cast of the exponent. `and`, `or`, `xor` are logical (i1).

    ```mlir
    %y = graph.binary add %a, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    ```
  }];
  let arguments = (ins Graph_BinaryKind:$kind, Graph_Tensor:$a, Graph_Tensor:$b);
  let results = (outs Graph_Tensor:$y);
  let assemblyFormat = "$kind $a `,` $b attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Graph_CompareOp : Graph_Op<"compare", [Graph_SameElement<"a", "b">]> {
  let summary = "a relation of two elements, broadcast; i1";
  let description = [{
    ```mlir
    %y = graph.compare le %a, %b : (tensor<?x1xi64>, tensor<1x?xi64>) -> tensor<?x?xi1>
    ```
  }];
  let arguments = (ins Graph_CompareKind:$kind, Graph_Tensor:$a, Graph_Tensor:$b);
  let results = (outs Graph_BoolTensor:$y);
  let assemblyFormat = "$kind $a `,` $b attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Graph_SelectOp : Graph_Op<"select", [Graph_SameElement<"a", "b">, Graph_SameElement<"a", "y">]> {
  let summary = "`a` where the condition holds, else `b`, broadcast (ONNX Where)";
  let arguments = (ins Graph_BoolTensor:$condition, Graph_Tensor:$a, Graph_Tensor:$b);
  let results = (outs Graph_Tensor:$y);
  let hasVerifier = 1;
}

def Graph_ClipOp : Graph_Op<"clip", [AttrSizedOperandSegments, Graph_SameElement<"x", "y">]> {
  let summary = "min(max(x, low), high) with scalar bounds, either of which may be missing";
  let description = [{ With low > high the result is high everywhere, as ONNX says. }];
  let arguments = (ins Graph_Tensor:$x, Optional<Graph_Tensor>:$low, Optional<Graph_Tensor>:$high);
  let results = (outs Graph_Tensor:$y);
  let assemblyFormat = [{
    $x (`low` $low^)? (`high` $high^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Graph_CastOp : Graph_Op<"cast"> {
  let summary = "conversion to the element type of the result";
  let description = [{
    Float to integer truncates; to bool is `!= 0`; float to a narrower float rounds to nearest, ties to even.
    A value that does not fit an integer wraps; a float above the range of a narrower one becomes infinite, but for
    8-bit floats, where it becomes the largest number if `saturate`, else infinity or NaN. `rounding` to E8M0: 0 up,
    1 down, 2 nearest.
  }];
  let arguments = (ins Graph_Tensor:$x, DefaultValuedAttr<BoolAttr, "true">:$saturate,
                       DefaultValuedAttr<I64Attr, "0">:$rounding);
  let results = (outs Graph_Tensor:$y);
  let hasFolder = 1;
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$x), [{
    build($_builder, $_state, type, x, true, 0);
  }]>];
}

#endif
