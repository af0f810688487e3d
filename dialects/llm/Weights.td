//===- Weights.td - weights and the views of them -----------------*- tablegen -*-===//
#ifndef LLMC_DIALECTS_LLM_WEIGHTS
#define LLMC_DIALECTS_LLM_WEIGHTS

include "dialects/llm/LlmDialect.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Llm_WeightOp : Llm_Op<"weight", [Pure]> {
  let summary = "a tensor of a source file";
  let description = [{
    Names a tensor by its bytes. `as` says how they encode the values, `block` the values a scale
    covers where the encoding leaves that open (`nbits`, `block_int4`, `block_int8`). The result is
    the tensor's values; nothing is read until the plan is written.

    Sources in order: the data; for `nbits` packed data, scales and optionally zero points; for
    `block_int4`/`block_int8` the data, scales and optionally zero points. The forms of pre-quantized
    checkpoints (`gptq` to `fp8`; CheckpointForm.h has the layouts): the data, scales, then zero points
    and optionally group indices (`gptq`), zero points (`awq`, `packed_int`: optionally), or levels and
    optionally the nested scales and their levels (`nf4`, with `scale_offset` for nested scales).
    `scale_encoding` is the encoding of those scales (f32, f16 or bf16). `bits` is 4 or 8 for `nbits` (4 by
    default); `signed_codes` and `blocks_down` (blocks run down the columns) are for the block forms.

    ```mlir
    %w = llm.weight "blk.0.attn_q.weight" from [#llm.source<0, 1742080, 207360>] as q4_1
         : tensor<576x576xf32>
    ```
  }];
  let arguments = (ins StrAttr:$name, Llm_SourceArrayAttr:$sources, Llm_EncodingAttr:$encoding,
                       OptionalAttr<I64Attr>:$block, OptionalAttr<Llm_EncodingAttr>:$scale_encoding,
                       OptionalAttr<I64Attr>:$bits, UnitAttr:$signed_codes, UnitAttr:$blocks_down,
                       OptionalAttr<F32Attr>:$scale_offset);
  let results = (outs Llm_WeightTensor:$result);
  let assemblyFormat = [{
    $name `from` $sources `as` custom<EncodingKeyword>($encoding) (`block` $block^)?
    (`scales` custom<EncodingKeyword>($scale_encoding)^)? attr-dict `:` type($result)
  }];
  // A tensor of one source whose values the encoding alone defines.
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::llvm::StringRef":$name,
                                 "::llmc::llm::SourceAttr":$source, "::llmc::llm::Encoding":$encoding)>];
  let hasVerifier = 1;
}

