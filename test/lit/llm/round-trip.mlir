// Every operation of the llm dialect prints what it parses, as text and as bytecode.
// RUN: llmc-opt %s | llmc-opt | FileCheck %s
// RUN: llmc-opt %s --emit-bytecode | llmc-opt | FileCheck %s

// CHECK: llm.files = ["a.safetensors", "b.safetensors"]
module attributes {llm.files = ["a.safetensors", "b.safetensors"], llm.model = {architecture = "llama", layers = 1 : i64}} {

// CHECK-LABEL: func.func @weights
func.func @weights() {
  // CHECK: %[[A:.*]] = llm.weight "a" from [#llm.source<0, 64, 4096>] as bf16 : tensor<64x32xf32>
  %a = llm.weight "a" from [#llm.source<0, 64, 4096>] as bf16 : tensor<64x32xf32>
  // CHECK: llm.weight "q" from [#llm.source<1, 0, 1152>] as q4_0 : tensor<64x32xf32>
  %q = llm.weight "q" from [#llm.source<1, 0, 1152>] as q4_0 : tensor<64x32xf32>
  // CHECK: llm.weight "n" from [#llm.source<0, 0, 1024>, #llm.source<0, 1024, 256>] as nbits block 32 scales f32 : tensor<64x32xf32>
  %n = llm.weight "n" from [#llm.source<0, 0, 1024>, #llm.source<0, 1024, 256>] as nbits block 32 scales f32 : tensor<64x32xf32>
  // CHECK: as block_int4 block 32 scales f16 {blocks_down, signed_codes} : tensor<32x64xf32>
  %d = llm.weight "d" from [#llm.source<0, 0, 1024>, #llm.source<0, 1024, 128>] as block_int4 block 32 scales f16 {blocks_down, signed_codes} : tensor<32x64xf32>
  // CHECK: llm.weight_constant dense<[1.000000e+00, 5.000000e-01]> : tensor<2xf32>
  %c = llm.weight_constant dense<[1.0, 0.5]> : tensor<2xf32>
  // CHECK: llm.weight_transpose %[[A]] : tensor<64x32xf32> -> tensor<32x64xf32>
  %t = llm.weight_transpose %a : tensor<64x32xf32> -> tensor<32x64xf32>
  // CHECK: llm.weight_concat %[[A]], %{{.*}} : tensor<64x32xf32>, tensor<64x32xf32> -> tensor<128x32xf32>
  %j = llm.weight_concat %a, %q : tensor<64x32xf32>, tensor<64x32xf32> -> tensor<128x32xf32>
  // CHECK: llm.weight_interleave %[[A]], %{{.*}} : tensor<64x32xf32> -> tensor<128x32xf32>
  %i = llm.weight_interleave %a, %q : tensor<64x32xf32> -> tensor<128x32xf32>
  // CHECK: llm.weight_rows %[[A]] from 16 : tensor<64x32xf32> -> tensor<8x32xf32>
  %r = llm.weight_rows %a from 16 : tensor<64x32xf32> -> tensor<8x32xf32>
  // CHECK: llm.weight_unpermute %[[A]] heads 4 : tensor<64x32xf32>
  %u = llm.weight_unpermute %a heads 4 : tensor<64x32xf32>
  // CHECK: llm.weight_reshape %[[A]] : tensor<64x32xf32> -> tensor<2048xf32>
  %s = llm.weight_reshape %a : tensor<64x32xf32> -> tensor<2048xf32>
  return
}

// CHECK-LABEL: func.func @rows
func.func @rows(%tokens: tensor<?xi32>, %x: tensor<?x64xf32>, %y: tensor<?x64xf32>, %w: tensor<96x64xf32>, %b: tensor<96xf32>,
                %r: tensor<?x96xf32>, %g: tensor<64xf32>, %table: tensor<128x64xf32>, %gu: tensor<64x64xf32>) {
  // CHECK: llm.embedding %{{.*}}, %{{.*}} {format = #llm.format<i8, group = 32, scale = f16>} : (tensor<?xi32>, tensor<128x64xf32>) -> tensor<?x64xf32>
  %e = llm.embedding %tokens, %table {format = #llm.format<i8, group = 32, scale = f16>} : (tensor<?xi32>, tensor<128x64xf32>) -> tensor<?x64xf32>
  // CHECK: llm.gather_rows %{{.*}} : tensor<?x64xf32>
  %gr = llm.gather_rows %x : tensor<?x64xf32>
  // CHECK: llm.linear %{{.*}}, %{{.*}} : tensor<?x64xf32>, tensor<96x64xf32> -> tensor<?x96xf32>
  %l0 = llm.linear %x, %w : tensor<?x64xf32>, tensor<96x64xf32> -> tensor<?x96xf32>
  // CHECK: %[[Q:.*]] = llm.quantize %{{.*}} : tensor<?x64xf32> -> tensor<?x64x!llm.q8<32>>
  %q = llm.quantize %x : tensor<?x64xf32> -> tensor<?x64x!llm.q8<32>>
  // CHECK: llm.linear %[[Q]], %{{.*}} bias(%{{.*}}) residual(%{{.*}}) {activation = {{.*}}silu{{.*}}, format = #llm.format<i4, group = 32, scale = f16, min>} : tensor<?x64x!llm.q8<32>>, tensor<96x64xf32> bias tensor<96xf32> residual tensor<?x96xf32> -> tensor<?x96xf32>
  %l1 = llm.linear %q, %w bias(%b) residual(%r) {activation = #llm<activation_kind silu>, format = #llm.format<i4, group = 32, scale = f16, min>}
      : tensor<?x64x!llm.q8<32>>, tensor<96x64xf32> bias tensor<96xf32> residual tensor<?x96xf32> -> tensor<?x96xf32>
  // CHECK: llm.linear %{{.*}}, %{{.*}} {glu} : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x32xf32>
  %l2 = llm.linear %x, %gu {glu} : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x32xf32>
  // CHECK: llm.rms_norm %{{.*}}, %{{.*}} {eps = 1.000000e-05 : f64, plus_one} : tensor<?x64xf32>, tensor<64xf32> -> tensor<?x64x!llm.q8<16>>
  %n0 = llm.rms_norm %x, %g {eps = 1.0e-05 : f64, plus_one} : tensor<?x64xf32>, tensor<64xf32> -> tensor<?x64x!llm.q8<16>>
  // CHECK: llm.layer_norm %{{.*}}, %{{.*}}, %{{.*}} {eps = 1.000000e-05 : f64} : tensor<?x64xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<?x64xf32>
  %n1 = llm.layer_norm %x, %g, %g {eps = 1.0e-05 : f64} : tensor<?x64xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<?x64xf32>
  // CHECK: llm.glu silu %{{.*}}, %{{.*}} : tensor<?x64xf32>
  %m0 = llm.glu silu %x, %y : tensor<?x64xf32>
  // CHECK: llm.activate gelu_tanh %{{.*}} : tensor<?x64xf32>
  %m1 = llm.activate gelu_tanh %x : tensor<?x64xf32>
  // CHECK: llm.add %{{.*}}, %{{.*}} : tensor<?x64xf32>
  %m2 = llm.add %x, %y : tensor<?x64xf32>
  // CHECK: llm.mul %{{.*}}, %{{.*}} : tensor<?x64xf32>
  %m3 = llm.mul %x, %y : tensor<?x64xf32>
  // CHECK: llm.scale %{{.*}} by 2.500000e+01 : tensor<?x64xf32>
  %m4 = llm.scale %x by 25.0 : tensor<?x64xf32>
  // CHECK: llm.softcap %{{.*}} at 3.000000e+01 : tensor<?x64xf32>
  %m5 = llm.softcap %x at 30.0 : tensor<?x64xf32>
  // CHECK: llm.columns %{{.*}} from 32 : tensor<?x64xf32> -> tensor<?x16xf32>
  %m6 = llm.columns %x from 32 : tensor<?x64xf32> -> tensor<?x16xf32>
  return
}

// CHECK-LABEL: func.func @attention
func.func @attention(%positions: tensor<?xi32>, %q: tensor<?x64xf32>, %k: tensor<?x32xf32>, %v: tensor<?x32xf32>, %f: tensor<8xf32>,
                     %cos: tensor<256x8xf32>, %sin: tensor<256x8xf32>, %n: tensor<16xf32>) {
  // CHECK: %[[A:.*]] = llm.rope_angles %{{.*}}, %{{.*}} {scale = 5.000000e-01 : f64} : (tensor<?xi32>, tensor<8xf32>) -> tensor<?x2x8xf32>
  %a = llm.rope_angles %positions, %f {scale = 0.5 : f64} : (tensor<?xi32>, tensor<8xf32>) -> tensor<?x2x8xf32>
  // CHECK: llm.rope_gather %{{.*}} : (tensor<?xi32>, tensor<256x8xf32>, tensor<256x8xf32>) -> tensor<?x2x8xf32>
  %t = llm.rope_gather %positions, %cos, %sin : (tensor<?xi32>, tensor<256x8xf32>, tensor<256x8xf32>) -> tensor<?x2x8xf32>
  // CHECK: llm.rope_select %[[A]], %{{.*}} : tensor<?x2x8xf32>
  %s = llm.rope_select %a, %t : tensor<?x2x8xf32>
  // CHECK: llm.rope %{{.*}}, %[[A]] {heads = 4 : i64, interleaved} : tensor<?x64xf32>, tensor<?x2x8xf32>
  %r = llm.rope %q, %a {heads = 4 : i64, interleaved} : tensor<?x64xf32>, tensor<?x2x8xf32>
  // CHECK: %[[C:.*]] = llm.kv_cache 3 : <2 x 16 x 16 x bf16, paged>
  %c = llm.kv_cache 3 : !llm.kv<2 x 16 x 16 x bf16, paged>
  // CHECK: llm.kv_append %[[C]], %{{.*}}, %{{.*}} : <2 x 16 x 16 x bf16, paged>, tensor<?x32xf32>, tensor<?x32xf32>
  %c1 = llm.kv_append %c, %k, %v : !llm.kv<2 x 16 x 16 x bf16, paged>, tensor<?x32xf32>, tensor<?x32xf32>
  // CHECK: llm.rope_append %{{.*}}, %{{.*}}, %{{.*}}, %[[C]] angles(%[[A]]) norms(%{{.*}}, %{{.*}}) {heads = 4 : i64, norm_eps = 1.562500e-02 : f64}
  %q2, %c2 = llm.rope_append %q, %k, %v, %c angles(%a) norms(%n, %n) {heads = 4 : i64, norm_eps = 0.015625 : f64}
      : tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>, !llm.kv<2 x 16 x 16 x bf16, paged> angles tensor<?x2x8xf32> norms tensor<16xf32>, tensor<16xf32>
  // CHECK: llm.attention %{{.*}}, %{{.*}} alibi(%{{.*}}) {heads = 4 : i64, scale = 2.500000e-01 : f64} : {{.*}} alibi tensor<4xf32> -> tensor<?x64xf32>
  %slopes = llm.weight_constant dense<[0.5, 0.25, 0.125, 0.0625]> : tensor<4xf32>
  %biased = llm.attention %q2, %c2 alibi(%slopes) {heads = 4 : i64, scale = 0.25 : f64} : tensor<?x64xf32>, !llm.kv<2 x 16 x 16 x bf16, paged> alibi tensor<4xf32> -> tensor<?x64xf32>
  // CHECK: llm.attention %{{.*}}, %{{.*}} {heads = 4 : i64, scale = 2.500000e-01 : f64, softcap = 5.000000e+01 : f64, window = 128 : i64}
  %o = llm.attention %q2, %c2 {heads = 4 : i64, scale = 0.25 : f64, softcap = 50.0 : f64, window = 128 : i64}
      : tensor<?x64xf32>, !llm.kv<2 x 16 x 16 x bf16, paged> -> tensor<?x64xf32>
  return
}
}
