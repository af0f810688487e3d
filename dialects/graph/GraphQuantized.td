//===- GraphQuantized.td - Quantized weights as files hold them ------------===//

#ifndef LLMC_DIALECTS_GRAPH_QUANTIZED_TD
#define LLMC_DIALECTS_GRAPH_QUANTIZED_TD

include "dialects/graph/GraphDialect.td"

def Graph_DequantizeOp : Graph_Op<"dequantize", [Graph_SameElement<"scale", "y">]> {
  let summary = "(x - zero_point) * scale: by tensor, by axis or by blocks (ONNX DequantizeLinear)";
  let description = [{
    `scale` is a scalar, or has the size of `axis`, or (with block_size > 0) x's shape with ceil(size / block_size)
    along the axis. A missing zero point is 0. 4-bit x is packed two a byte, low nibble first, in row-major order.
  }];
  let arguments = (ins Graph_Tensor:$x, Graph_FloatTensor:$scale, Optional<Graph_Tensor>:$zero_point,
                       DefaultValuedAttr<I64Attr, "1">:$axis, DefaultValuedAttr<I64Attr, "0">:$block_size);
  let results = (outs Graph_FloatTensor:$y);
  let assemblyFormat = "$x `scale` $scale (`zero_point` $zero_point^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Graph_DequantizeNBitsOp : Graph_Op<"dequantize_nbits", [Graph_SameElement<"scales", "y">]> {
  let summary = "the N x K matrix that matmul_nbits multiplies with, as floats";
  let description = [{
    `x` is ui8 [N, K * bits / 8], low bits first, `scales` [N, ceil(K / block_size)]; a value is (q - zero) * scale
    with zero 2^(bits-1) if `zero_points`, packed like x with each row padded to whole bytes, is missing. The table of
    com.microsoft GatherBlockQuantized, whose bytes a file may share with a MatMulNBits.
  }];
  let arguments = (ins Graph_Tensor:$x, Graph_FloatTensor:$scales, Optional<Graph_Tensor>:$zero_points,
                       I64Attr:$bits, I64Attr:$block_size);
  let results = (outs Graph_FloatTensor:$y);
  let assemblyFormat = [{
    $x `scales` $scales (`zero_points` $zero_points^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Graph_MatMulNBitsOp : Graph_Op<"matmul_nbits", [AttrSizedOperandSegments, Graph_SameElement<"a", "y">]> {
  let summary = "a times the transpose of an N x K matrix quantized in blocks along K (com.microsoft MatMulNBits)";
  let description = [{
    `b` is ui8 [N, ceil(K / block_size), block_size * bits / 8], low bits first; `scales` [N * ceil(K / block_size)];
    a weight is (q - zero) * scale with zero 2^(bits-1) if `zero_points` is missing. Zero points of an integer type
    are packed like b, each row padded to whole bytes; those of a float type are one an element. The last block of
    a row is stored full; what lies beyond K is ignored. `accuracy_level` says what precision of activations the
    file allows (4: int8) and does not change the meaning.
  }];
  let arguments = (ins Graph_FloatTensor:$a, Graph_Tensor:$b, Graph_FloatTensor:$scales,
                       Optional<Graph_Tensor>:$zero_points, Optional<Graph_IndexTensor>:$g_idx,
                       Optional<Graph_FloatTensor>:$bias, I64Attr:$K, I64Attr:$N, I64Attr:$bits, I64Attr:$block_size,
                       DefaultValuedAttr<I64Attr, "0">:$accuracy_level);
  let results = (outs Graph_FloatTensor:$y);
  let assemblyFormat = [{
    $a `,` $b `scales` $scales (`zero_points` $zero_points^)? (`g_idx` $g_idx^)? (`bias` $bias^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif
