// RUN: llmc-opt %s -split-input-file -verify-diagnostics

func.func @too_many_chosen(%l: tensor<?x4xf32>) {
  // expected-error @+1 {{chooses 5 of 4 experts}}
  %e, %p = llm.route softmax %l {chosen = 5 : i64} : tensor<?x4xf32> -> tensor<?x5xi32>, tensor<?x5xf32>
  return
}

// -----

func.func @groups_alone(%l: tensor<?x4xf32>) {
  // expected-error @+1 {{needs 'groups' and 'top_groups' together}}
  %e, %p = llm.route softmax %l {chosen = 1 : i64, groups = 2 : i64} : tensor<?x4xf32> -> tensor<?x1xi32>, tensor<?x1xf32>
  return
}

// -----

func.func @more_than_the_groups_hold(%l: tensor<?x8xf32>) {
  // expected-error @+1 {{chooses 3 experts of 1 groups of 2}}
  %e, %p = llm.route softmax %l {chosen = 3 : i64, groups = 4 : i64, top_groups = 1 : i64} : tensor<?x8xf32> -> tensor<?x3xi32>, tensor<?x3xf32>
  return
}

// -----

func.func @correction(%l: tensor<?x4xf32>, %c: tensor<3xf32>) {
  // expected-error @+1 {{correction must be tensor<4xf32>}}
  %e, %p = llm.route sigmoid %l correction(%c) {chosen = 1 : i64} : tensor<?x4xf32> correction tensor<3xf32> -> tensor<?x1xi32>, tensor<?x1xf32>
  return
}

// -----

func.func @half_tiles(%x: tensor<?x8xf32>, %w: tensor<40x8xf32>, %e: tensor<?x1xi32>) {
  // expected-error @+1 {{40 weight rows are not 2 matrices of whole tiles of 16 rows}}
  %y = llm.expert_linear %x, %w, %e {count = 2 : i64} : tensor<?x8xf32>, tensor<40x8xf32>, tensor<?x1xi32> -> tensor<?x20xf32>
  return
}

// -----

func.func @limit_without_alpha(%x: tensor<?x8xf32>, %w: tensor<64x8xf32>, %e: tensor<?x1xi32>) {
  // expected-error @+1 {{has 'limit' without 'alpha'}}
  %y = llm.expert_linear %x, %w, %e {count = 2 : i64, glu, limit = 7.0 : f64} : tensor<?x8xf32>, tensor<64x8xf32>, tensor<?x1xi32> -> tensor<?x16xf32>
  return
}

// -----

func.func @expert_inputs(%x: tensor<?x12xf32>, %w: tensor<32x8xf32>, %e: tensor<?x2xi32>) {
  // expected-error @+1 {{input has 12 columns; 8 or 2 x 8 are needed}}
  %y = llm.expert_linear %x, %w, %e {count = 2 : i64} : tensor<?x12xf32>, tensor<32x8xf32>, tensor<?x2xi32> -> tensor<?x32xf32>
  return
}

// -----

func.func @combine(%v: tensor<?x33xf32>, %p: tensor<?x2xf32>) {
  // expected-error @+1 {{values must be tensor<?x32>}}
  %y = llm.combine %v, %p : tensor<?x33xf32>, tensor<?x2xf32> -> tensor<?x16xf32>
  return
}

// -----

func.func @stack(%a: tensor<12x8xf32>, %b: tensor<13x8xf32>) {
  // expected-error @+1 {{stacks weights of one shape}}
  %s = llm.weight_stack %a, %b : tensor<12x8xf32>, tensor<13x8xf32> -> tensor<32x8xf32>
  return
}

// -----

func.func @values_beyond_keys() {
  // expected-error @+1 {{value size 32 is above key size 24}}
  %kv = llm.kv_cache 0 : !llm.kv<1 x 24 x 32 x f32, latent>
  return
}

// -----

func.func @append_to_latent(%k: tensor<?x24xf32>, %v: tensor<?x16xf32>) {
  %kv = llm.kv_cache 0 : !llm.kv<1 x 24 x 16 x f32, latent>
  // expected-error @+1 {{a latent cache takes llm.latent_append}}
  %kv1 = llm.kv_append %kv, %k, %v : !llm.kv<1 x 24 x 16 x f32, latent>, tensor<?x24xf32>, tensor<?x16xf32>
  return
}

// -----

func.func @latent_append_to_plain(%a: tensor<?x64xf32>, %q: tensor<?x96xf32>, %c: tensor<?x16xf32>, %k: tensor<?x8xf32>, %r: tensor<?x2x4xf32>) {
  %kv = llm.kv_cache 0 : !llm.kv<1 x 24 x 16 x f32>
  // expected-error @+1 {{needs a latent cache of one head}}
  %q1, %kv1 = llm.latent_append %a, %q, %c, %k, %kv angles(%r) {heads = 4 : i64}
      : tensor<?x64xf32>, tensor<?x96xf32>, tensor<?x16xf32>, tensor<?x8xf32>, !llm.kv<1 x 24 x 16 x f32> angles tensor<?x2x4xf32> -> tensor<?x96xf32>
  return
}

// -----

func.func @sinks(%q: tensor<?x64xf32>, %s: tensor<3xf32>) {
  %kv = llm.kv_cache 0 : !llm.kv<2 x 16 x 16 x f32>
  // expected-error @+1 {{sinks must be tensor<4xf32>}}
  %o = llm.attention %q, %kv sinks(%s) {heads = 4 : i64, scale = 0.5 : f64} : tensor<?x64xf32>, !llm.kv<2 x 16 x 16 x f32> sinks tensor<3xf32> -> tensor<?x64xf32>
  return
}

// -----

func.func @slots(%x: tensor<?x96xf32>) {
  // expected-error @+1 {{96 columns do not divide into 2 rows of whole groups of 32}}
  %q = llm.quantize %x {slots = 2 : i64} : tensor<?x96xf32> -> tensor<?x96x!llm.q8<32>>
  return
}
