// RUN: llmc-opt %s --llmc-raise-rope --split-input-file | FileCheck %s

// The bound of the halves is computed from the shape, as torch's exporter does.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<1x2x3x8xf32>, %[[COS:.*]]: tensor<1x1x3x8xf32>, %[[SIN:.*]]: tensor<1x1x3x8xf32>)
// CHECK: %[[Y:.*]] = graph.rotary_embedding %[[X]] cos %[[COS]] sin %[[SIN]]
// CHECK: return %[[Y]]
func.func @main(%x: tensor<1x2x3x8xf32>, %cos: tensor<1x1x3x8xf32>, %sin: tensor<1x1x3x8xf32>) -> tensor<1x2x3x8xf32> {
  %zero = graph.constant dense<0> : tensor<1xi64>
  %three = graph.constant dense<3> : tensor<1xi64>
  %two = graph.constant dense<2> : tensor<1xi64>
  %max = graph.constant dense<9223372036854775807> : tensor<1xi64>
  %size = graph.shape %x {start = 3 : i64} : (tensor<1x2x3x8xf32>) -> tensor<1xi64>
  %half = graph.binary div %size, %two : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  %a = graph.slice %x from %zero to %half axes %three : (tensor<1x2x3x8xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<1x2x3x?xf32>
  %b = graph.slice %x from %half to %max axes %three : (tensor<1x2x3x8xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<1x2x3x?xf32>
  %n = graph.unary neg %b : (tensor<1x2x3x?xf32>) -> tensor<1x2x3x?xf32>
  %r = graph.concat %n, %a {axis = -1 : i64} : (tensor<1x2x3x?xf32>, tensor<1x2x3x?xf32>) -> tensor<1x2x3x8xf32>
  %p = graph.binary mul %x, %cos : (tensor<1x2x3x8xf32>, tensor<1x1x3x8xf32>) -> tensor<1x2x3x8xf32>
  %q = graph.binary mul %r, %sin : (tensor<1x2x3x8xf32>, tensor<1x1x3x8xf32>) -> tensor<1x2x3x8xf32>
  %y = graph.binary add %p, %q : (tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
  return %y : tensor<1x2x3x8xf32>
}

// -----

// A split instead of slices.
// CHECK-LABEL: func.func @main
// CHECK: graph.rotary_embedding
func.func @main(%x: tensor<1x3x8xf32>, %cos: tensor<1x3x8xf32>, %sin: tensor<1x3x8xf32>) -> tensor<1x3x8xf32> {
  %a, %b = graph.split %x {axis = 2 : i64} : (tensor<1x3x8xf32>) -> (tensor<1x3x4xf32>, tensor<1x3x4xf32>)
  %n = graph.unary neg %b : (tensor<1x3x4xf32>) -> tensor<1x3x4xf32>
  %r = graph.concat %n, %a {axis = 2 : i64} : (tensor<1x3x4xf32>, tensor<1x3x4xf32>) -> tensor<1x3x8xf32>
  %p = graph.binary mul %cos, %x : (tensor<1x3x8xf32>, tensor<1x3x8xf32>) -> tensor<1x3x8xf32>
  %q = graph.binary mul %sin, %r : (tensor<1x3x8xf32>, tensor<1x3x8xf32>) -> tensor<1x3x8xf32>
  %y = graph.binary add %q, %p : (tensor<1x3x8xf32>, tensor<1x3x8xf32>) -> tensor<1x3x8xf32>
  return %y : tensor<1x3x8xf32>
}

// -----

// The parts are swapped without the sign: not a rotation.
// CHECK-LABEL: func.func @main
// CHECK-NOT: graph.rotary_embedding
func.func @main(%x: tensor<1x3x8xf32>, %cos: tensor<1x3x8xf32>, %sin: tensor<1x3x8xf32>) -> tensor<1x3x8xf32> {
  %a, %b = graph.split %x {axis = 2 : i64} : (tensor<1x3x8xf32>) -> (tensor<1x3x4xf32>, tensor<1x3x4xf32>)
  %n = graph.unary neg %a : (tensor<1x3x4xf32>) -> tensor<1x3x4xf32>
  %r = graph.concat %n, %b {axis = 2 : i64} : (tensor<1x3x4xf32>, tensor<1x3x4xf32>) -> tensor<1x3x8xf32>
  %p = graph.binary mul %x, %cos : (tensor<1x3x8xf32>, tensor<1x3x8xf32>) -> tensor<1x3x8xf32>
  %q = graph.binary mul %r, %sin : (tensor<1x3x8xf32>, tensor<1x3x8xf32>) -> tensor<1x3x8xf32>
  %y = graph.binary add %p, %q : (tensor<1x3x8xf32>, tensor<1x3x8xf32>) -> tensor<1x3x8xf32>
  return %y : tensor<1x3x8xf32>
}

// -----

// The second slice starts before the half: not a rotation of halves.
// CHECK-LABEL: func.func @main
// CHECK-NOT: graph.rotary_embedding
func.func @main(%x: tensor<1x3x8xf32>, %cos: tensor<1x3x8xf32>, %sin: tensor<1x3x8xf32>) -> tensor<1x3x8xf32> {
  %zero = graph.constant dense<0> : tensor<1xi64>
  %two = graph.constant dense<2> : tensor<1xi64>
  %four = graph.constant dense<4> : tensor<1xi64>
  %six = graph.constant dense<6> : tensor<1xi64>
  %a = graph.slice %x from %zero to %four axes %two : (tensor<1x3x8xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<1x3x4xf32>
  %b = graph.slice %x from %two to %six axes %two : (tensor<1x3x8xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<1x3x4xf32>
  %n = graph.unary neg %b : (tensor<1x3x4xf32>) -> tensor<1x3x4xf32>
  %r = graph.concat %n, %a {axis = 2 : i64} : (tensor<1x3x4xf32>, tensor<1x3x4xf32>) -> tensor<1x3x8xf32>
  %p = graph.binary mul %x, %cos : (tensor<1x3x8xf32>, tensor<1x3x8xf32>) -> tensor<1x3x8xf32>
  %q = graph.binary mul %r, %sin : (tensor<1x3x8xf32>, tensor<1x3x8xf32>) -> tensor<1x3x8xf32>
  %y = graph.binary add %p, %q : (tensor<1x3x8xf32>, tensor<1x3x8xf32>) -> tensor<1x3x8xf32>
  return %y : tensor<1x3x8xf32>
}
