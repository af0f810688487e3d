// What the passes do with mixtures of experts and latent attention.
// RUN: llmc-opt %s -split-input-file --llmc-fuse-epilogue --llmc-hoist-gather-rows --cse | FileCheck %s --check-prefix=FUSE
// RUN: llmc-opt %s -split-input-file --llmc-fuse-epilogue --llmc-hoist-gather-rows --llmc-quantize-weights=scheme=int4 --llmc-quantize-activations --llmc-select-kv-layout --llmc-tile-attention --llmc-lower-to-plan | FileCheck %s --check-prefix=PLAN

// The residual is added by the sum of the experts, and the mixture runs for the wanted rows only.
// FUSE-LABEL: func.func @step
// FUSE: %[[R:.*]] = llm.gather_rows %{{.*}} : tensor<?x64xf32>
// FUSE-NOT: llm.gather_rows
// FUSE: %[[L:.*]] = llm.linear %[[R]]
// FUSE: %[[E:.*]], %[[P:.*]] = llm.route softmax %[[L]]
// FUSE: %[[U:.*]] = llm.expert_linear %[[R]], %{{.*}}, %[[E]]
// FUSE: %[[V:.*]] = llm.expert_linear %[[U]], %{{.*}}, %[[E]]
// FUSE: llm.combine %[[V]], %[[P]] residual(%[[R]])
// FUSE-NOT: llm.add

