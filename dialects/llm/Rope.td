//===- Rope.td - rotary position embedding ------------------------*- tablegen -*-===//
#ifndef LLMC_DIALECTS_LLM_ROPE
#define LLMC_DIALECTS_LLM_ROPE

include "dialects/llm/LlmDialect.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Llm_RopeAnglesOp : Llm_Op<"rope_angles", [Pure]> {
  let summary = "cosines and sines of the tokens' positions, from frequencies";
  let description = [{
    result[t, 0, i] = scale * cos(p * f[i]), result[t, 1, i] = scale * sin(p * f[i]) for position p of
    token t; p * f[i] is one f32 product, as the reference has it (Su et al., 2021). Once a step, for
    all layers that share the frequencies [rotary/2].

    ```mlir
    %a = llm.rope_angles %positions, %f : (tensor<?xi32>, tensor<32xf32>) -> tensor<?x2x32xf32>
    ```
  }];
  let arguments = (ins Llm_Ids:$positions, Llm_WeightTensor:$frequencies,
                       DefaultValuedAttr<F64Attr, "1.0">:$scale);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$positions `,` $frequencies attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Llm_RopeGatherOp : Llm_Op<"rope_gather", [Pure]> {
  let summary = "cosines and sines of the tokens' positions, from tables";
  let description = [{
    For graphs that store the tables: result[t, 0] = cos[p], result[t, 1] = sin[p]; both are
    [positions, rotary/2]. A context longer than the tables is refused when the plan is made.

    ```mlir
    %a = llm.rope_gather %positions, %cos, %sin
         : (tensor<?xi32>, tensor<8192x32xf32>, tensor<8192x32xf32>) -> tensor<?x2x32xf32>
    ```
  }];
  let arguments = (ins Llm_Ids:$positions, Llm_WeightTensor:$cos, Llm_WeightTensor:$sin);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$positions `,` $cos `,` $sin attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Llm_RopeSelectOp : Llm_Op<"rope_select", [Pure, AllTypesMatch<["short_angles", "long_angles", "result"]>]> {
  let summary = "the angles that a token's sequence takes: longrope's short or long factors";
  let description = [{
    Row t is that of `long_angles` where the sequence of token t has more tokens than the module's
    `rope_original_context`, else that of `short_angles` (Ding et al., 2024; Hugging Face's phi3). The length is that of
    all tokens that the sequence has, not of those before t: a sequence that grows over the limit has its keys computed
    again, so a cache holds keys of one kind only.

    ```mlir
    %a = llm.rope_select %short, %long : tensor<?x2x48xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$short_angles, Llm_Rows:$long_angles);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$short_angles `,` $long_angles attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Llm_RopeOp : Llm_Op<"rope", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "rotates the heads of a row by the token's angles";
  let description = [{
    x is [T, heads * d]. In each head the first `rotary` values are rotated and the rest kept: pairs
    (i, i + rotary/2), or (2i, 2i+1) when `interleaved`:
    y_a = x_a cos_i - x_b sin_i, y_b = x_b cos_i + x_a sin_i.

    ```mlir
    %q1 = llm.rope %q, %angles {heads = 9 : i64} : tensor<?x576xf32>, tensor<?x2x32xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$input, Llm_Rows:$angles, I64Attr:$heads, UnitAttr:$interleaved);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$input `,` $angles attr-dict `:` type($input) `,` type($angles)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Values of a head that are rotated.
    int64_t getRotary();
  }];
}

#endif
