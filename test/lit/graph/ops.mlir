// Every operation of the graph dialect, read and written as text and as bytecode.
// RUN: llmc-opt %s | llmc-opt | FileCheck %s
// RUN: llmc-opt %s --emit-bytecode | llmc-opt | FileCheck %s

// CHECK-LABEL: func.func @constants
func.func @constants() {
  // CHECK: graph.constant dense<[-1, 2]> : tensor<2xi64>
  %c = graph.constant dense<[-1, 2]> : tensor<2xi64>
  // CHECK: graph.constant dense<-9223372036854775808> : tensor<i64>
  %min = graph.constant dense<-9223372036854775808> : tensor<i64>
  // CHECK: graph.weight "w" in "m.data" at 64 bytes 24 : tensor<2x3xf32>
  %w = graph.weight "w" in "m.data" at 64 bytes 24 : tensor<2x3xf32>
  // CHECK: graph.weight "q" in "m.data" at 88 bytes 5 : tensor<3x3xi4>
  %q = graph.weight "q" in "m.data" at 88 bytes 5 : tensor<3x3xi4>
  return
}

// CHECK-LABEL: func.func @elementwise
func.func @elementwise(%x: tensor<?x8xf32>, %y: tensor<8xf32>, %b: tensor<?x8xi1>, %u: tensor<*xf32>, %s: tensor<f32>) {
  // CHECK: graph.unary neg %{{.*}} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %0 = graph.unary neg %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  // CHECK: graph.unary is_nan %{{.*}} : (tensor<*xf32>) -> tensor<*xi1>
  %1 = graph.unary is_nan %u : (tensor<*xf32>) -> tensor<*xi1>
  // CHECK: graph.binary pow %{{.*}}, %{{.*}} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %2 = graph.binary pow %x, %y : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  // CHECK: graph.compare le %{{.*}}, %{{.*}} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xi1>
  %3 = graph.compare le %x, %y : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xi1>
  // CHECK: graph.select %{{.*}}, %{{.*}}, %{{.*}} : (tensor<?x8xi1>, tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %4 = graph.select %b, %x, %y : (tensor<?x8xi1>, tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  // CHECK: graph.clip %{{.*}} high %{{.*}} : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %5 = graph.clip %x high %s : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  // CHECK: graph.cast %{{.*}} : (tensor<?x8xf32>) -> tensor<?x8xf16>
  %6 = graph.cast %x : (tensor<?x8xf32>) -> tensor<?x8xf16>
  return
}

