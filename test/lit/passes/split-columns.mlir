// RUN: llmc-opt %s -llmc-split-columns | FileCheck %s

// Gate and up in one matrix: each becomes a projection of its rows.
// CHECK-LABEL: @gate_up
// CHECK-DAG: %[[WG:.*]] = llm.weight_rows %arg1 from 0 : tensor<128x32xf32> -> tensor<64x32xf32>
// CHECK-DAG: %[[WU:.*]] = llm.weight_rows %arg1 from 64 : tensor<128x32xf32> -> tensor<64x32xf32>
// CHECK-DAG: %[[BG:.*]] = llm.weight_rows %arg2 from 0 : tensor<128xf32> -> tensor<64xf32>
// CHECK-DAG: %[[G:.*]] = llm.linear %arg0, %[[WG]] bias(%[[BG]])
// CHECK-DAG: %[[U:.*]] = llm.linear %arg0, %[[WU]] bias(%{{.*}})
// CHECK: llm.glu silu %[[G]], %[[U]]
// CHECK-NOT: llm.columns
func.func @gate_up(%x: tensor<?x32xf32>, %w: tensor<128x32xf32>, %b: tensor<128xf32>) -> tensor<?x64xf32> {
  %y = llm.linear %x, %w bias(%b) : tensor<?x32xf32>, tensor<128x32xf32> bias tensor<128xf32> -> tensor<?x128xf32>
  %g = llm.columns %y from 0 : tensor<?x128xf32> -> tensor<?x64xf32>
  %u = llm.columns %y from 64 : tensor<?x128xf32> -> tensor<?x64xf32>
  %z = llm.glu silu %g, %u : tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}

// Q, K and V that fill a row are read where they stand.
// CHECK-LABEL: @qkv_noop
// CHECK-COUNT-3: llm.columns
func.func @qkv_noop(%x: tensor<?x32xf32>, %w: tensor<128x32xf32>) -> tensor<?x64xf32> {
  %y = llm.linear %x, %w : tensor<?x32xf32>, tensor<128x32xf32> -> tensor<?x128xf32>
  %q = llm.columns %y from 0 : tensor<?x128xf32> -> tensor<?x64xf32>
  %k = llm.columns %y from 64 : tensor<?x128xf32> -> tensor<?x32xf32>
  %v = llm.columns %y from 96 : tensor<?x128xf32> -> tensor<?x32xf32>
  %c = llm.kv_cache 0 : !llm.kv<2 x 16 x 16 x f32>
  %q1, %c1 = llm.rope_append %q, %k, %v, %c {heads = 4 : i64} : tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>, !llm.kv<2 x 16 x 16 x f32>
  %o = llm.attention %q1, %c1 {heads = 4 : i64, scale = 0.25 : f64} : tensor<?x64xf32>, !llm.kv<2 x 16 x 16 x f32> -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}

// A row with more than Q, K and V: all three get projections of their own.
// CHECK-LABEL: @qkv_and_more
// CHECK-NOT: llm.columns
// CHECK: llm.rope_append
func.func @qkv_and_more(%x: tensor<?x32xf32>, %w: tensor<160x32xf32>) -> tensor<?x64xf32> {
  %y = llm.linear %x, %w : tensor<?x32xf32>, tensor<160x32xf32> -> tensor<?x160xf32>
  %q = llm.columns %y from 0 : tensor<?x160xf32> -> tensor<?x64xf32>
  %k = llm.columns %y from 64 : tensor<?x160xf32> -> tensor<?x32xf32>
  %v = llm.columns %y from 96 : tensor<?x160xf32> -> tensor<?x32xf32>
  %c = llm.kv_cache 0 : !llm.kv<2 x 16 x 16 x f32>
  %q1, %c1 = llm.rope_append %q, %k, %v, %c {heads = 4 : i64} : tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>, !llm.kv<2 x 16 x 16 x f32>
  %o = llm.attention %q1, %c1 {heads = 4 : i64, scale = 0.25 : f64} : tensor<?x64xf32>, !llm.kv<2 x 16 x 16 x f32> -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}