def Llm_WeightConstantOp : Llm_Op<"weight_constant", [Pure, ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "a small tensor that the compiler computed";
  let description = [{
    Values that stand in no file: rotary frequencies, a folded scale.

    ```mlir
    %f = llm.weight_constant dense<[1.0, 0.5]> : tensor<2xf32>
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Llm_WeightTensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
}

def Llm_WeightTransposeOp : Llm_Op<"weight_transpose", [Pure]> {
  let summary = "the transpose of a matrix";
  let description = [{
    ONNX stores a projection as [in, out]; `llm.linear` wants [out, in]. Two in a row cancel.

    ```mlir
    %t = llm.weight_transpose %w : tensor<576x960xf32> -> tensor<960x576xf32>
    ```
  }];
  let arguments = (ins Llm_WeightTensor:$weight);
  let results = (outs Llm_WeightTensor:$result);
  let assemblyFormat = "$weight attr-dict `:` type($weight) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Llm_WeightConcatOp : Llm_Op<"weight_concat", [Pure]> {
  let summary = "matrices (or vectors) one below the other";
  let description = [{
    Joins along the first dimension: Q, K and V become one matrix that is read once. With one operand it is that
    operand; nested ones flatten.

    ```mlir
    %qkv = llm.weight_concat %q, %k, %v : tensor<576x576xf32>, tensor<192x576xf32>, tensor<192x576xf32> -> tensor<960x576xf32>
    ```
  }];
  let arguments = (ins Variadic<Llm_WeightTensor>:$weights);
  let results = (outs Llm_WeightTensor:$result);
  let assemblyFormat = "$weights attr-dict `:` type($weights) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Llm_WeightInterleaveOp : Llm_Op<"weight_interleave", [Pure, AllTypesMatch<["first", "second"]>]> {
  let summary = "two matrices, 16 rows of each in turn";
  let description = [{
    Puts the gate and the up projection of a gated MLP in one matrix so that a tile of 16 gate rows is
    followed by the tile of the same up rows, and the product is formed in the epilogue. Row counts
    that 16 does not divide are padded with zero rows, in both; the result has the padded rows.

    ```mlir
    %gu = llm.weight_interleave %gate, %up : tensor<1536x576xf32> -> tensor<3072x576xf32>
    ```
  }];
  let arguments = (ins Llm_WeightTensor:$first, Llm_WeightTensor:$second);
  let results = (outs Llm_WeightTensor:$result);
  let assemblyFormat = "$first `,` $second attr-dict `:` type($first) `->` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = "static constexpr int64_t tileRows = 16;";
}

def Llm_WeightStackOp : Llm_Op<"weight_stack", [Pure]> {
  let summary = "matrices (or vectors) of one shape, each padded to whole tiles, one below the other";
  let description = [{
    The matrices of a mixture's experts, or of heads, as kernels find them: matrix i begins at row i *
    (its rows rounded up to 16), and the rows between are zeros.

    ```mlir
    %e = llm.weight_stack %a, %b : tensor<12x64xf32>, tensor<12x64xf32> -> tensor<32x64xf32>
    ```
  }];
  let arguments = (ins Variadic<Llm_WeightTensor>:$weights);
  let results = (outs Llm_WeightTensor:$result);
  let assemblyFormat = "$weights attr-dict `:` type($weights) `->` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr int64_t tileRows = 16;
    static int64_t paddedRows(int64_t rows) { return (rows + tileRows - 1) / tileRows * tileRows; }
  }];
}

def Llm_WeightRowsOp : Llm_Op<"weight_rows", [Pure]> {
  let summary = "some rows of a matrix (or elements of a vector)";
  let description = [{
    `size` comes from the result's type. A view of all rows is its operand.

    ```mlir
    %k = llm.weight_rows %qkv from 576 : tensor<960x576xf32> -> tensor<192x576xf32>
    ```
  }];
  let arguments = (ins Llm_WeightTensor:$weight, I64Attr:$offset);
  let results = (outs Llm_WeightTensor:$result);
  let assemblyFormat = "$weight `from` $offset attr-dict `:` type($weight) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Llm_WeightUnpermuteOp : Llm_Op<"weight_unpermute", [Pure, AllTypesMatch<["weight", "result"]>]> {
  let summary = "the rows of Q or K as rotate-half RoPE wants them";
  let description = [{
    GGUF's `llama` family stores each head's rows so that a rotated pair is (2i, 2i+1); Hugging Face
    rotates (i, i + d/2). For each of `heads` heads of d rows: result row j + k*d/2 is source row
    2j + k (j < d/2, k in {0, 1}). Works on vectors (biases) as well. K has its own head count.

    ```mlir
    %q = llm.weight_unpermute %w heads 9 : tensor<576x576xf32>
    ```
  }];
  let arguments = (ins Llm_WeightTensor:$weight, I64Attr:$heads);
  let results = (outs Llm_WeightTensor:$result);
  let assemblyFormat = "$weight `heads` $heads attr-dict `:` type($weight)";
  let hasVerifier = 1;
}

def Llm_WeightReshapeOp : Llm_Op<"weight_reshape", [Pure]> {
  let summary = "the same values, row-major, in another shape";
  let description = [{
    ```mlir
    %v = llm.weight_reshape %w : tensor<1x576xf32> -> tensor<576xf32>
    ```
  }];
  let arguments = (ins Llm_WeightTensor:$weight);
  let results = (outs Llm_WeightTensor:$result);
  let assemblyFormat = "$weight attr-dict `:` type($weight) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

#endif
