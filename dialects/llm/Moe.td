//===- Moe.td - mixtures of experts -------------------------------*- tablegen -*-===//
#ifndef LLMC_DIALECTS_LLM_MOE
#define LLMC_DIALECTS_LLM_MOE

include "dialects/llm/LlmDialect.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Llm_RouteOp : Llm_Op<"route", [Pure]> {
  let summary = "which experts a token goes to, and with what weights";
  let description = [{
    Scores of the router's logits [T, E]: `softmax` over all experts, `sigmoid` of each, or
    `softmax_chosen`, where the logits choose and the softmax is over the chosen only (GPT-OSS). The
    `chosen` experts with the largest score, plus `correction` [E] where given (DeepSeek-V3: it decides
    who is chosen and has no part in the weights), are taken, largest first, the lower index at a
    tie. With `groups` the experts are as many runs of equal length; the `top_groups` with the
    largest group score, which is the largest choice in it, or the sum of the two largest with
    `group_best_two`, are the only ones chosen from. The weights are the chosen scores, divided by their
    sum with `normalize`, times `scale`.

    ```mlir
    %e, %p = llm.route softmax %logits {chosen = 2 : i64, normalize} : tensor<?x8xf32> -> tensor<?x2xi32>, tensor<?x2xf32>
    ```
  }];
  let arguments = (ins Llm_ScoringAttr:$scoring, Llm_Rows:$logits, Optional<Llm_WeightTensor>:$correction,
                       I64Attr:$chosen, UnitAttr:$normalize, OptionalAttr<I64Attr>:$groups,
                       OptionalAttr<I64Attr>:$top_groups, UnitAttr:$group_best_two,
                       DefaultValuedAttr<F64Attr, "1.0">:$scale);
  let results = (outs Llm_Ids:$experts, Llm_Rows:$weights);
  let assemblyFormat = [{
    custom<ScoringKeyword>($scoring) $logits (`correction` `(` $correction^ `)`)? attr-dict `:`
    type($logits) (`correction` type($correction)^)? `->` type($experts) `,` type($weights)
  }];
  let hasVerifier = 1;
}

def Llm_ExpertLinearOp : Llm_Op<"expert_linear", [Pure]> {
  let summary = "a projection by the experts that each token chose";
  let description = [{
    y[t, j] = W[experts[t, j]] x[t] for the C chosen experts of a token, side by side in one row:
    [T, C * N]. x is [T, K], or [T, C * K] with a row of its own for each choice. The weight holds
    `count` matrices [N, K] one below the other, each padded to whole tiles of 16 rows: a
    `weight_stack`; `bias` likewise. Only the chosen matrices are read.

    With `glu` each matrix is a `weight_interleave` of gate and up and N is half of its rows:
    y = activation(gate) * up. With `alpha` y = gate * sigmoid(alpha * gate) * (up + 1), where `limit`
    bounds the gate above and the magnitude of up first (GPT-OSS).

    ```mlir
    %h = llm.expert_linear %x, %w, %e {count = 8 : i64, glu, activation = #llm<activation_kind silu>}
         : tensor<?x64xf32>, tensor<1024x64xf32>, tensor<?x2xi32> -> tensor<?x128xf32>
    ```
  }];
  let arguments = (ins Llm_RowsOrQ8:$input, Llm_WeightTensor:$weight, Llm_Ids:$experts,
                       Optional<Llm_WeightTensor>:$bias, I64Attr:$count,
                       DefaultValuedAttr<Llm_ActivationAttr, "::llmc::llm::Activation::None">:$activation,
                       UnitAttr:$glu, OptionalAttr<F64Attr>:$alpha, OptionalAttr<F64Attr>:$limit,
                       OptionalAttr<Llm_FormatAttr>:$format);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = [{
    $input `,` $weight `,` $experts (`bias` `(` $bias^ `)`)? attr-dict `:`
    type($input) `,` type($weight) `,` type($experts) (`bias` type($bias)^)? `->` type($result)
  }];
  let extraClassDeclaration = [{
    int64_t getChosen() { return dim(getExperts(), 1); }
    /// Columns of one choice.
    int64_t getOutputs() { return dim(getResult(), 1) / getChosen(); }
    /// Whether each choice has input rows of its own.
    bool hasOwnInputs() { return dim(getInput(), 1) != dim(getWeight(), 1); }
  }];
  let hasVerifier = 1;
}

def Llm_CombineOp : Llm_Op<"combine", [Pure]> {
  let summary = "the weighted sum of what the chosen experts gave";
  let description = [{
    y[t] = sum over j ascending of weights[t, j] * values[t, j], plus `residual`; values are [T, C * N],
    weights [T, C]. With C = 1 it scales rows: a shared expert with a gate.

    ```mlir
    %y = llm.combine %v, %p : tensor<?x128xf32>, tensor<?x2xf32> -> tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$values, Llm_Rows:$weights, Optional<Llm_Rows>:$residual);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = [{
    $values `,` $weights (`residual` `(` $residual^ `)`)? attr-dict `:`
    type($values) `,` type($weights) (`residual` type($residual)^)? `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif
