//===- Attention.td - the KV cache and attention over it ----------*- tablegen -*-===//
#ifndef LLMC_DIALECTS_LLM_ATTENTION
#define LLMC_DIALECTS_LLM_ATTENTION

include "dialects/llm/LlmDialect.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Llm_KvCacheOp : Llm_Op<"kv_cache", [Pure]> {
  let summary = "the cache of one layer as it was before the step";
  let description = [{
    ```mlir
    %kv = llm.kv_cache 0 : !llm.kv<3 x 64 x 64 x f32>
    ```
  }];
  let arguments = (ins I64Attr:$layer);
  let results = (outs Llm_KvType:$result);
  let assemblyFormat = "$layer attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Llm_KvAppendOp : Llm_Op<"kv_append", [Pure, AllTypesMatch<["cache", "result"]>]> {
  let summary = "the cache with the step's keys and values added";
  let description = [{
    Keys are [T, kvHeads * keySize], values [T, kvHeads * valueSize], in the order of the step's
    tokens; each goes to its sequence's next place.

    ```mlir
    %kv1 = llm.kv_append %kv, %k, %v : !llm.kv<3 x 64 x 64 x f32>, tensor<?x192xf32>, tensor<?x192xf32>
    ```
  }];
  let arguments = (ins Llm_KvType:$cache, Llm_Rows:$keys, Llm_Rows:$values);
  let results = (outs Llm_KvType:$result);
  let assemblyFormat = "$cache `,` $keys `,` $values attr-dict `:` type($cache) `,` type($keys) `,` type($values)";
  let hasVerifier = 1;
}

def Llm_RopeAppendOp : Llm_Op<"rope_append", [Pure, AttrSizedOperandSegments, AllTypesMatch<["query", "rotated"]>, AllTypesMatch<["cache", "result"]>]> {
  let summary = "rotates Q and K and appends K and V, in one pass";
  let description = [{
    What `llmc-fuse-rope-append` makes of `rope`(q), `rope`(k), `kv_append`, and of the norms of each
    head of q and k before them where a model has those. The inputs may be `columns` of one matrix.

    ```mlir
    %q1, %kv1 = llm.rope_append %q, %k, %v, %kv angles(%a) {heads = 9 : i64}
        : tensor<?x576xf32>, tensor<?x192xf32>, tensor<?x192xf32>, !llm.kv<3 x 64 x 64 x f32> angles tensor<?x2x32xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$query, Llm_Rows:$keys, Llm_Rows:$values, Llm_KvType:$cache,
                       Optional<Llm_Rows>:$angles, Optional<Llm_WeightTensor>:$query_norm,
                       Optional<Llm_WeightTensor>:$key_norm, I64Attr:$heads, UnitAttr:$interleaved,
                       OptionalAttr<F64Attr>:$norm_eps, UnitAttr:$norm_plus_one);
  let results = (outs Llm_Rows:$rotated, Llm_KvType:$result);
  let assemblyFormat = [{
    $query `,` $keys `,` $values `,` $cache (`angles` `(` $angles^ `)`)?
    (`norms` `(` $query_norm^ `,` $key_norm `)`)? attr-dict `:`
    type($query) `,` type($keys) `,` type($values) `,` type($cache) (`angles` type($angles)^)?
    (`norms` type($query_norm)^ `,` type($key_norm))?
  }];
  let hasVerifier = 1;
}

def Llm_AttentionOp : Llm_Op<"attention", [Pure, AttrSizedOperandSegments]> {
  let summary = "causal attention of the step's queries over a cache";
  let description = [{
    q is [T, heads * keySize], the result [T, heads * valueSize]; query head h reads KV head
    h / (heads / kvHeads). A query at position p sees the keys of its own sequence at positions
    (p - window, p], all up to p without `window`. scores = q k^T * scale, then softcap * tanh(scores /
    softcap) where given, + alibi[h] * (j - p) for key position j where slopes [heads] are given (Press et
    al., 2022), then softmax. `sinks` [heads] join each row's softmax as one more score that has no
    value: some of the weight goes nowhere (Xiao et al., 2023; GPT-OSS). A query that sees no key gives
    zeros. A `latent` cache is read as `llm.latent_append` says.

    `key_tile` and `query_tile` are set by `llmc-tile-attention`: keys of one softmax step (a constant
    of the plan, part of what the result's bits are) and queries handled together (which is not). With
    `key_split` (a multiple of the key tile) the keys are cut every so many positions; each split has a
    softmax of its own and they are merged in ascending order, so that threads can share a long context.

    ```mlir
    %o = llm.attention %q, %kv {heads = 9 : i64, scale = 1.250000e-01 : f64}
         : tensor<?x576xf32>, !llm.kv<3 x 64 x 64 x f32> -> tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$query, Llm_KvType:$cache, Optional<Llm_WeightTensor>:$alibi,
                       Optional<Llm_WeightTensor>:$sinks, I64Attr:$heads, F64Attr:$scale,
                       OptionalAttr<I64Attr>:$window, OptionalAttr<F64Attr>:$softcap,
                       OptionalAttr<I64Attr>:$key_tile, OptionalAttr<I64Attr>:$query_tile,
                       OptionalAttr<I64Attr>:$key_split);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = [{
    $query `,` $cache (`alibi` `(` $alibi^ `)`)? (`sinks` `(` $sinks^ `)`)? attr-dict `:`
    type($query) `,` type($cache) (`alibi` type($alibi)^)? (`sinks` type($sinks)^)? `->` type($result)
  }];
  // No sinks, no window, no cap, not tiled or split.
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$query,
                                 "::mlir::Value":$cache, "::mlir::Value":$alibi, "int64_t":$heads,
                                 "double":$scale)>];
  let extraClassDeclaration = [{
    /// How many tasks share the query heads of a KV head. MLA's one head serves them all: parts of 16,
    /// or as near as divides, keep all threads at work. It has no influence on results.
    int64_t headTasks();
  }];
  let hasVerifier = 1;
}

#endif
