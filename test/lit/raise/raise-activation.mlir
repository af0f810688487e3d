// RUN: llmc-opt %s --llmc-raise-activation --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @silu
// CHECK: graph.unary silu %arg0
func.func @silu(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %s = graph.unary sigmoid %x : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %y = graph.binary mul %x, %s : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// CHECK-LABEL: func.func @gelu_erf
// CHECK: graph.unary gelu_erf %arg0
func.func @gelu_erf(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %root = graph.constant dense<1.41421354> : tensor<f32>
  %one = graph.constant dense<1.0> : tensor<f32>
  %half = graph.constant dense<0.5> : tensor<f32>
  %d = graph.binary div %x, %root : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %e = graph.unary erf %d : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %a = graph.binary add %e, %one : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %m = graph.binary mul %x, %a : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %y = graph.binary mul %m, %half : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// Factored, as Bloom has it: x * 0.5 * (1 + tanh(0.79788456 * x * (1 + 0.044715 * x * x))).
// CHECK-LABEL: func.func @gelu_tanh_factored
// CHECK: graph.unary gelu_tanh %arg0
func.func @gelu_tanh_factored(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %c = graph.constant dense<4.471500e-02> : tensor<f32>
  %root = graph.constant dense<0.797884583> : tensor<f32>
  %one = graph.constant dense<1.0> : tensor<f32>
  %half = graph.constant dense<0.5> : tensor<f32>
  %h = graph.binary mul %x, %half : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %r = graph.binary mul %x, %root : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %p = graph.binary mul %x, %c : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %q = graph.binary mul %p, %x : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %s = graph.binary add %q, %one : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %i = graph.binary mul %r, %s : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %t = graph.unary tanh %i : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %a = graph.binary add %t, %one : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %y = graph.binary mul %h, %a : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// CHECK-LABEL: func.func @gelu_tanh(
// CHECK: graph.unary gelu_tanh %arg0
func.func @gelu_tanh(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %three = graph.constant dense<3.0> : tensor<f32>
  %c = graph.constant dense<4.471500e-02> : tensor<f32>
  %root = graph.constant dense<0.797884583> : tensor<f32>
  %one = graph.constant dense<1.0> : tensor<f32>
  %half = graph.constant dense<0.5> : tensor<f32>
  %p = graph.binary pow %x, %three : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %q = graph.binary mul %p, %c : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %s = graph.binary add %x, %q : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %i = graph.binary mul %s, %root : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %t = graph.unary tanh %i : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %a = graph.binary add %t, %one : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %h = graph.binary mul %x, %half : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %y = graph.binary mul %h, %a : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// sigmoid(1.702 x) is another function (quick GELU).
// CHECK-LABEL: func.func @quick_gelu_noop
// CHECK-NOT: graph.unary silu
func.func @quick_gelu_noop(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %c = graph.constant dense<1.702> : tensor<f32>
  %i = graph.binary mul %x, %c : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %s = graph.unary sigmoid %i : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %y = graph.binary mul %x, %s : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}
