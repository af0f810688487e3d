//===- Embed.td - from tokens to rows, from rows to logits --------*- tablegen -*-===//
#ifndef LLMC_DIALECTS_LLM_EMBED
#define LLMC_DIALECTS_LLM_EMBED

include "dialects/llm/LlmDialect.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Llm_EmbeddingOp : Llm_Op<"embedding", [Pure]> {
  let summary = "the rows of a table that the tokens name";
  let description = [{
    `result[t] = table[tokens[t]]`, [T] -> [T, D]. The runtime checks every id against the vocabulary.
    `format` is how the plan stores the table; a tied table is stored once, as the head's matrix.

    ```mlir
    %h = llm.embedding %tokens, %e : (tensor<?xi32>, tensor<49152x576xf32>) -> tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Llm_Ids:$tokens, Llm_WeightTensor:$table, OptionalAttr<Llm_FormatAttr>:$format);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$tokens `,` $table attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Llm_GatherRowsOp : Llm_Op<"gather_rows", [Pure, SameOperandsAndResultType]> {
  let summary = "the rows whose logits are wanted";
  let description = [{
    [T, D] -> [R, D] (f32, or the i32 of chosen experts): row r is row `logit_rows[r]` of the step. `llmc-hoist-gather-rows` moves it as
    near to the tokens as it can go, so that the last layer's MLP runs for those rows only.

    ```mlir
    %r = llm.gather_rows %h : tensor<?x576xf32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[F32, I32]>:$input);
  let results = (outs RankedTensorOf<[F32, I32]>:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
  let hasVerifier = 1;
}

#endif
