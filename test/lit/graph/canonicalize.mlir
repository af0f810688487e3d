// RUN: llmc-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @shape_static
// CHECK: graph.constant dense<[3, 8]> : tensor<2xi64>
func.func @shape_static(%x: tensor<3x8xf32>) -> tensor<2xi64> {
  %0 = graph.shape %x : (tensor<3x8xf32>) -> tensor<2xi64>
  return %0 : tensor<2xi64>
}

// Only the static dimension is asked for, by a bound that counts from the end.
// CHECK-LABEL: func.func @shape_part
// CHECK: graph.constant dense<8> : tensor<1xi64>
func.func @shape_part(%x: tensor<?x8xf32>) -> tensor<1xi64> {
  %0 = graph.shape %x {start = -1 : i64} : (tensor<?x8xf32>) -> tensor<1xi64>
  return %0 : tensor<1xi64>
}

// CHECK-LABEL: func.func @shape_dynamic_noop
// CHECK: graph.shape
func.func @shape_dynamic_noop(%x: tensor<?x8xf32>) -> tensor<2xi64> {
  %0 = graph.shape %x : (tensor<?x8xf32>) -> tensor<2xi64>
  return %0 : tensor<2xi64>
}

// CHECK-LABEL: func.func @size
// CHECK: graph.constant dense<24> : tensor<i64>
func.func @size(%x: tensor<3x8xf32>) -> tensor<i64> {
  %0 = graph.size %x : (tensor<3x8xf32>) -> tensor<i64>
  return %0 : tensor<i64>
}

// CHECK-LABEL: func.func @transposes
// CHECK-NEXT: return %arg0
func.func @transposes(%x: tensor<?x3x8xf32>) -> tensor<?x3x8xf32> {
  %0 = graph.transpose %x {perm = array<i64: 2, 0, 1>} : (tensor<?x3x8xf32>) -> tensor<8x?x3xf32>
  %1 = graph.transpose %0 {perm = array<i64: 1, 2, 0>} : (tensor<8x?x3xf32>) -> tensor<?x3x8xf32>
  return %1 : tensor<?x3x8xf32>
}

// CHECK-LABEL: func.func @transposes_merge
// CHECK: graph.transpose %arg0 {perm = array<i64: 1, 2, 0>}
func.func @transposes_merge(%x: tensor<?x3x8xf32>) -> tensor<3x8x?xf32> {
  %0 = graph.transpose %x {perm = array<i64: 2, 0, 1>} : (tensor<?x3x8xf32>) -> tensor<8x?x3xf32>
  %1 = graph.transpose %0 {perm = array<i64: 2, 0, 1>} : (tensor<8x?x3xf32>) -> tensor<3x8x?xf32>
  return %1 : tensor<3x8x?xf32>
}

// x * 1 is x to the bit; x + 0 is not for -0.0, so that floats stay.
// CHECK-LABEL: func.func @mul_one
// CHECK-NEXT: return %arg0
func.func @mul_one(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %one = graph.constant dense<1.0> : tensor<f32>
  %0 = graph.binary mul %x, %one : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @add_zero_float_noop
// CHECK: graph.binary add
func.func @add_zero_float_noop(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %zero = graph.constant dense<0.0> : tensor<f32>
  %0 = graph.binary add %x, %zero : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @add_zero_integer
// CHECK-NEXT: return %arg0
func.func @add_zero_integer(%x: tensor<?x8xi64>) -> tensor<?x8xi64> {
  %zero = graph.constant dense<0> : tensor<i64>
  %0 = graph.binary add %x, %zero : (tensor<?x8xi64>, tensor<i64>) -> tensor<?x8xi64>
  return %0 : tensor<?x8xi64>
}

// A factor of more dimensions than x broadcasts it: not the identity.
// CHECK-LABEL: func.func @mul_one_broadcast_noop
// CHECK: graph.binary mul
func.func @mul_one_broadcast_noop(%x: tensor<8xf32>) -> tensor<4x8xf32> {
  %one = graph.constant dense<1.0> : tensor<4x1xf32>
  %0 = graph.binary mul %x, %one : (tensor<8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @not_not
// CHECK-NEXT: return %arg0
func.func @not_not(%x: tensor<?xi1>) -> tensor<?xi1> {
  %0 = graph.unary not %x : (tensor<?xi1>) -> tensor<?xi1>
  %1 = graph.unary not %0 : (tensor<?xi1>) -> tensor<?xi1>
  return %1 : tensor<?xi1>
}

// CHECK-LABEL: func.func @same_cast_reshape_concat
// CHECK-NEXT: return %arg0
func.func @same_cast_reshape_concat(%x: tensor<3x8xf32>, %s: tensor<2xi64>) -> tensor<3x8xf32> {
  %0 = graph.cast %x : (tensor<3x8xf32>) -> tensor<3x8xf32>
  %1 = graph.reshape %0, %s : (tensor<3x8xf32>, tensor<2xi64>) -> tensor<3x8xf32>
  %2 = graph.concat %1 {axis = 0 : i64} : (tensor<3x8xf32>) -> tensor<3x8xf32>
  return %2 : tensor<3x8xf32>
}