// CHECK-LABEL: func.func @shapes
func.func @shapes(%x: tensor<?x8xf32>, %i: tensor<2xi64>, %one: tensor<1xi64>, %s: tensor<i64>, %p: tensor<4xi64>, %f: tensor<f32>) {
  // CHECK: graph.shape %{{.*}} {end = 2 : i64, start = 1 : i64} : (tensor<?x8xf32>) -> tensor<1xi64>
  %0 = graph.shape %x {start = 1 : i64, end = 2 : i64} : (tensor<?x8xf32>) -> tensor<1xi64>
  // CHECK: graph.size
  %1 = graph.size %x : (tensor<?x8xf32>) -> tensor<i64>
  // CHECK: graph.reshape %{{.*}}, %{{.*}} {allow_zero} : (tensor<?x8xf32>, tensor<2xi64>) -> tensor<?x4xf32>
  %2 = graph.reshape %x, %i {allow_zero} : (tensor<?x8xf32>, tensor<2xi64>) -> tensor<?x4xf32>
  // CHECK: graph.flatten %{{.*}} {axis = 1 : i64}
  %3 = graph.flatten %x {axis = 1 : i64} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  // CHECK: graph.squeeze %{{.*}} axes %{{.*}} : (tensor<?x8xf32>, tensor<1xi64>) -> tensor<8xf32>
  %4 = graph.squeeze %x axes %one : (tensor<?x8xf32>, tensor<1xi64>) -> tensor<8xf32>
  // CHECK: graph.squeeze %{{[a-z0-9]*}} : (tensor<?x8xf32>) -> tensor<*xf32>
  %5 = graph.squeeze %x : (tensor<?x8xf32>) -> tensor<*xf32>
  // CHECK: graph.unsqueeze
  %6 = graph.unsqueeze %x, %one : (tensor<?x8xf32>, tensor<1xi64>) -> tensor<?x1x8xf32>
  // CHECK: graph.expand
  %7 = graph.expand %x, %i : (tensor<?x8xf32>, tensor<2xi64>) -> tensor<?x8xf32>
  // CHECK: graph.tile
  %8 = graph.tile %x, %i : (tensor<?x8xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  // CHECK: graph.transpose %{{.*}} {perm = array<i64: 1, 0>} : (tensor<?x8xf32>) -> tensor<8x?xf32>
  %9 = graph.transpose %x {perm = array<i64: 1, 0>} : (tensor<?x8xf32>) -> tensor<8x?xf32>
  // CHECK: graph.concat %{{.*}}, %{{.*}} {axis = -1 : i64}
  %10 = graph.concat %x, %x {axis = -1 : i64} : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x16xf32>
  // CHECK: graph.split %{{.*}} sizes %{{.*}} {axis = 1 : i64} : (tensor<?x8xf32>, tensor<2xi64>) -> (tensor<?x3xf32>, tensor<?x5xf32>)
  %11:2 = graph.split %x sizes %i {axis = 1 : i64} : (tensor<?x8xf32>, tensor<2xi64>) -> (tensor<?x3xf32>, tensor<?x5xf32>)
  // CHECK: graph.slice %{{.*}} from %{{.*}} to %{{.*}} axes %{{.*}} : (tensor<?x8xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x?xf32>
  %12 = graph.slice %x from %one to %one axes %one : (tensor<?x8xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x?xf32>
  // CHECK: graph.slice %{{.*}} from %{{.*}} to %{{.*}} steps %{{.*}} : (tensor<?x8xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x?xf32>
  %13 = graph.slice %x from %i to %i steps %i : (tensor<?x8xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x?xf32>
  // CHECK: graph.pad constant %{{.*}} by %{{.*}} value %{{.*}} : (tensor<?x8xf32>, tensor<4xi64>, tensor<f32>) -> tensor<?x?xf32>
  %14 = graph.pad constant %x by %p value %f : (tensor<?x8xf32>, tensor<4xi64>, tensor<f32>) -> tensor<?x?xf32>
  // CHECK: graph.range
  %15 = graph.range %s, %s, %s : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  // CHECK: graph.fill %{{.*}} {value = dense<1> : tensor<1xi64>} : (tensor<2xi64>) -> tensor<?x?xi64>
  %16 = graph.fill %i {value = dense<1> : tensor<1xi64>} : (tensor<2xi64>) -> tensor<?x?xi64>
  return
}

// CHECK-LABEL: func.func @indexed
func.func @indexed(%x: tensor<?x8xf32>, %i: tensor<?xi64>, %ij: tensor<?x2xi64>, %u: tensor<?xf32>, %d: tensor<i64>, %v: tensor<2xf32>) {
  // CHECK: graph.gather %{{.*}}, %{{.*}} {axis = 1 : i64}
  %0 = graph.gather %x, %i {axis = 1 : i64} : (tensor<?x8xf32>, tensor<?xi64>) -> tensor<?x?xf32>
  // CHECK: graph.gather_elements
  %1 = graph.gather_elements %x, %ij : (tensor<?x8xf32>, tensor<?x2xi64>) -> tensor<?x2xf32>
  // CHECK: graph.gather_nd
  %2 = graph.gather_nd %x, %ij : (tensor<?x8xf32>, tensor<?x2xi64>) -> tensor<?xf32>
  // CHECK: graph.scatter_elements add %{{.*}}, %{{.*}}, %{{.*}} {axis = 1 : i64}
  %3 = graph.scatter_elements add %x, %ij, %x {axis = 1 : i64} : (tensor<?x8xf32>, tensor<?x2xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  // CHECK: graph.scatter_nd none
  %4 = graph.scatter_nd none %x, %ij, %u : (tensor<?x8xf32>, tensor<?x2xi64>, tensor<?xf32>) -> tensor<?x8xf32>
  // CHECK: graph.one_hot
  %5 = graph.one_hot %i, %d, %v {axis = -1 : i64} : (tensor<?xi64>, tensor<i64>, tensor<2xf32>) -> tensor<?x?xf32>
  // CHECK: graph.nonzero
  %6 = graph.nonzero %x : (tensor<?x8xf32>) -> tensor<2x?xi64>
  // CHECK: graph.top_k
  %7:2 = graph.top_k %x, %i {axis = -1 : i64} : (tensor<?x8xf32>, tensor<?xi64>) -> (tensor<?x?xf32>, tensor<?x?xi64>)
  // CHECK: graph.trilu %{{.*}} diagonal %{{.*}} {upper = false}
  %8 = graph.trilu %x diagonal %d {upper = false} : (tensor<?x8xf32>, tensor<i64>) -> tensor<?x8xf32>
  return
}

// CHECK-LABEL: func.func @reductions
func.func @reductions(%x: tensor<?x8xf32>, %axes: tensor<1xi64>, %axis: tensor<i64>, %w: tensor<8x4xf32>, %c: tensor<4xf32>) {
  // CHECK: graph.reduce mean %{{.*}} axes %{{.*}} : (tensor<?x8xf32>, tensor<1xi64>) -> tensor<?x1xf32>
  %0 = graph.reduce mean %x axes %axes : (tensor<?x8xf32>, tensor<1xi64>) -> tensor<?x1xf32>
  // CHECK: graph.reduce max %{{.*}} {keepdims = false} : (tensor<?x8xf32>) -> tensor<f32>
  %1 = graph.reduce max %x {keepdims = false} : (tensor<?x8xf32>) -> tensor<f32>
  // CHECK: graph.arg_reduce
  %2 = graph.arg_reduce %x {axis = 1 : i64, select_last} : (tensor<?x8xf32>) -> tensor<?x1xi64>
  // CHECK: graph.cumsum %{{.*}}, %{{.*}} {exclusive}
  %3 = graph.cumsum %x, %axis {exclusive} : (tensor<?x8xf32>, tensor<i64>) -> tensor<?x8xf32>
  // CHECK: graph.softmax %{{.*}} {axis = -1 : i64}
  %4 = graph.softmax %x {axis = -1 : i64} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  // CHECK: graph.matmul
  %5 = graph.matmul %x, %w : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  // CHECK: graph.gemm %{{.*}}, %{{.*}} plus %{{.*}} {transpose_b}
  %6 = graph.gemm %x, %w plus %c {transpose_b} : (tensor<?x8xf32>, tensor<8x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  return
}

// CHECK-LABEL: func.func @quantized
func.func @quantized(%x: tensor<?x64xf32>, %q: tensor<64x8xi4>, %s: tensor<2x8xf32>, %b: tensor<8x2x16xui8>, %bs: tensor<16xf32>,
                     %packed: tensor<8x32xui8>, %ps: tensor<8x2xf32>) {
  // CHECK: graph.dequantize %{{.*}} scale %{{.*}} {axis = 0 : i64, block_size = 32 : i64}
  %0 = graph.dequantize %q scale %s {axis = 0 : i64, block_size = 32 : i64} : (tensor<64x8xi4>, tensor<2x8xf32>) -> tensor<64x8xf32>
  // CHECK: graph.dequantize_nbits %{{.*}} scales %{{.*}} {bits = 4 : i64, block_size = 32 : i64}
  %2 = graph.dequantize_nbits %packed scales %ps {bits = 4 : i64, block_size = 32 : i64} : (tensor<8x32xui8>, tensor<8x2xf32>) -> tensor<8x64xf32>
  // CHECK: graph.matmul_nbits %{{.*}}, %{{.*}} scales %{{.*}} {K = 64 : i64, N = 8 : i64, bits = 4 : i64, block_size = 32 : i64}
  %1 = graph.matmul_nbits %x, %b scales %bs {K = 64 : i64, N = 8 : i64, bits = 4 : i64, block_size = 32 : i64} : (tensor<?x64xf32>, tensor<8x2x16xui8>, tensor<16xf32>) -> tensor<?x8xf32>
  return
}

// CHECK-LABEL: func.func @composites
func.func @composites(%x: tensor<?x?x8xf32>, %w: tensor<8xf32>, %cos: tensor<16x2xf32>, %h: tensor<?x2x?x4xf32>, %pos: tensor<?x?xi64>,
                      %mask: tensor<?x1x?x?xi1>, %l: tensor<?xi32>, %t: tensor<i32>) {
  // CHECK: graph.layer_norm %{{.*}} scale %{{.*}} bias %{{.*}} {epsilon = 9.99999974E-6 : f32}
  %0 = graph.layer_norm %x scale %w bias %w {epsilon = 1.0e-5 : f32} : (tensor<?x?x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<?x?x8xf32>
  // CHECK: graph.rms_norm %{{.*}} scale %{{.*}} {epsilon = 9.99999974E-6 : f32}
  %1 = graph.rms_norm %x scale %w {epsilon = 1.0e-5 : f32} : (tensor<?x?x8xf32>, tensor<8xf32>) -> tensor<?x?x8xf32>
  // CHECK: graph.rotary_embedding %{{.*}} cos %{{.*}} sin %{{.*}} positions %{{.*}} {interleaved, num_heads = 2 : i64}
  %2 = graph.rotary_embedding %x cos %cos sin %cos positions %pos {interleaved, num_heads = 2 : i64} : (tensor<?x?x8xf32>, tensor<16x2xf32>, tensor<16x2xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
  // CHECK: graph.attention %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} {resultSegmentSizes = array<i32: 1, 0, 0, 0>, scale = 5.000000e-01 : f32}
  %3 = graph.attention %h, %h, %h mask %mask {scale = 0.5 : f32, resultSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>, tensor<?x1x?x?xi1>) -> tensor<?x2x?x4xf32>
  // CHECK: graph.attention %{{.*}}, %{{.*}}, %{{.*}} past %{{.*}}, %{{.*}} {is_causal, resultSegmentSizes = array<i32: 1, 1, 1, 0>}
  %4:3 = graph.attention %h, %h, %h past %h, %h {is_causal, resultSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>)
  // CHECK: graph.group_query_attention %{{.*}} past %{{.*}}, %{{.*}} lengths %{{.*}}, %{{.*}} cos %{{.*}} sin %{{.*}} {do_rotary, kv_num_heads = 2 : i64, local_window_size = 7 : i64, num_heads = 4 : i64, resultSegmentSizes = array<i32: 1, 1, 1>}
  %5:3 = graph.group_query_attention %x past %h, %h lengths %l, %t cos %cos sin %cos {do_rotary, kv_num_heads = 2 : i64, local_window_size = 7 : i64, num_heads = 4 : i64, resultSegmentSizes = array<i32: 1, 1, 1>} : (tensor<?x?x8xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>, tensor<?xi32>, tensor<i32>, tensor<16x2xf32>, tensor<16x2xf32>) -> (tensor<?x?x4xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>)
  return
}

// CHECK-LABEL: func.func @loop
func.func @loop(%n: tensor<i64>, %c: tensor<i1>, %x: tensor<2xf32>) {
  // CHECK: %{{.*}}:2 = graph.loop trips %{{.*}} while %{{.*}} carry %{{.*}} {scan_shapes = [array<i64: 2>]} : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> (tensor<?xf32>, tensor<?x?xf32>)
  %0:2 = graph.loop trips %n while %c carry %x {scan_shapes = [array<i64: 2>]} : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> (tensor<?xf32>, tensor<?x?xf32>) {
  // CHECK-NEXT: ^bb0(%{{.*}}: tensor<i64>, %[[ON:.*]]: tensor<i1>, %[[V:.*]]: tensor<?xf32>)
  ^bb0(%i: tensor<i64>, %on: tensor<i1>, %v: tensor<?xf32>):
    // CHECK-NEXT: graph.yield %[[ON]], %[[V]], %[[V]]
    graph.yield %on, %v, %v : tensor<i1>, tensor<?xf32>, tensor<?xf32>
  }
  // CHECK: graph.loop trips %{{.*}} {scan_shapes = [array<i64>, array<i64: -1, 3>]}
  %1:2 = graph.loop trips %n {scan_shapes = [array<i64>, array<i64: -1, 3>]} : (tensor<i64>) -> (tensor<*xi64>, tensor<?x?x?xf32>) {
  ^bb0(%i: tensor<i64>, %on: tensor<i1>):
    %m = graph.constant dense<0.0> : tensor<2x3xf32>
    graph.yield %on, %i, %m : tensor<i1>, tensor<i64>, tensor<2x3xf32>
  }
  return
}
