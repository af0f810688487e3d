// RUN: llmc-opt %s --llmc-raise-norm --split-input-file | FileCheck %s

// As torch's exporter writes it: pow, mean, add, sqrt, 1 / x, and the weight on either side.
// CHECK-LABEL: func.func @main
// CHECK: %[[W:.*]] = graph.weight
// CHECK: %[[Y:.*]] = graph.rms_norm %{{.*}} scale %[[W]] {epsilon = 9.99999974E-6 : f32}
// CHECK: return %[[Y]]
func.func @main(%x: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  %two = graph.constant dense<2.0> : tensor<f32>
  %one = graph.constant dense<1.0> : tensor<f32>
  %eps = graph.constant dense<1.0e-5> : tensor<f32>
  %axes = graph.constant dense<[-1]> : tensor<1xi64>
  %w = graph.weight "w" in "none" at 0 bytes 32 : tensor<8xf32>
  %p = graph.binary pow %x, %two : (tensor<2x3x8xf32>, tensor<f32>) -> tensor<2x3x8xf32>
  %m = graph.reduce mean %p axes %axes : (tensor<2x3x8xf32>, tensor<1xi64>) -> tensor<2x3x1xf32>
  %e = graph.binary add %m, %eps : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3x1xf32>
  %s = graph.unary sqrt %e : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %r = graph.binary div %one, %s : (tensor<f32>, tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %n = graph.binary mul %x, %r : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  %y = graph.binary mul %w, %n : (tensor<8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----

// In f16 with casts to f32 and back, a square as x * x, a reciprocal: the norm is of the f16 value.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<2x8xf16>)
// CHECK: graph.rms_norm %[[X]] scale %{{.*}} : (tensor<2x8xf16>, tensor<8xf16>) -> tensor<2x8xf16>
func.func @main(%x: tensor<2x8xf16>) -> tensor<2x8xf16> {
  %eps = graph.constant dense<1.0e-6> : tensor<f32>
  %axes = graph.constant dense<[1]> : tensor<1xi64>
  %w = graph.weight "w" in "none" at 0 bytes 16 : tensor<8xf16>
  %c = graph.cast %x : (tensor<2x8xf16>) -> tensor<2x8xf32>
  %p = graph.binary mul %c, %c : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %m = graph.reduce mean %p axes %axes : (tensor<2x8xf32>, tensor<1xi64>) -> tensor<2x1xf32>
  %e = graph.binary add %eps, %m : (tensor<f32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  %s = graph.unary sqrt %e : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %r = graph.unary reciprocal %s : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %n = graph.binary mul %r, %c : (tensor<2x1xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %h = graph.cast %n : (tensor<2x8xf32>) -> tensor<2x8xf16>
  %y = graph.binary mul %h, %w : (tensor<2x8xf16>, tensor<8xf16>) -> tensor<2x8xf16>
  return %y : tensor<2x8xf16>
}

// -----

// x - mean first, and a bias: a layer norm.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<2x8xf32>)
// CHECK: graph.layer_norm %[[X]] scale %{{.*}} bias %{{.*}} {epsilon = 9.99999974E-6 : f32}
func.func @main(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %two = graph.constant dense<2.0> : tensor<f32>
  %eps = graph.constant dense<1.0e-5> : tensor<f32>
  %axes = graph.constant dense<[-1]> : tensor<1xi64>
  %w = graph.weight "w" in "none" at 0 bytes 32 : tensor<8xf32>
  %b = graph.weight "b" in "none" at 32 bytes 32 : tensor<8xf32>
  %mu = graph.reduce mean %x axes %axes : (tensor<2x8xf32>, tensor<1xi64>) -> tensor<2x1xf32>
  %d = graph.binary sub %x, %mu : (tensor<2x8xf32>, tensor<2x1xf32>) -> tensor<2x8xf32>
  %p = graph.binary pow %d, %two : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %m = graph.reduce mean %p axes %axes : (tensor<2x8xf32>, tensor<1xi64>) -> tensor<2x1xf32>
  %e = graph.binary add %m, %eps : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x1xf32>
  %s = graph.unary sqrt %e : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %n = graph.binary div %d, %s : (tensor<2x8xf32>, tensor<2x1xf32>) -> tensor<2x8xf32>
  %y = graph.binary mul %n, %w : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  %z = graph.binary add %y, %b : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  return %z : tensor<2x8xf32>
}

// -----

// A mean over another dimension is not a norm of rows.
// CHECK-LABEL: func.func @main
// CHECK-NOT: graph.rms_norm
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %two = graph.constant dense<2.0> : tensor<f32>
  %eps = graph.constant dense<1.0e-5> : tensor<f32>
  %axes = graph.constant dense<[0]> : tensor<1xi64>
  %w = graph.weight "w" in "none" at 0 bytes 32 : tensor<8xf32>
  %p = graph.binary pow %x, %two : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  %m = graph.reduce mean %p axes %axes : (tensor<8x8xf32>, tensor<1xi64>) -> tensor<1x8xf32>
  %e = graph.binary add %m, %eps : (tensor<1x8xf32>, tensor<f32>) -> tensor<1x8xf32>
  %s = graph.unary sqrt %e : (tensor<1x8xf32>) -> tensor<1x8xf32>
  %n = graph.binary div %x, %s : (tensor<8x8xf32>, tensor<1x8xf32>) -> tensor<8x8xf32>
  %y = graph.binary mul %n, %w : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
