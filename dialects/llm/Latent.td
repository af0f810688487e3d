//===- Latent.td - multi-head latent attention --------------------*- tablegen -*-===//
#ifndef LLMC_DIALECTS_LLM_LATENT
#define LLMC_DIALECTS_LLM_LATENT

include "dialects/llm/LlmDialect.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Llm_HeadLinearOp : Llm_Op<"head_linear", [Pure]> {
  let summary = "a projection of each head by a matrix of its own";
  let description = [{
    y[t, h] = W[h] x[t, h][0 .. K): x is [T, H * S] with S >= K, the result [T, H * N]. The weight holds
    `heads` matrices [N, K] one below the other, each padded to whole tiles of 16 rows: a `weight_stack`.

    What is left of MLA's up projections when they are absorbed (DeepSeek-AI, DeepSeek-V2, 2024,
    appendix C): keys W_uk c stay latent, since q . (W_uk c) = (W_uk^T q) . c, and so do values.

    ```mlir
    %a = llm.head_linear %q, %w {heads = 4 : i64} : tensor<?x96xf32>, tensor<64x16xf32> -> tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$input, Llm_WeightTensor:$weight, I64Attr:$heads,
                       OptionalAttr<Llm_FormatAttr>:$format);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$input `,` $weight attr-dict `:` type($input) `,` type($weight) `->` type($result)";
  let hasVerifier = 1;
}

def Llm_LatentAppendOp : Llm_Op<"latent_append", [Pure, AllTypesMatch<["cache", "result"]>]> {
  let summary = "appends a latent row and its rotated key, and makes queries for them";
  let description = [{
    The cache's one head has keys [latent (R values), rotated (P values)] and reads values out of the
    first R: `!llm.kv<1 x R+P x R x f32, latent>`. `latent` is [T, R], `key` [T, P] before its rotation.
    Queries become [T, H * (R + P)]: head h is its `absorbed` row [T, H * R], then the rotation of
    the last P values of its part of `query` [T, H * S].

    ```mlir
    %q1, %kv1 = llm.latent_append %a, %q, %c, %k, %kv angles(%r) {heads = 4 : i64}
        : tensor<?x64xf32>, tensor<?x96xf32>, tensor<?x16xf32>, tensor<?x8xf32>, !llm.kv<1 x 24 x 16 x f32, latent>
          angles tensor<?x2x4xf32> -> tensor<?x96xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$absorbed, Llm_Rows:$query, Llm_Rows:$latent, Llm_Rows:$key,
                       Llm_KvType:$cache, Llm_Rows:$angles, I64Attr:$heads, UnitAttr:$interleaved);
  let results = (outs Llm_Rows:$queries, Llm_KvType:$result);
  let assemblyFormat = [{
    $absorbed `,` $query `,` $latent `,` $key `,` $cache `angles` `(` $angles `)` attr-dict `:`
    type($absorbed) `,` type($query) `,` type($latent) `,` type($key) `,` type($cache)
    `angles` type($angles) `->` type($queries)
  }];
  let hasVerifier = 1;
}

#endif
