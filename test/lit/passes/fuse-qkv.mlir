// RUN: llmc-opt %s -llmc-fuse-qkv | FileCheck %s

// CHECK-LABEL: @three_projections
func.func @three_projections(%x: tensor<?x64xf32>, %a: tensor<?x2x8xf32>, %wq: tensor<64x64xf32>, %wk: tensor<32x64xf32>, %wv: tensor<32x64xf32>) -> tensor<?x64xf32> {
  // CHECK: %[[W:.*]] = llm.weight_concat %arg2, %arg3, %arg4
  // CHECK: %[[Y:.*]] = llm.linear %arg0, %[[W]] : tensor<?x64xf32>, tensor<128x64xf32> -> tensor<?x128xf32>
  // CHECK: %[[Q:.*]] = llm.columns %[[Y]] from 0 : {{.*}} -> tensor<?x64xf32>
  // CHECK: %[[K:.*]] = llm.columns %[[Y]] from 64 : {{.*}} -> tensor<?x32xf32>
  // CHECK: %[[V:.*]] = llm.columns %[[Y]] from 96 : {{.*}} -> tensor<?x32xf32>
  // CHECK: llm.rope %[[Q]]
  // CHECK: llm.rope %[[K]]
  // CHECK: llm.kv_append %{{.*}}, %{{.*}}, %[[V]]
  %q = llm.linear %x, %wq : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
  %k = llm.linear %x, %wk : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x32xf32>
  %v = llm.linear %x, %wv : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x32xf32>
  %q1 = llm.rope %q, %a {heads = 4 : i64} : tensor<?x64xf32>, tensor<?x2x8xf32>
  %k1 = llm.rope %k, %a {heads = 2 : i64} : tensor<?x32xf32>, tensor<?x2x8xf32>
  %c = llm.kv_cache 0 : !llm.kv<2 x 16 x 16 x f32>
  %c1 = llm.kv_append %c, %k1, %v : !llm.kv<2 x 16 x 16 x f32>, tensor<?x32xf32>, tensor<?x32xf32>
  %o = llm.attention %q1, %c1 {heads = 4 : i64, scale = 0.25 : f64} : tensor<?x64xf32>, !llm.kv<2 x 16 x 16 x f32> -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}

// V reads another tensor: nothing to join.
// CHECK-LABEL: @another_input_noop
// CHECK-NOT: llm.weight_concat
func.func @another_input_noop(%x: tensor<?x64xf32>, %z: tensor<?x64xf32>, %wq: tensor<64x64xf32>, %wk: tensor<32x64xf32>) -> tensor<?x64xf32> {
  %q = llm.linear %x, %wq : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
  %k = llm.linear %x, %wk : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x32xf32>
  %v = llm.linear %z, %wk : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x32xf32>
  %c = llm.kv_cache 0 : !llm.kv<2 x 16 x 16 x f32>
  %c1 = llm.kv_append %c, %k, %v : !llm.kv<2 x 16 x 16 x f32>, tensor<?x32xf32>, tensor<?x32xf32>
  %o = llm.attention %q, %c1 {heads = 4 : i64, scale = 0.25 : f64} : tensor<?x64xf32>, !llm.kv<2 x 16 x 16 x f32> -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}

// Q is 4-bit and V 8-bit in the file: one matrix could not hold both as they are.
// CHECK-LABEL: @mixed_encodings_noop
// CHECK-NOT: llm.weight_concat
func.func @mixed_encodings_noop(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %wq = llm.weight "q" from [#llm.source<0, 0, 2304>] as q4_0 : tensor<64x64xf32>
  %wk = llm.weight "k" from [#llm.source<0, 0, 1152>] as q4_0 : tensor<32x64xf32>
  %wv = llm.weight "v" from [#llm.source<0, 0, 2176>] as q8_0 : tensor<32x64xf32>
  %q = llm.linear %x, %wq : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
  %k = llm.linear %x, %wk : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x32xf32>
  %v = llm.linear %x, %wv : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x32xf32>
  %c = llm.kv_cache 0 : !llm.kv<2 x 16 x 16 x f32>
  %c1 = llm.kv_append %c, %k, %v : !llm.kv<2 x 16 x 16 x f32>, tensor<?x32xf32>, tensor<?x32xf32>
  %o = llm.attention %q, %c1 {heads = 4 : i64, scale = 0.25 : f64} : tensor<?x64xf32>, !llm.kv<2 x 16 x 16 x f32> -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}
