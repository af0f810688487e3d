//===- GraphComposite.td - Norms, rotary embedding, attention --------------===//

#ifndef LLMC_DIALECTS_GRAPH_COMPOSITE_TD
#define LLMC_DIALECTS_GRAPH_COMPOSITE_TD

include "dialects/graph/GraphDialect.td"

def Graph_LayerNormOp : Graph_Op<"layer_norm", [Graph_SameElement<"x", "y">]> {
  let summary = "(x - mean) / sqrt(variance + epsilon) * scale + bias over the dimensions from `axis` on";
  let description = [{ Computed in f32 whatever the element type. }];
  let arguments = (ins Graph_FloatTensor:$x, Graph_FloatTensor:$scale, Optional<Graph_FloatTensor>:$bias,
                       DefaultValuedAttr<I64Attr, "-1">:$axis, F32Attr:$epsilon);
  let results = (outs Graph_FloatTensor:$y);
  let assemblyFormat = "$x `scale` $scale (`bias` $bias^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Graph_RmsNormOp : Graph_Op<"rms_norm", [Graph_SameElement<"x", "y">]> {
  let summary = "x / sqrt(mean(x^2) + epsilon) * scale over the dimensions from `axis` on";
  let description = [{
    ONNX 23 RMSNormalization and ONNX Runtime's SimplifiedLayerNormalization; llmc-raise-norm writes it for the
    decomposed form. The skip variants are an add and this. Computed in f32 whatever the element type.

    ```mlir
    %y = graph.rms_norm %x scale %w {epsilon = 1.0e-5 : f32} : (tensor<?x?x576xf32>, tensor<576xf32>) -> tensor<?x?x576xf32>
    ```
  }];
  let arguments = (ins Graph_FloatTensor:$x, Graph_FloatTensor:$scale, DefaultValuedAttr<I64Attr, "-1">:$axis,
                       F32Attr:$epsilon);
  let results = (outs Graph_FloatTensor:$y);
  let assemblyFormat = "$x `scale` $scale attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Graph_RotaryEmbeddingOp : Graph_Op<"rotary_embedding", [Graph_SameElement<"x", "y">]> {
  let summary = "rotates pairs of the last dimension by angles given as cosines and sines";
  let description = [{
    x is [batch, heads, sequence, size], or [batch, sequence, heads * size] with `num_heads`. Without `position_ids`
    cos and sin are [batch or 1, sequence, rotated / 2], one angle a pair; with them they are tables
    [positions, rotated / 2] that position_ids [batch, sequence] index. `rotary_dim` (0: all) is how many leading
    elements of a head are rotated. Pairs are (i, i + rotated / 2), or (2i, 2i + 1) if `interleaved`.
    llmc-raise-rope writes it for the decomposed form; cos and sin then have full width or half width, and
    heads may be any dimension that they broadcast over.
  }];
  let arguments = (ins Graph_FloatTensor:$x, Graph_FloatTensor:$cos, Graph_FloatTensor:$sin,
                       Optional<Graph_IndexTensor>:$position_ids, UnitAttr:$interleaved,
                       DefaultValuedAttr<I64Attr, "0">:$num_heads, DefaultValuedAttr<I64Attr, "0">:$rotary_dim);
  let results = (outs Graph_FloatTensor:$y);
  let assemblyFormat = [{
    $x `cos` $cos `sin` $sin (`positions` $position_ids^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Graph_AttentionOp : Graph_Op<"attention", [AttrSizedOperandSegments, AttrSizedResultSegments, Graph_SameElement<"q", "y">]> {
  let summary = "softmax(q k^T * scale + mask) v (ONNX Attention, versions 23 and 24)";
  let description = [{
    q is [batch, heads, sequence, size] and k, v [batch, kv heads, keys, size], or rank 3 with heads folded into the
    last dimension and `q_num_heads`, `kv_num_heads` given. `mask` is i1 (true: may look) or float (added), broadcast to
    [batch, heads, sequence, keys]. With past_key and past_value the keys are past and new ones together and
    present_* are returned. `nonpad_kv_seqlen` [batch] counts the valid keys of a cache held outside. `is_causal`
    lets query i see key j if j <= i + (keys - sequence) (with past). Without `scale` it is 1 / sqrt(size). `softcap` c > 0
    maps a score s to c * tanh(s / c) before the mask is added. A row that sees no key gives zeros.
    `qk_matmul_output_mode` says which intermediate the fourth result is. `sinks` [heads] join each row's softmax as
    one more score, of a key without a value (written by llmc-raise-attention alone).
    llmc-raise-attention writes it for the decomposed form.
  }];
  let arguments = (ins Graph_FloatTensor:$q, Graph_FloatTensor:$k, Graph_FloatTensor:$v, Optional<Graph_Tensor>:$mask,
                       Optional<Graph_FloatTensor>:$past_key, Optional<Graph_FloatTensor>:$past_value,
                       Optional<Graph_IndexTensor>:$nonpad_kv_seqlen, Optional<Graph_FloatTensor>:$sinks,
                       UnitAttr:$is_causal, OptionalAttr<F32Attr>:$scale, DefaultValuedAttr<F32Attr, "0.0f">:$softcap,
                       DefaultValuedAttr<I64Attr, "0">:$q_num_heads, DefaultValuedAttr<I64Attr, "0">:$kv_num_heads,
                       DefaultValuedAttr<I64Attr, "0">:$qk_matmul_output_mode,
                       DefaultValuedAttr<I64Attr, "0">:$softmax_precision);
  let results = (outs Graph_FloatTensor:$y, Optional<Graph_FloatTensor>:$present_key,
                      Optional<Graph_FloatTensor>:$present_value, Optional<Graph_FloatTensor>:$qk);
  let assemblyFormat = [{
    $q `,` $k `,` $v (`mask` $mask^)? (`past` $past_key^ `,` $past_value)? (`valid` $nonpad_kv_seqlen^)?
    (`sinks` $sinks^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Graph_GroupQueryAttentionOp
    : Graph_Op<"group_query_attention", [AttrSizedOperandSegments, AttrSizedResultSegments, Graph_SameElement<"query", "y">]> {
  let summary = "attention with its cache and rotary embedding in one (com.microsoft GroupQueryAttention)";
  let description = [{
    query is [batch, sequence, heads * size], key and value [batch, sequence, kv heads * size]; with key and value
    missing, query holds all three one after the other. past_* are [batch, kv heads, past, size] or a shared buffer,
    seqlens_k [batch] is the length of each sequence with the new tokens, minus 1, and total_sequence_length the
    largest length. Always causal. `local_window_size` w > 0 lets a query see w keys, its own
    and those to its left, as ONNX Runtime from 1.23 on has it; -1 means all. cos_cache, sin_cache [positions, rotated / 2] are applied to query and key if
    `do_rotary`, at position_ids if given, else at each token's place in its sequence. `softcap` and `scale` as in
    graph.attention (scale 0: 1 / sqrt(size)). `attention_bias` is added to the scores; `head_sink` [heads] joins
    each row's softmax as one more score; `smooth_softmax` as a score of 0.
  }];
  let arguments = (ins Graph_FloatTensor:$query, Optional<Graph_FloatTensor>:$key, Optional<Graph_FloatTensor>:$value,
                       Optional<Graph_FloatTensor>:$past_key, Optional<Graph_FloatTensor>:$past_value,
                       Graph_IndexTensor:$seqlens_k, Graph_IndexTensor:$total_sequence_length,
                       Optional<Graph_FloatTensor>:$cos_cache, Optional<Graph_FloatTensor>:$sin_cache,
                       Optional<Graph_IndexTensor>:$position_ids, Optional<Graph_FloatTensor>:$attention_bias,
                       Optional<Graph_FloatTensor>:$head_sink,
                       I64Attr:$num_heads, I64Attr:$kv_num_heads, DefaultValuedAttr<F32Attr, "0.0f">:$scale,
                       DefaultValuedAttr<F32Attr, "0.0f">:$softcap, DefaultValuedAttr<I64Attr, "-1">:$local_window_size,
                       UnitAttr:$do_rotary, UnitAttr:$rotary_interleaved, UnitAttr:$smooth_softmax);
  let results = (outs Graph_FloatTensor:$y, Optional<Graph_FloatTensor>:$present_key,
                      Optional<Graph_FloatTensor>:$present_value);
  let assemblyFormat = [{
    $query (`key` $key^)? (`value` $value^)? (`past` $past_key^ `,` $past_value)? `lengths` $seqlens_k `,` $total_sequence_length
    (`cos` $cos_cache^)? (`sin` $sin_cache^)? (`positions` $position_ids^)? (`bias` $attention_bias^)? (`sink` $head_sink^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif
