// Mixtures of experts and latent attention print what they parse, as text and as bytecode.
// RUN: llmc-opt %s | llmc-opt | FileCheck %s
// RUN: llmc-opt %s --emit-bytecode | llmc-opt | FileCheck %s

// CHECK-LABEL: func.func @mixture
func.func @mixture(%x: tensor<?x64xf32>, %l: tensor<?x8xf32>, %c: tensor<8xf32>, %up: tensor<512x64xf32>, %b: tensor<512xf32>,
                   %down: tensor<512x32xf32>, %h: tensor<?x64xf32>) {
  // CHECK: %[[E:.*]], %[[P:.*]] = llm.route softmax %{{.*}} {chosen = 2 : i64, normalize} : tensor<?x8xf32> -> tensor<?x2xi32>, tensor<?x2xf32>
  %e, %p = llm.route softmax %l {chosen = 2 : i64, normalize} : tensor<?x8xf32> -> tensor<?x2xi32>, tensor<?x2xf32>
  // CHECK: llm.route sigmoid %{{.*}} correction(%{{.*}}) {chosen = 2 : i64, group_best_two, groups = 4 : i64, scale = 2.500000e+00 : f64, top_groups = 2 : i64} : tensor<?x8xf32> correction tensor<8xf32> -> tensor<?x2xi32>, tensor<?x2xf32>
  %e1, %p1 = llm.route sigmoid %l correction(%c) {chosen = 2 : i64, group_best_two, groups = 4 : i64, scale = 2.5 : f64, top_groups = 2 : i64}
      : tensor<?x8xf32> correction tensor<8xf32> -> tensor<?x2xi32>, tensor<?x2xf32>
  // CHECK: llm.route softmax_chosen
  %e2, %p2 = llm.route softmax_chosen %l {chosen = 1 : i64} : tensor<?x8xf32> -> tensor<?x1xi32>, tensor<?x1xf32>
  // CHECK: llm.expert_linear %{{.*}}, %{{.*}}, %[[E]] bias(%{{.*}}) {alpha = 1.702000e+00 : f64, count = 8 : i64, glu, limit = 7.000000e+00 : f64} : tensor<?x64xf32>, tensor<512x64xf32>, tensor<?x2xi32> bias tensor<512xf32> -> tensor<?x64xf32>
  %g = llm.expert_linear %x, %up, %e bias(%b) {alpha = 1.702 : f64, count = 8 : i64, glu, limit = 7.0 : f64}
      : tensor<?x64xf32>, tensor<512x64xf32>, tensor<?x2xi32> bias tensor<512xf32> -> tensor<?x64xf32>
  // CHECK: llm.expert_linear %{{.*}}, %{{.*}}, %[[E]] {count = 8 : i64, format = #llm.format<i8, group = 32, scale = f16>} : tensor<?x64xf32>, tensor<512x32xf32>, tensor<?x2xi32> -> tensor<?x128xf32>
  %v = llm.expert_linear %g, %down, %e {count = 8 : i64, format = #llm.format<i8, group = 32, scale = f16>}
      : tensor<?x64xf32>, tensor<512x32xf32>, tensor<?x2xi32> -> tensor<?x128xf32>
  // CHECK: llm.combine %{{.*}}, %[[P]] residual(%{{.*}}) : tensor<?x128xf32>, tensor<?x2xf32> residual tensor<?x64xf32> -> tensor<?x64xf32>
  %y = llm.combine %v, %p residual(%h) : tensor<?x128xf32>, tensor<?x2xf32> residual tensor<?x64xf32> -> tensor<?x64xf32>
  // CHECK: llm.quantize %{{.*}} {slots = 2 : i64} : tensor<?x64xf32> -> tensor<?x64x!llm.q8<32>>
  %q = llm.quantize %g {slots = 2 : i64} : tensor<?x64xf32> -> tensor<?x64x!llm.q8<32>>
  // CHECK: llm.gather_rows %[[E]] : tensor<?x2xi32>
  %r = llm.gather_rows %e : tensor<?x2xi32>
  // CHECK: llm.activate sigmoid
  %s = llm.activate sigmoid %l : tensor<?x8xf32>
  return
}

// CHECK-LABEL: func.func @latent
func.func @latent(%q: tensor<?x96xf32>, %w: tensor<64x16xf32>, %c: tensor<?x16xf32>, %k: tensor<?x8xf32>, %r: tensor<?x2x4xf32>,
                  %s: tensor<4xf32>, %e: tensor<12x64xf32>) {
  // CHECK: llm.weight_stack %{{.*}}, %{{.*}} : tensor<12x64xf32>, tensor<12x64xf32> -> tensor<32x64xf32>
  %st = llm.weight_stack %e, %e : tensor<12x64xf32>, tensor<12x64xf32> -> tensor<32x64xf32>
  // CHECK: %[[A:.*]] = llm.head_linear %{{.*}}, %{{.*}} {heads = 4 : i64} : tensor<?x96xf32>, tensor<64x16xf32> -> tensor<?x64xf32>
  %a = llm.head_linear %q, %w {heads = 4 : i64} : tensor<?x96xf32>, tensor<64x16xf32> -> tensor<?x64xf32>
  // CHECK: llm.kv_cache 0 : <1 x 24 x 16 x f32, latent>
  %kv = llm.kv_cache 0 : !llm.kv<1 x 24 x 16 x f32, latent>
  // CHECK: llm.kv_cache 1 : <1 x 24 x 16 x f16, latent, paged>
  %paged = llm.kv_cache 1 : !llm.kv<1 x 24 x 16 x f16, latent, paged>
  // CHECK: llm.latent_append %[[A]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} angles(%{{.*}}) {heads = 4 : i64, interleaved}
  %q1, %kv1 = llm.latent_append %a, %q, %c, %k, %kv angles(%r) {heads = 4 : i64, interleaved}
      : tensor<?x64xf32>, tensor<?x96xf32>, tensor<?x16xf32>, tensor<?x8xf32>, !llm.kv<1 x 24 x 16 x f32, latent>
        angles tensor<?x2x4xf32> -> tensor<?x96xf32>
  // CHECK: llm.attention %{{.*}}, %{{.*}} sinks(%{{.*}}) {heads = 4 : i64, scale = 5.000000e-01 : f64} : tensor<?x96xf32>, <1 x 24 x 16 x f32, latent> sinks tensor<4xf32> -> tensor<?x64xf32>
  %o = llm.attention %q1, %kv1 sinks(%s) {heads = 4 : i64, scale = 0.5 : f64}
      : tensor<?x96xf32>, !llm.kv<1 x 24 x 16 x f32, latent> sinks tensor<4xf32> -> tensor<?x64xf32>
  return
}
