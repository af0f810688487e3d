// RUN: llmc-opt %s -llmc-lower-to-plan="max-tokens=64 max-sequences=4" | FileCheck %s

// CHECK: plan.program @program limits <tokens = 64, sequences = 4, rows = 64, queryTile = 16> kv [!llm.kv<2 x 16 x 16 x f16, paged>] windows [7] key_tile 64 model {layers = 1 : i64}
// CHECK: %[[ANGLES:.*]] = plan.buffer "angles" size <64 T> slot 0
// CHECK: plan.command "embedding"
// One matrix gives q, k and v: the kernel reads its rows.
// CHECK: plan.kernel @rope_append_0 "rope_append" ["qkv", "angles", "q_out"]
// CHECK: plan.command "layers.0.rope_append" {{.*}} scalars [0]
// The angles are not read again: their memory is.
// CHECK: plan.buffer "attended" size <256 T> slot 0
// CHECK: plan.command "layers.0.attention" {{.*}} tasks <2 Q> scalars [0] cost <weightBytes = 0, operationsPerRow = 0, bytesPerRow = 512, kvBytesPerContext = 128
// CHECK: plan.command "layers.0.gather_rows"
// CHECK: plan.output "logits" size <128 R> columns 32
// CHECK: plan.command "head" {{.*}} tasks <1> cost <weightBytes = 8192
module attributes {llm.model = {layers = 1 : i64}} {
  func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x32xf32> {
    %e = llm.weight "e" from [#llm.source<0, 0, 8192>] as f32 : tensor<32x64xf32>
    %w = llm.weight "w" from [#llm.source<0, 8192, 32768>] as f32 : tensor<128x64xf32>
    %f = llm.weight_constant dense<1.0> : tensor<8xf32>
    %a = llm.rope_angles %positions, %f : (tensor<?xi32>, tensor<8xf32>) -> tensor<?x2x8xf32>
    %h = llm.embedding %tokens, %e {format = #llm.format<f32>} : (tensor<?xi32>, tensor<32x64xf32>) -> tensor<?x64xf32>
    %y = llm.linear %h, %w {format = #llm.format<f32>} : tensor<?x64xf32>, tensor<128x64xf32> -> tensor<?x128xf32>
    %q = llm.columns %y from 0 : tensor<?x128xf32> -> tensor<?x64xf32>
    %k = llm.columns %y from 64 : tensor<?x128xf32> -> tensor<?x32xf32>
    %v = llm.columns %y from 96 : tensor<?x128xf32> -> tensor<?x32xf32>
    %c = llm.kv_cache 0 : !llm.kv<2 x 16 x 16 x f16, paged>
    %q1, %c1 = llm.rope_append %q, %k, %v, %c angles(%a) {heads = 4 : i64} : tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>, !llm.kv<2 x 16 x 16 x f16, paged> angles tensor<?x2x8xf32>
    %o = llm.attention %q1, %c1 {heads = 4 : i64, scale = 0.25 : f64, window = 7 : i64, key_tile = 64 : i64, query_tile = 16 : i64}
        : tensor<?x64xf32>, !llm.kv<2 x 16 x 16 x f16, paged> -> tensor<?x64xf32>
    %r = llm.gather_rows %o : tensor<?x64xf32>
    %l = llm.linear %r, %e {format = #llm.format<f32>} : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x32xf32>
    return %l : tensor<?x32xf32>
  }
}
