//===- Norm.td - normalisations -----------------------------------*- tablegen -*-===//
#ifndef LLMC_DIALECTS_LLM_NORM
#define LLMC_DIALECTS_LLM_NORM

include "dialects/llm/LlmDialect.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Llm_RmsNormOp : Llm_Op<"rms_norm", [Pure]> {
  let summary = "root-mean-square normalisation";
  let description = [{
    y = x / sqrt(mean(x^2) + eps) * w over each row (Zhang and Sennrich, 2019). With `plus_one` the
    factor is 1 + w (Gemma as Hugging Face stores it; GGUF files hold the sum already). The result may
    be int8 rows, once the quantization is fused. With `group_size` a row is normalised in parts of
    that many columns with the same w [group_size] (a norm of each head).

    ```mlir
    %n = llm.rms_norm %x, %w {eps = 1.0e-05 : f64} : tensor<?x576xf32>, tensor<576xf32> -> tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$input, Llm_WeightTensor:$weight, F64Attr:$eps, UnitAttr:$plus_one,
                       OptionalAttr<I64Attr>:$group_size);
  let results = (outs Llm_RowsOrQ8:$result);
  let assemblyFormat = "$input `,` $weight attr-dict `:` type($input) `,` type($weight) `->` type($result)";
  let hasVerifier = 1;
}

def Llm_LayerNormOp : Llm_Op<"layer_norm", [Pure]> {
  let summary = "layer normalisation";
  let description = [{
    y = (x - mean(x)) / sqrt(var(x) + eps) * w + b over each row (Ba, Kiros and Hinton, 2016); the
    bias is optional.

    ```mlir
    %n = llm.layer_norm %x, %w, %b {eps = 1.0e-05 : f64}
         : tensor<?x64xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$input, Llm_WeightTensor:$weight, Optional<Llm_WeightTensor>:$bias,
                       F64Attr:$eps);
  let results = (outs Llm_RowsOrQ8:$result);
  let assemblyFormat = "$input `,` $weight (`,` $bias^)? attr-dict `:` type($input) `,` type($weight) (`,` type($bias)^)? `->` type($result)";
  let hasVerifier = 1;
}

#endif
