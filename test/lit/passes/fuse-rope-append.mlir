// RUN: llmc-opt %s -llmc-fuse-rope-append | FileCheck %s

// CHECK-LABEL: @rope_and_norms
// CHECK: %[[C:.*]] = llm.kv_cache 0
// CHECK-NEXT: %[[Q:.*]], %[[KV:.*]] = llm.rope_append %arg0, %arg1, %arg2, %[[C]] angles(%arg3) norms(%arg4, %arg4) {heads = 4 : i64, norm_eps = 5.000000e-01 : f64}
// CHECK-NEXT: llm.attention %[[Q]], %[[KV]]
func.func @rope_and_norms(%q: tensor<?x64xf32>, %k: tensor<?x32xf32>, %v: tensor<?x32xf32>, %a: tensor<?x2x8xf32>, %n: tensor<16xf32>) -> tensor<?x64xf32> {
  %c = llm.kv_cache 0 : !llm.kv<2 x 16 x 16 x f32>
  %qn = llm.rms_norm %q, %n {eps = 0.5 : f64, group_size = 16 : i64} : tensor<?x64xf32>, tensor<16xf32> -> tensor<?x64xf32>
  %kn = llm.rms_norm %k, %n {eps = 0.5 : f64, group_size = 16 : i64} : tensor<?x32xf32>, tensor<16xf32> -> tensor<?x32xf32>
  %q1 = llm.rope %qn, %a {heads = 4 : i64} : tensor<?x64xf32>, tensor<?x2x8xf32>
  %k1 = llm.rope %kn, %a {heads = 2 : i64} : tensor<?x32xf32>, tensor<?x2x8xf32>
  %c1 = llm.kv_append %c, %k1, %v : !llm.kv<2 x 16 x 16 x f32>, tensor<?x32xf32>, tensor<?x32xf32>
  %o = llm.attention %q1, %c1 {heads = 4 : i64, scale = 0.25 : f64} : tensor<?x64xf32>, !llm.kv<2 x 16 x 16 x f32> -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}

// A model without RoPE: the append alone.
// CHECK-LABEL: @no_rope
// CHECK: llm.rope_append %arg0, %arg1, %arg1, %{{.*}} {heads = 4 : i64}
func.func @no_rope(%q: tensor<?x64xf32>, %k: tensor<?x32xf32>) -> tensor<?x64xf32> {
  %c = llm.kv_cache 0 : !llm.kv<2 x 16 x 16 x f32>
  %c1 = llm.kv_append %c, %k, %k : !llm.kv<2 x 16 x 16 x f32>, tensor<?x32xf32>, tensor<?x32xf32>
  %o = llm.attention %q, %c1 {heads = 4 : i64, scale = 0.25 : f64} : tensor<?x64xf32>, !llm.kv<2 x 16 x 16 x f32> -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}