// Experts become integers, the router stays as it is; each chosen expert's rows are quantized by themselves.
// PLAN-LABEL: plan.program
// PLAN: plan.weight "linear" %{{.*}} as <f32>
// PLAN: plan.kernel @gemm_0 "gemm"
// PLAN: plan.kernel @route_0 "route" ["logits", "ids", "weights"] {chosen = 2 : i64, experts = 4 : i64, normalize = 1 : i64, rows = 1 : i64, scale = 1.000000e+00 : f64}
// PLAN: plan.command "route"{{.*}} tasks <1 R>
// PLAN: plan.weight "experts_up" %{{.*}} as <i4, group = 32, scale = f16>
// PLAN: plan.kernel @grouped_gemm_0 "grouped_gemm" ["x", "w", "ids", "y"] {activation = 1 : i64, chosen = 1 : i64, glu = 1 : i64, group = 32 : i64, groups = 4 : i64, k = 64 : i64, n = 64 : i64, rows = 1 : i64, slots = 2 : i64, task_tiles = 4 : i64, w_element = 4 : i64, w_group = 32 : i64, w_packing = 2 : i64, w_scale = 1 : i64, x_int8 = 1 : i64}
// PLAN: plan.command "experts_up"{{.*}} tasks <1>
// PLAN: plan.kernel @quantize_{{.*}} {group = 32 : i64, k = 32 : i64, rows = 1 : i64, slots = 2 : i64}
// PLAN: plan.command "quantize"{{.*}} tasks <2 R>
// PLAN: plan.kernel @grouped_gemm_1 "grouped_gemm"{{.*}}x_stride = 32 : i64
// PLAN: plan.kernel @combine_0 "combine" ["values", "weights", "residual", "y"] {d = 64 : i64, residual = 1 : i64, rows = 1 : i64, slots = 2 : i64}
module {
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %t = llm.weight "t" from [#llm.source<0, 0, 16384>] as f32 : tensor<64x64xf32>
  %wr = llm.weight "r" from [#llm.source<0, 0, 1024>] as f32 : tensor<4x64xf32>
  %up = llm.weight "u" from [#llm.source<0, 0, 65536>] as f32 : tensor<256x64xf32>
  %down = llm.weight "d" from [#llm.source<0, 0, 32768>] as f32 : tensor<256x32xf32>
  %x = llm.embedding %tokens, %t : (tensor<?xi32>, tensor<64x64xf32>) -> tensor<?x64xf32>
  %l = llm.linear %x, %wr : tensor<?x64xf32>, tensor<4x64xf32> -> tensor<?x4xf32>
  %e, %p = llm.route softmax %l {chosen = 2 : i64, normalize} : tensor<?x4xf32> -> tensor<?x2xi32>, tensor<?x2xf32>
  %u = llm.expert_linear %x, %up, %e {activation = #llm<activation_kind silu>, count = 4 : i64, glu}
      : tensor<?x64xf32>, tensor<256x64xf32>, tensor<?x2xi32> -> tensor<?x64xf32>
  %v = llm.expert_linear %u, %down, %e {count = 4 : i64} : tensor<?x64xf32>, tensor<256x32xf32>, tensor<?x2xi32> -> tensor<?x128xf32>
  %y = llm.combine %v, %p : tensor<?x128xf32>, tensor<?x2xf32> -> tensor<?x64xf32>
  %h = llm.add %x, %y : tensor<?x64xf32>
  %g = llm.gather_rows %h : tensor<?x64xf32>
  return %g : tensor<?x64xf32>
}
}

// -----

// A latent cache has its keys alone; the heads are shared out over tasks.
// PLAN-LABEL: plan.program
// PLAN-SAME: kv [!llm.kv<1 x 24 x 16 x f16, latent, paged>]
// PLAN: plan.kernel @grouped_gemm_0 "grouped_gemm" ["x", "w", "y"] {groups = 32 : i64, k = 16 : i64, n = 16 : i64, slots = 32 : i64, task_tiles = 4 : i64,{{.*}}x_stride = 24 : i64}
// PLAN: plan.command "layers.0.latent_queries"{{.*}} tasks <32>
// PLAN: plan.kernel @latent_append_0 "latent_append" ["absorbed", "query", "latent", "key", "angles", "queries"] {heads = 32 : i64, interleaved = 1 : i64, kv_element = 1 : i64, latent = 16 : i64, rotary = 8 : i64, stride = 24 : i64}
// PLAN: plan.kernel @attention_0 "attention" ["q", "y"] {head_tasks = 2 : i64, heads = 32 : i64, key_size = 24 : i64, kv_element = 1 : i64, kv_heads = 1 : i64, latent = 1 : i64,
// PLAN: plan.command "layers.0.attention"{{.*}} tasks <2 Q>
module {
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %t = llm.weight "t" from [#llm.source<0, 0, 16384>] as f32 : tensor<64x64xf32>
  %wq = llm.weight "q" from [#llm.source<0, 0, 196608>] as f32 : tensor<768x64xf32>
  %wc = llm.weight "c" from [#llm.source<0, 0, 4096>] as f32 : tensor<16x64xf32>
  %wk = llm.weight "k" from [#llm.source<0, 0, 2048>] as f32 : tensor<8x64xf32>
  %wa = llm.weight "a" from [#llm.source<0, 0, 32768>] as f32 : tensor<512x16xf32>
  %wo = llm.weight "o" from [#llm.source<0, 0, 131072>] as f32 : tensor<64x512xf32>
  %f = llm.weight_constant dense<1.0> : tensor<4xf32>
  %r = llm.rope_angles %positions, %f {scale = 1.0 : f64} : (tensor<?xi32>, tensor<4xf32>) -> tensor<?x2x4xf32>
  %x = llm.embedding %tokens, %t : (tensor<?xi32>, tensor<64x64xf32>) -> tensor<?x64xf32>
  %q = llm.linear %x, %wq : tensor<?x64xf32>, tensor<768x64xf32> -> tensor<?x768xf32>
  %c = llm.linear %x, %wc : tensor<?x64xf32>, tensor<16x64xf32> -> tensor<?x16xf32>
  %k = llm.linear %x, %wk : tensor<?x64xf32>, tensor<8x64xf32> -> tensor<?x8xf32>
  %a = llm.head_linear %q, %wa {heads = 32 : i64} : tensor<?x768xf32>, tensor<512x16xf32> -> tensor<?x512xf32>
  %kv = llm.kv_cache 0 : !llm.kv<1 x 24 x 16 x f32, latent>
  %q1, %kv1 = llm.latent_append %a, %q, %c, %k, %kv angles(%r) {heads = 32 : i64, interleaved}
      : tensor<?x512xf32>, tensor<?x768xf32>, tensor<?x16xf32>, tensor<?x8xf32>, !llm.kv<1 x 24 x 16 x f32, latent>
        angles tensor<?x2x4xf32> -> tensor<?x768xf32>
  %o = llm.attention %q1, %kv1 {heads = 32 : i64, scale = 0.5 : f64} : tensor<?x768xf32>, !llm.kv<1 x 24 x 16 x f32, latent> -> tensor<?x512xf32>
  %y = llm.linear %o, %wo : tensor<?x512xf32>, tensor<64x512xf32> -> tensor<?x64xf32>
  %g = llm.gather_rows %y : tensor<?x64xf32>
  return %g : tensor<?x64xf32>
}
}
