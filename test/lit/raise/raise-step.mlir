// RUN: llmc-opt %s --llmc-raise-step --split-input-file | FileCheck %s

// One layer of a decoder over padded batches: two query heads share one KV head, tied embedding, the mask is a
// comparison of positions.
// CHECK: module attributes {graph.model = {max_context = 128 : i64}, llm.files = ["m.data"], llm.model = {architecture = "decoder", heads = 2 : i64, hidden_size = 8 : i64, key_size = 4 : i64, kv_heads = 1 : i64, layers = 1 : i64, max_context = 128 : i64, value_size = 4 : i64, vocab_size = 16 : i64}}
module attributes {graph.model = {max_context = 128 : i64}} {
  // CHECK: func.func @step(%[[TOKENS:.*]]: tensor<?xi32>, %[[POSITIONS:.*]]: tensor<?xi32>) -> tensor<?x16xf32> {
  // CHECK-NEXT: %[[E:.*]] = llm.weight "embed" from [#llm.source<0, 0, 512>] as f32 : tensor<16x8xf32>
  // CHECK-NEXT: %[[X:.*]] = llm.embedding %[[TOKENS]], %[[E]]
  // CHECK-NEXT: %[[WQ:.*]] = llm.weight "wq" from [#llm.source<0, 512, 256>] as f32
  // CHECK-NEXT: %[[WQT:.*]] = llm.weight_transpose %[[WQ]]
  // CHECK-NEXT: %[[Q:.*]] = llm.linear %[[X]], %[[WQT]] : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  // CHECK: %[[K:.*]] = llm.linear %[[X]], %{{.*}} : tensor<?x8xf32>, tensor<4x8xf32> -> tensor<?x4xf32>
  // CHECK: %[[V:.*]] = llm.linear %[[X]], %{{.*}} : tensor<?x8xf32>, tensor<4x8xf32> -> tensor<?x4xf32>
  // CHECK-NEXT: %[[KV0:.*]] = llm.kv_cache 0 : <1 x 4 x 4 x f32>
  // CHECK-NEXT: %[[KV1:.*]] = llm.kv_append %[[KV0]], %[[K]], %[[V]]
  // CHECK-NEXT: %[[O:.*]] = llm.attention %[[Q]], %[[KV1]] {heads = 2 : i64, scale = 5.000000e-01 : f64}
  // CHECK-NEXT: %[[H:.*]] = llm.add %[[X]], %[[O]]
  // CHECK-NEXT: %[[R:.*]] = llm.gather_rows %[[H]]
  // CHECK-NEXT: %[[L:.*]] = llm.linear %[[R]], %[[E]] : tensor<?x8xf32>, tensor<16x8xf32> -> tensor<?x16xf32>
  // CHECK-NEXT: return %[[L]]
  func.func @main(%ids: tensor<?x?xi64> {graph.name = "input_ids"}, %am: tensor<?x?xi64> {graph.name = "attention_mask"},
                  %pos: tensor<?x?xi64> {graph.name = "position_ids"},
                  %pk: tensor<?x1x?x4xf32> {graph.name = "past_key_values.0.key"},
                  %pv: tensor<?x1x?x4xf32> {graph.name = "past_key_values.0.value"})
      -> (tensor<?x?x16xf32> {graph.name = "logits"}, tensor<?x1x?x4xf32> {graph.name = "present.0.key"},
          tensor<?x1x?x4xf32> {graph.name = "present.0.value"}) {
    %zero = graph.constant dense<0> : tensor<i64>
    %one = graph.constant dense<1> : tensor<i64>
    %e = graph.weight "embed" in "m.data" at 0 bytes 512 : tensor<16x8xf32>
    %wq = graph.weight "wq" in "m.data" at 512 bytes 256 : tensor<8x8xf32>
    %wk = graph.weight "wk" in "m.data" at 768 bytes 128 : tensor<8x4xf32>
    %wv = graph.weight "wv" in "m.data" at 896 bytes 128 : tensor<8x4xf32>
    %heads = graph.constant dense<[0, 0, 2, 4]> : tensor<4xi64>
    %kvHeads = graph.constant dense<[0, 0, 1, 4]> : tensor<4xi64>
    %joined = graph.constant dense<[0, 0, 8]> : tensor<3xi64>
    %x = graph.gather %e, %ids : (tensor<16x8xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
    %q = graph.matmul %x, %wq : (tensor<?x?x8xf32>, tensor<8x8xf32>) -> tensor<?x?x8xf32>
    %k = graph.matmul %x, %wk : (tensor<?x?x8xf32>, tensor<8x4xf32>) -> tensor<?x?x4xf32>
    %v = graph.matmul %x, %wv : (tensor<?x?x8xf32>, tensor<8x4xf32>) -> tensor<?x?x4xf32>
    %q4 = graph.reshape %q, %heads : (tensor<?x?x8xf32>, tensor<4xi64>) -> tensor<?x?x2x4xf32>
    %k4 = graph.reshape %k, %kvHeads : (tensor<?x?x4xf32>, tensor<4xi64>) -> tensor<?x?x1x4xf32>
    %v4 = graph.reshape %v, %kvHeads : (tensor<?x?x4xf32>, tensor<4xi64>) -> tensor<?x?x1x4xf32>
    %qt = graph.transpose %q4 {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x4xf32>) -> tensor<?x2x?x4xf32>
    %kt = graph.transpose %k4 {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x1x4xf32>) -> tensor<?x1x?x4xf32>
    %vt = graph.transpose %v4 {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x1x4xf32>) -> tensor<?x1x?x4xf32>
    %kc = graph.concat %pk, %kt {axis = 2 : i64} : (tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>) -> tensor<?x1x?x4xf32>
    %vc = graph.concat %pv, %vt {axis = -2 : i64} : (tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>) -> tensor<?x1x?x4xf32>
    // The mask: key position <= query position.
    %total = graph.shape %am {start = 1 : i64} : (tensor<?x?xi64>) -> tensor<1xi64>
    %scalar = graph.squeeze %total : (tensor<1xi64>) -> tensor<i64>
    %keys = graph.range %zero, %scalar, %one : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
    %two = graph.constant dense<[1, 3]> : tensor<2xi64>
    %queries = graph.unsqueeze %pos, %two : (tensor<?x?xi64>, tensor<2xi64>) -> tensor<?x1x?x1xi64>
    %mask = graph.compare le %keys, %queries : (tensor<?xi64>, tensor<?x1x?x1xi64>) -> tensor<?x1x?x?xi1>
    %a = graph.attention %qt, %kc, %vc mask %mask {scale = 0.5 : f32, resultSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<?x2x?x4xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x?xi1>) -> tensor<?x2x?x4xf32>
    %at = graph.transpose %a {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x2x?x4xf32>) -> tensor<?x?x2x4xf32>
    %ar = graph.reshape %at, %joined : (tensor<?x?x2x4xf32>, tensor<3xi64>) -> tensor<?x?x8xf32>
    %h = graph.binary add %x, %ar : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
    // The head is the same place of the file under another name: a tied weight is one.
    %tied = graph.weight "lm_head" in "m.data" at 0 bytes 512 : tensor<16x8xf32>
    %head = graph.transpose %tied {perm = array<i64: 1, 0>} : (tensor<16x8xf32>) -> tensor<8x16xf32>
    %l = graph.matmul %h, %head : (tensor<?x?x8xf32>, tensor<8x16xf32>) -> tensor<?x?x16xf32>
    return %l, %kc, %vc : tensor<?x?x16xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>
  }
}

// -----

// GroupQueryAttention with packed Q, K, V: columns, a rotary table, a window of local_window_size keys, a soft
// cap, quantized weights; the rotary table bounds the context.
// CHECK: llm.model = {{.*}}max_context = 32 : i64{{.*}}sliding_window = 8 : i64
// CHECK: %[[W:.*]] = llm.weight "wqkv" from [#llm.source<0, 512, 256>, #llm.source<0, 768, 64>] as nbits block 32 scales f32 {bits = 4 : i64} : tensor<16x32xf32>
// CHECK-NEXT: %[[QKV:.*]] = llm.linear %{{.*}}, %[[W]]
// CHECK-DAG: %[[Q:.*]] = llm.columns %[[QKV]] from 0 : tensor<?x16xf32> -> tensor<?x8xf32>
// CHECK-DAG: %[[K:.*]] = llm.columns %[[QKV]] from 8 : tensor<?x16xf32> -> tensor<?x4xf32>
// CHECK-DAG: %[[V:.*]] = llm.columns %[[QKV]] from 12 : tensor<?x16xf32> -> tensor<?x4xf32>
// CHECK: %[[A:.*]] = llm.rope_gather %{{.*}} : (tensor<?xi32>, tensor<32x2xf32>, tensor<32x2xf32>) -> tensor<?x2x2xf32>
// CHECK: llm.rope %[[Q]], %[[A]] {heads = 2 : i64}
// CHECK: llm.rope %[[K]], %[[A]] {heads = 1 : i64}
// CHECK: llm.attention {{.*}}heads = 2 : i64, scale = 5.000000e-01 : f64, softcap = 2.000000e+01 : f64, window = 8 : i64
module {
  func.func @main(%ids: tensor<?x?xi64> {graph.name = "input_ids"}, %am: tensor<?x?xi64> {graph.name = "attention_mask"},
                  %pk: tensor<?x1x?x4xf32> {graph.name = "past_key_values.0.key"},
                  %pv: tensor<?x1x?x4xf32> {graph.name = "past_key_values.0.value"})
      -> (tensor<?x?x8xf32> {graph.name = "logits"}, tensor<?x1x?x4xf32> {graph.name = "present.0.key"},
          tensor<?x1x?x4xf32> {graph.name = "present.0.value"}) {
    %axis = graph.constant dense<1> : tensor<1xi64>
    %one = graph.constant dense<1> : tensor<i64>
    %e = graph.weight "embed" in "m.data" at 0 bytes 512 : tensor<4x32xf32>
    %w = graph.weight "wqkv" in "m.data" at 512 bytes 256 : tensor<16x1x16xui8>
    %s = graph.weight "scales" in "m.data" at 768 bytes 64 : tensor<16xf32>
    %cos = graph.weight "cos" in "m.data" at 1024 bytes 256 : tensor<32x2xf32>
    %sin = graph.weight "sin" in "m.data" at 1280 bytes 256 : tensor<32x2xf32>
    %x = graph.gather %e, %ids : (tensor<4x32xf32>, tensor<?x?xi64>) -> tensor<?x?x32xf32>
    %qkv = graph.matmul_nbits %x, %w scales %s {K = 32 : i64, N = 16 : i64, bits = 4 : i64, block_size = 32 : i64} : (tensor<?x?x32xf32>, tensor<16x1x16xui8>, tensor<16xf32>) -> tensor<?x?x16xf32>
    %sum = graph.reduce sum %am axes %axis {keepdims = false} : (tensor<?x?xi64>, tensor<1xi64>) -> tensor<?xi64>
    %less = graph.binary sub %sum, %one : (tensor<?xi64>, tensor<i64>) -> tensor<?xi64>
    %lengths = graph.cast %less : (tensor<?xi64>) -> tensor<?xi32>
    %shape = graph.shape %am : (tensor<?x?xi64>) -> tensor<2xi64>
    %t = graph.gather %shape, %one : (tensor<2xi64>, tensor<i64>) -> tensor<i64>
    %total = graph.cast %t : (tensor<i64>) -> tensor<i32>
    %y, %k, %v = graph.group_query_attention %qkv past %pk, %pv lengths %lengths, %total cos %cos sin %sin {do_rotary, kv_num_heads = 1 : i64, num_heads = 2 : i64, local_window_size = 8 : i64, softcap = 20.0 : f32, resultSegmentSizes = array<i32: 1, 1, 1>} : (tensor<?x?x16xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>, tensor<?xi32>, tensor<i32>, tensor<32x2xf32>, tensor<32x2xf32>) -> (tensor<?x?x8xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>)
    return %y, %k, %v : tensor<?x?x8xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>
  }
}

// -----

// longrope as ONNX Runtime's model builder writes it: the tables are chosen by the context's length. The short ones do not
// bound the context.
// CHECK: llm.model = {{.*}}max_context = 128 : i64{{.*}}rope_original_context = 32 : i64
// CHECK: %[[SHORT:.*]] = llm.rope_gather %{{.*}} : (tensor<?xi32>, tensor<32x2xf32>, tensor<32x2xf32>)
// CHECK: %[[LONG:.*]] = llm.rope_gather %{{.*}} : (tensor<?xi32>, tensor<128x2xf32>, tensor<128x2xf32>)
// CHECK: %[[A:.*]] = llm.rope_select %[[SHORT]], %[[LONG]] : tensor<?x2x2xf32>
// CHECK: llm.rope %{{.*}}, %[[A]] {heads = 2 : i64}
// CHECK: llm.rope %{{.*}}, %[[A]] {heads = 1 : i64}
module {
  func.func @main(%ids: tensor<?x?xi64> {graph.name = "input_ids"}, %am: tensor<?x?xi64> {graph.name = "attention_mask"},
                  %pk: tensor<?x1x?x4xf32> {graph.name = "past_key_values.0.key"},
                  %pv: tensor<?x1x?x4xf32> {graph.name = "past_key_values.0.value"})
      -> (tensor<?x?x8xf32> {graph.name = "logits"}, tensor<?x1x?x4xf32> {graph.name = "present.0.key"},
          tensor<?x1x?x4xf32> {graph.name = "present.0.value"}) {
    %axis = graph.constant dense<1> : tensor<1xi64>
    %one = graph.constant dense<1> : tensor<i64>
    %e = graph.weight "embed" in "m.data" at 0 bytes 512 : tensor<4x32xf32>
    %w = graph.weight "wqkv" in "m.data" at 512 bytes 256 : tensor<16x1x16xui8>
    %s = graph.weight "scales" in "m.data" at 768 bytes 64 : tensor<16xf32>
    %cos = graph.weight "cos" in "m.data" at 1024 bytes 256 : tensor<32x2xf32>
    %sin = graph.weight "sin" in "m.data" at 1280 bytes 256 : tensor<32x2xf32>
    %longCos = graph.weight "long_cos" in "m.data" at 1536 bytes 1024 : tensor<128x2xf32>
    %longSin = graph.weight "long_sin" in "m.data" at 2560 bytes 1024 : tensor<128x2xf32>
    %original = graph.constant dense<32> : tensor<i64>
    %x = graph.gather %e, %ids : (tensor<4x32xf32>, tensor<?x?xi64>) -> tensor<?x?x32xf32>
    %qkv = graph.matmul_nbits %x, %w scales %s {K = 32 : i64, N = 16 : i64, bits = 4 : i64, block_size = 32 : i64} : (tensor<?x?x32xf32>, tensor<16x1x16xui8>, tensor<16xf32>) -> tensor<?x?x16xf32>
    %sum = graph.reduce sum %am axes %axis {keepdims = false} : (tensor<?x?xi64>, tensor<1xi64>) -> tensor<?xi64>
    %less = graph.binary sub %sum, %one : (tensor<?xi64>, tensor<i64>) -> tensor<?xi64>
    %lengths = graph.cast %less : (tensor<?xi64>) -> tensor<?xi32>
    %shape = graph.shape %am : (tensor<?x?xi64>) -> tensor<2xi64>
    %t = graph.gather %shape, %one : (tensor<2xi64>, tensor<i64>) -> tensor<i64>
    %total = graph.cast %t : (tensor<i64>) -> tensor<i32>
    %isLong = graph.compare lt %original, %t : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %tables:2 = graph.if %isLong : (tensor<i1>) -> (tensor<*xf32>, tensor<*xf32>) {
      graph.yield %longCos, %longSin : tensor<128x2xf32>, tensor<128x2xf32>
    } else {
      graph.yield %cos, %sin : tensor<32x2xf32>, tensor<32x2xf32>
    }
    %y, %k, %v = graph.group_query_attention %qkv past %pk, %pv lengths %lengths, %total cos %tables#0 sin %tables#1 {do_rotary, kv_num_heads = 1 : i64, num_heads = 2 : i64, local_window_size = 8 : i64, softcap = 20.0 : f32, resultSegmentSizes = array<i32: 1, 1, 1>} : (tensor<?x?x16xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>, tensor<?xi32>, tensor<i32>, tensor<*xf32>, tensor<*xf32>) -> (tensor<?x?x8xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>)
    return %y, %k, %v : tensor<?x?x8xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>
  }
}

// -----

// Cosines and sines as functions of the position: the frequencies are found in the graph. Q, K and V of a head are
// interleaved in the projection, so that its rows are put in order. There is no cache in the graph: one is made. The mask has
// a window of 3 keys.
// CHECK: rope_theta = 1.000000e+04
// CHECK: %[[W:.*]] = llm.weight "wqkv"
// CHECK: %[[T:.*]] = llm.weight_transpose %[[W]] : tensor<8x24xf32> -> tensor<24x8xf32>
// CHECK: %[[R0:.*]] = llm.weight_rows %[[T]] from 0 : tensor<24x8xf32> -> tensor<4x8xf32>
// CHECK: %[[R1:.*]] = llm.weight_rows %[[T]] from 12 : tensor<24x8xf32> -> tensor<4x8xf32>
// CHECK: %[[WQ:.*]] = llm.weight_concat %[[R0]], %[[R1]]
// CHECK: %[[Q:.*]] = llm.linear %{{.*}}, %[[WQ]]
// CHECK: %[[F:.*]] = llm.weight_constant dense<[1.000000e+00, 0.00999999977]> : tensor<2xf32>
// CHECK: %[[A:.*]] = llm.rope_angles %{{.*}}, %[[F]] : (tensor<?xi32>, tensor<2xf32>) -> tensor<?x2x2xf32>
// CHECK: llm.rope %[[Q]], %[[A]] {heads = 2 : i64}
// CHECK: llm.weight_rows %[[T]] from 4 :
// CHECK: llm.weight_rows %[[T]] from 16 :
// CHECK: llm.weight_rows %[[T]] from 8 :
// CHECK: llm.weight_rows %[[T]] from 20 :
// CHECK: llm.kv_cache 0 : <2 x 4 x 4 x f32>
// CHECK: llm.attention {{.*}}window = 3 : i64
module {
  func.func @main(%ids: tensor<?x?xi64> {graph.name = "input_ids"}, %pos: tensor<?x?xi64> {graph.name = "position_ids"})
      -> (tensor<?x?x8xf32> {graph.name = "logits"}) {
    %e = graph.weight "embed" in "m.data" at 0 bytes 128 : tensor<4x8xf32>
    %w = graph.weight "wqkv" in "m.data" at 128 bytes 768 : tensor<8x24xf32>
    %heads = graph.constant dense<[0, 0, 2, 12]> : tensor<4xi64>
    %joined = graph.constant dense<[0, 0, 8]> : tensor<3xi64>
    %f = graph.constant dense<[[[1.0, 0.01]]]> : tensor<1x1x2xf32>
    %last = graph.constant dense<[-1]> : tensor<1xi64>
    %three = graph.constant dense<3> : tensor<i64>
    %before = graph.constant dense<[1, 2]> : tensor<2xi64>
    %around = graph.constant dense<[1, 3]> : tensor<2xi64>
    %x = graph.gather %e, %ids : (tensor<4x8xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
    %qkv = graph.matmul %x, %w : (tensor<?x?x8xf32>, tensor<8x24xf32>) -> tensor<?x?x24xf32>
    %r = graph.reshape %qkv, %heads : (tensor<?x?x24xf32>, tensor<4xi64>) -> tensor<?x?x2x12xf32>
    %t = graph.transpose %r {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x12xf32>) -> tensor<?x2x?x12xf32>
    %q, %k, %v = graph.split %t {axis = 3 : i64} : (tensor<?x2x?x12xf32>) -> (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>)
    %p = graph.cast %pos : (tensor<?x?xi64>) -> tensor<?x?xf32>
    %pu = graph.unsqueeze %p, %last : (tensor<?x?xf32>, tensor<1xi64>) -> tensor<?x?x1xf32>
    %angle = graph.binary mul %pu, %f : (tensor<?x?x1xf32>, tensor<1x1x2xf32>) -> tensor<?x?x2xf32>
    %cos = graph.unary cos %angle : (tensor<?x?x2xf32>) -> tensor<?x?x2xf32>
    %sin = graph.unary sin %angle : (tensor<?x?x2xf32>) -> tensor<?x?x2xf32>
    %qr = graph.rotary_embedding %q cos %cos sin %sin : (tensor<?x2x?x4xf32>, tensor<?x?x2xf32>, tensor<?x?x2xf32>) -> tensor<?x2x?x4xf32>
    %kr = graph.rotary_embedding %k cos %cos sin %sin : (tensor<?x2x?x4xf32>, tensor<?x?x2xf32>, tensor<?x?x2xf32>) -> tensor<?x2x?x4xf32>
    %key = graph.unsqueeze %pos, %before : (tensor<?x?xi64>, tensor<2xi64>) -> tensor<?x1x1x?xi64>
    %query = graph.unsqueeze %pos, %around : (tensor<?x?xi64>, tensor<2xi64>) -> tensor<?x1x?x1xi64>
    %oldest = graph.binary sub %query, %three : (tensor<?x1x?x1xi64>, tensor<i64>) -> tensor<?x1x?x1xi64>
    %causal = graph.compare le %key, %query : (tensor<?x1x1x?xi64>, tensor<?x1x?x1xi64>) -> tensor<?x1x?x?xi1>
    %near = graph.compare gt %key, %oldest : (tensor<?x1x1x?xi64>, tensor<?x1x?x1xi64>) -> tensor<?x1x?x?xi1>
    %mask = graph.binary and %causal, %near : (tensor<?x1x?x?xi1>, tensor<?x1x?x?xi1>) -> tensor<?x1x?x?xi1>
    %a = graph.attention %qr, %kr, %v mask %mask {scale = 0.5 : f32, resultSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>, tensor<?x1x?x?xi1>) -> tensor<?x2x?x4xf32>
    %at = graph.transpose %a {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x2x?x4xf32>) -> tensor<?x?x2x4xf32>
    %ar = graph.reshape %at, %joined : (tensor<?x?x2x4xf32>, tensor<3xi64>) -> tensor<?x?x8xf32>
    return %ar : tensor<?x?x8xf32>
  }
}

// -----

// A graph for one sequence: its reshapes say 1 where the batch would be. Positions come from a learned table that starts two
// rows late, only the last token's logits are asked for.
// CHECK: func.func @step(%[[TOKENS:.*]]: tensor<?xi32>, %[[POSITIONS:.*]]: tensor<?xi32>)
// CHECK: %[[X:.*]] = llm.embedding %[[TOKENS]]
// CHECK: %[[ROWS:.*]] = llm.weight_rows %{{.*}} from 2 : tensor<34x8xf32> -> tensor<32x8xf32>
// CHECK: %[[P:.*]] = llm.embedding %[[POSITIONS]], %[[ROWS]]
// CHECK: %[[H:.*]] = llm.add %[[X]], %[[P]]
// CHECK: %[[G:.*]] = llm.activate gelu %[[H]]
// CHECK: llm.gather_rows %[[G]]
module {
  func.func @main(%ids: tensor<1x?xi64> {graph.name = "input_ids"}, %pos: tensor<1x?xi64> {graph.name = "position_ids"})
      -> (tensor<1x?x8xf32> {graph.name = "logits"}) {
    %e = graph.weight "embed" in "m.data" at 0 bytes 128 : tensor<4x8xf32>
    %p = graph.weight "positions" in "m.data" at 128 bytes 1088 : tensor<34x8xf32>
    %two = graph.constant dense<2> : tensor<i64>
    %to = graph.constant dense<[1, -1, 2, 4]> : tensor<4xi64>
    %back = graph.constant dense<[1, -1, 8]> : tensor<3xi64>
    %last = graph.constant dense<-1> : tensor<1xi64>
    %max = graph.constant dense<9223372036854775807> : tensor<1xi64>
    %one = graph.constant dense<1> : tensor<1xi64>
    %x = graph.gather %e, %ids : (tensor<4x8xf32>, tensor<1x?xi64>) -> tensor<1x?x8xf32>
    %at = graph.binary add %pos, %two : (tensor<1x?xi64>, tensor<i64>) -> tensor<1x?xi64>
    %y = graph.gather %p, %at : (tensor<34x8xf32>, tensor<1x?xi64>) -> tensor<1x?x8xf32>
    %h = graph.binary add %x, %y : (tensor<1x?x8xf32>, tensor<1x?x8xf32>) -> tensor<1x?x8xf32>
    %r = graph.reshape %h, %to : (tensor<1x?x8xf32>, tensor<4xi64>) -> tensor<1x?x2x4xf32>
    %b = graph.reshape %r, %back : (tensor<1x?x2x4xf32>, tensor<3xi64>) -> tensor<1x?x8xf32>
    %g = graph.unary gelu_erf %b : (tensor<1x?x8xf32>) -> tensor<1x?x8xf32>
    %s = graph.slice %g from %last to %max axes %one : (tensor<1x?x8xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<1x?x8xf32>
    return %s : tensor<1x?x8xf32>
  }
}

// -----

// ONNX 23 with everything folded: heads in the last dimension, rotary tables read by position_ids, the cache joined by the
// operation, which is causal by itself.
// CHECK: llm.model = {{.*}}max_context = 32 : i64
// CHECK: %[[Q:.*]] = llm.linear
// CHECK: %[[A:.*]] = llm.rope_gather %{{.*}} : (tensor<?xi32>, tensor<32x2xf32>, tensor<32x2xf32>) -> tensor<?x2x2xf32>
// CHECK: %[[R:.*]] = llm.rope %[[Q]], %[[A]] {heads = 2 : i64, interleaved} : tensor<?x16xf32>
// CHECK: llm.kv_cache 3 : <1 x 8 x 8 x f32>
// CHECK: llm.attention %[[R]], %{{.*}} {heads = 2 : i64, scale = 0.35355339059327373 : f64} : tensor<?x16xf32>
module {
  func.func @main(%ids: tensor<?x?xi64> {graph.name = "input_ids"}, %pos: tensor<?x?xi64> {graph.name = "position_ids"},
                  %pk: tensor<?x1x?x8xf32> {graph.name = "past_key_3"}, %pv: tensor<?x1x?x8xf32> {graph.name = "past_value_3"})
      -> (tensor<?x?x16xf32> {graph.name = "logits"}, tensor<?x1x?x8xf32> {graph.name = "present_key_3"},
          tensor<?x1x?x8xf32> {graph.name = "present_value_3"}) {
    %e = graph.weight "embed" in "m.data" at 0 bytes 128 : tensor<4x8xf32>
    %wq = graph.weight "wq" in "m.data" at 128 bytes 512 : tensor<8x16xf32>
    %wk = graph.weight "wk" in "m.data" at 640 bytes 256 : tensor<8x8xf32>
    %b = graph.weight "bk" in "m.data" at 896 bytes 32 : tensor<8xf32>
    %cos = graph.weight "cos" in "m.data" at 1024 bytes 256 : tensor<32x2xf32>
    %sin = graph.weight "sin" in "m.data" at 1280 bytes 256 : tensor<32x2xf32>
    %x = graph.gather %e, %ids : (tensor<4x8xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
    %q = graph.matmul %x, %wq : (tensor<?x?x8xf32>, tensor<8x16xf32>) -> tensor<?x?x16xf32>
    %k0 = graph.matmul %x, %wk : (tensor<?x?x8xf32>, tensor<8x8xf32>) -> tensor<?x?x8xf32>
    %k = graph.binary add %k0, %b : (tensor<?x?x8xf32>, tensor<8xf32>) -> tensor<?x?x8xf32>
    %qr = graph.rotary_embedding %q cos %cos sin %sin positions %pos {interleaved, num_heads = 2 : i64, rotary_dim = 4 : i64} : (tensor<?x?x16xf32>, tensor<32x2xf32>, tensor<32x2xf32>, tensor<?x?xi64>) -> tensor<?x?x16xf32>
    %kr = graph.rotary_embedding %k cos %cos sin %sin positions %pos {interleaved, num_heads = 1 : i64, rotary_dim = 4 : i64} : (tensor<?x?x8xf32>, tensor<32x2xf32>, tensor<32x2xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
    %y:3 = graph.attention %qr, %kr, %k past %pk, %pv {is_causal, q_num_heads = 2 : i64, kv_num_heads = 1 : i64, resultSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<?x?x16xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x1x?x8xf32>, tensor<?x1x?x8xf32>) -> (tensor<?x?x16xf32>, tensor<?x1x?x8xf32>, tensor<?x1x?x8xf32>)
    return %y#0, %y#1, %y#2 : tensor<?x?x16xf32>, tensor<?x1x?x8xf32>, tensor<?x1x?x8xf32>
  }
}
