//===- Linear.td - projections ------------------------------------*- tablegen -*-===//
#ifndef LLMC_DIALECTS_LLM_LINEAR
#define LLMC_DIALECTS_LLM_LINEAR

include "dialects/llm/LlmDialect.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Llm_LinearOp : Llm_Op<"linear", [Pure, AttrSizedOperandSegments]> {
  let summary = "y = x W^T, with an optional epilogue";
  let description = [{
    x is [M, K], the weight [N, K]. The epilogue, in this order: `bias` [N] is added, `activation` is
    applied, `residual` [M, N] is added. With `glu` the weight is a `weight_interleave` of gate and
    up, bias likewise, and y[M, N/2] = activation(gate) * up.

    `format` (set by `llmc-quantize-weights`) is how the plan stores the weight; without it the
    weight keeps its source's float type. x of `!llm.q8` is multiplied in integers.

    ```mlir
    %y = llm.linear %x, %w bias(%b) residual(%h) {format = #llm.format<i4, group = 32, scale = f16>}
         : tensor<?x576x!llm.q8<32>>, tensor<576x576xf32> bias tensor<576xf32> residual tensor<?x576xf32> -> tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Llm_RowsOrQ8:$input, Llm_WeightTensor:$weight,
                       Optional<Llm_WeightTensor>:$bias, Optional<Llm_Rows>:$residual,
                       DefaultValuedAttr<Llm_ActivationAttr, "::llmc::llm::Activation::None">:$activation,
                       UnitAttr:$glu, OptionalAttr<Llm_FormatAttr>:$format);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = [{
    $input `,` $weight (`bias` `(` $bias^ `)`)? (`residual` `(` $residual^ `)`)? attr-dict `:`
    type($input) `,` type($weight) (`bias` type($bias)^)? (`residual` type($residual)^)? `->` type($result)
  }];
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$input, "::mlir::Value":$weight,
                                 CArg<"::mlir::Value", "{}">:$bias)>];
  let hasVerifier = 1;
}

def Llm_QuantizeOp : Llm_Op<"quantize", [Pure]> {
  let summary = "activation rows to int8";
  let description = [{
    For each row and group of the result's `!llm.q8<group>`: scale = max|x| / 127, q = x / scale
    rounded to nearest even; a group of zeros has scale 0. `llmc-fuse-norm-quantize` merges it into
    the norm before it. With `slots` each row is as many rows beside each other, each quantized as
    one: what the experts of a mixture pass on.

    ```mlir
    %q = llm.quantize %x : tensor<?x576xf32> -> tensor<?x576x!llm.q8<32>>
    ```
  }];
  let arguments = (ins Llm_Rows:$input, OptionalAttr<I64Attr>:$slots);
  let results = (outs RankedTensorOf<[Llm_Q8Type]>:$result);
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$input), [{
    build($_builder, $_state, type, input, /*slots=*/::mlir::IntegerAttr());
  }]>];
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

#endif
