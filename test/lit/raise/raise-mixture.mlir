// A mixture of two experts, dense in the graph: each expert's MLP on every token, times a column of weights that is
// zero where the expert was not chosen. The step has the chosen experts only.
// RUN: llmc-opt %s --llmc-raise-step --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @step
// CHECK: %[[X:.*]] = llm.embedding
// CHECK: %[[L:.*]] = llm.linear %[[X]], %{{.*}} : tensor<?x8xf32>, tensor<2x8xf32> -> tensor<?x2xf32>
// CHECK: %[[E:.*]], %[[P:.*]] = llm.route softmax %[[L]] {chosen = 1 : i64, normalize} : tensor<?x2xf32> -> tensor<?x1xi32>, tensor<?x1xf32>
// CHECK: %[[UP:.*]] = llm.weight_stack %{{.*}}, %{{.*}} : tensor<32x8xf32>, tensor<32x8xf32> -> tensor<64x8xf32>
// CHECK: %[[H:.*]] = llm.expert_linear %[[X]], %[[UP]], %[[E]] {activation = #llm<activation_kind silu>, count = 2 : i64, glu} : tensor<?x8xf32>, tensor<64x8xf32>, tensor<?x1xi32> -> tensor<?x4xf32>
// CHECK: %[[DOWN:.*]] = llm.weight_stack %{{.*}}, %{{.*}} : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<32x4xf32>
// CHECK: %[[V:.*]] = llm.expert_linear %[[H]], %[[DOWN]], %[[E]] {count = 2 : i64} : tensor<?x4xf32>, tensor<32x4xf32>, tensor<?x1xi32> -> tensor<?x8xf32>
// CHECK: llm.combine %[[V]], %[[P]] : tensor<?x8xf32>, tensor<?x1xf32> -> tensor<?x8xf32>
func.func @main(%ids: tensor<?x?xi64> {graph.name = "input_ids"}) -> (tensor<?x?x16xf32> {graph.name = "logits"}) {
  %embed = graph.weight "embed" in "m.data" at 0 bytes 512 : tensor<16x8xf32>
  %head = graph.weight "head" in "m.data" at 512 bytes 512 : tensor<8x16xf32>
  %router = graph.weight "router" in "m.data" at 1024 bytes 64 : tensor<8x2xf32>
  %g0 = graph.weight "g0" in "m.data" at 2048 bytes 128 : tensor<8x4xf32>
  %u0 = graph.weight "u0" in "m.data" at 2176 bytes 128 : tensor<8x4xf32>
  %d0 = graph.weight "d0" in "m.data" at 2304 bytes 128 : tensor<4x8xf32>
  %g1 = graph.weight "g1" in "m.data" at 3072 bytes 128 : tensor<8x4xf32>
  %u1 = graph.weight "u1" in "m.data" at 3200 bytes 128 : tensor<8x4xf32>
  %d1 = graph.weight "d1" in "m.data" at 3328 bytes 128 : tensor<4x8xf32>
  %x3 = graph.gather %embed, %ids : (tensor<16x8xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
  %rows = graph.constant dense<[-1, 8]> : tensor<2xi64>
  %x = graph.reshape %x3, %rows : (tensor<?x?x8xf32>, tensor<2xi64>) -> tensor<?x8xf32>
  %l = graph.matmul %x, %router : (tensor<?x8xf32>, tensor<8x2xf32>) -> tensor<?x2xf32>
  %s = graph.softmax %l {axis = -1 : i64} : (tensor<?x2xf32>) -> tensor<?x2xf32>
  %one = graph.constant dense<1> : tensor<1xi64>
  %zero = graph.constant dense<0> : tensor<1xi64>
  %two = graph.constant dense<2> : tensor<1xi64>
  %last = graph.constant dense<-1> : tensor<1xi64>
  %v, %i = graph.top_k %s, %one {axis = -1 : i64} : (tensor<?x2xf32>, tensor<1xi64>) -> (tensor<?x1xf32>, tensor<?x1xi64>)
  %sum = graph.reduce sum %v axes %last {keepdims = true} : (tensor<?x1xf32>, tensor<1xi64>) -> tensor<?x1xf32>
  %p = graph.binary div %v, %sum : (tensor<?x1xf32>, tensor<?x1xf32>) -> tensor<?x1xf32>
  %i3 = graph.unsqueeze %i, %last : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?x1x1xi64>
  %numbers = graph.constant dense<[0, 1]> : tensor<2xi64>
  %hot = graph.compare eq %i3, %numbers : (tensor<?x1x1xi64>, tensor<2xi64>) -> tensor<?x1x2xi1>
  %hotf = graph.cast %hot : (tensor<?x1x2xi1>) -> tensor<?x1x2xf32>
  %p3 = graph.unsqueeze %p, %two : (tensor<?x1xf32>, tensor<1xi64>) -> tensor<?x1x1xf32>
  %weighted = graph.binary mul %hotf, %p3 : (tensor<?x1x2xf32>, tensor<?x1x1xf32>) -> tensor<?x1x2xf32>
  %dense = graph.reduce sum %weighted axes %one {keepdims = false} : (tensor<?x1x2xf32>, tensor<1xi64>) -> tensor<?x2xf32>
  %shape = graph.shape %x : (tensor<?x8xf32>) -> tensor<2xi64>
  %nothing = graph.fill %shape {value = dense<0.0> : tensor<1xf32>} : (tensor<2xi64>) -> tensor<?x8xf32>
  %c0 = graph.slice %dense from %zero to %one axes %one : (tensor<?x2xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x1xf32>
  %a0 = graph.matmul %x, %g0 : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  %s0 = graph.unary silu %a0 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %b0 = graph.matmul %x, %u0 : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  %m0 = graph.binary mul %s0, %b0 : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %y0 = graph.matmul %m0, %d0 : (tensor<?x4xf32>, tensor<4x8xf32>) -> tensor<?x8xf32>
  %t0 = graph.binary mul %c0, %y0 : (tensor<?x1xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %r0 = graph.binary add %nothing, %t0 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %c1 = graph.slice %dense from %one to %two axes %one : (tensor<?x2xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x1xf32>
  %a1 = graph.matmul %x, %g1 : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  %s1 = graph.unary silu %a1 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %b1 = graph.matmul %x, %u1 : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  %m1 = graph.binary mul %s1, %b1 : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %y1 = graph.matmul %m1, %d1 : (tensor<?x4xf32>, tensor<4x8xf32>) -> tensor<?x8xf32>
  %t1 = graph.binary mul %c1, %y1 : (tensor<?x1xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %r1 = graph.binary add %r0, %t1 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %folded = graph.shape %x3 : (tensor<?x?x8xf32>) -> tensor<3xi64>
  %y3 = graph.reshape %r1, %folded : (tensor<?x8xf32>, tensor<3xi64>) -> tensor<?x?x8xf32>
  %h = graph.binary add %x3, %y3 : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %logits = graph.matmul %h, %head : (tensor<?x?x8xf32>, tensor<8x16xf32>) -> tensor<?x?x16xf32>
  return %logits : tensor<?x?x16xf32>
}
