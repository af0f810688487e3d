// RUN: llmc-opt %s --llmc-raise-attention --split-input-file | FileCheck %s

!q = tensor<1x2x3x4xf32>
!t = tensor<1x2x4x3xf32>
!s = tensor<1x2x3x3xf32>

// The scale is split over q and k, the mask is a select of 0 and -inf that is added, NaN becomes 0.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[Q:.*]]: tensor<1x2x3x4xf32>, %[[K:.*]]: tensor<1x2x3x4xf32>, %[[V:.*]]: tensor<1x2x3x4xf32>, %[[SEES:.*]]: tensor<1x1x3x3xi1>)
// CHECK: %[[MASK:.*]] = graph.select %[[SEES]]
// CHECK: %[[Y:.*]] = graph.attention %[[Q]], %[[K]], %[[V]] mask %[[MASK]] {{.*}}scale = 2.500000e-01 : f32}
// CHECK: return %[[Y]]
func.func @main(%q: !q, %k: !q, %v: !q, %sees: tensor<1x1x3x3xi1>) -> !q {
  %half = graph.constant dense<0.5> : tensor<f32>
  %zero = graph.constant dense<0.0> : tensor<1xf32>
  %inf = graph.constant dense<0xFF800000> : tensor<1xf32>
  %t = graph.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (!q) -> !t
  %qs = graph.binary mul %q, %half : (!q, tensor<f32>) -> !q
  %ks = graph.binary mul %t, %half : (!t, tensor<f32>) -> !t
  %s = graph.matmul %qs, %ks : (!q, !t) -> !s
  %m = graph.select %sees, %zero, %inf : (tensor<1x1x3x3xi1>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x1x3x3xf32>
  %a = graph.binary add %s, %m : (!s, tensor<1x1x3x3xf32>) -> !s
  %p = graph.softmax %a {axis = -1 : i64} : (!s) -> !s
  %nan = graph.unary is_nan %p : (!s) -> tensor<1x2x3x3xi1>
  %c = graph.select %nan, %zero, %p : (tensor<1x2x3x3xi1>, tensor<1xf32>, !s) -> !s
  %y = graph.matmul %c, %v : (!s, !q) -> !q
  return %y : !q
}

// -----

!q = tensor<1x2x3x4xf32>
!t = tensor<1x2x4x3xf32>
!s = tensor<1x2x3x3xf32>

// A soft cap between the scale and a mask that hides by a select.
// CHECK-LABEL: func.func @main
// CHECK: %[[SEES:.*]] = graph.unary not %arg3
// CHECK: graph.attention %arg0, %arg1, %arg2 mask %[[SEES]] {{.*}}scale = 5.000000e-01 : f32, softcap = 3.000000e+01 : f32}
func.func @main(%q: !q, %k: !q, %v: !q, %hidden: tensor<1x1x3x3xi1>) -> !q {
  %half = graph.constant dense<0.5> : tensor<f32>
  %cap = graph.constant dense<30.0> : tensor<f32>
  %min = graph.constant dense<-3.40282347E+38> : tensor<f32>
  %t = graph.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (!q) -> !t
  %s = graph.matmul %q, %t : (!q, !t) -> !s
  %ss = graph.binary mul %s, %half : (!s, tensor<f32>) -> !s
  %d = graph.binary div %ss, %cap : (!s, tensor<f32>) -> !s
  %h = graph.unary tanh %d : (!s) -> !s
  %c = graph.binary mul %h, %cap : (!s, tensor<f32>) -> !s
  %a = graph.select %hidden, %min, %c : (tensor<1x1x3x3xi1>, tensor<f32>, !s) -> !s
  %p = graph.softmax %a {axis = 3 : i64} : (!s) -> !s
  %y = graph.matmul %p, %v : (!s, !q) -> !q
  return %y : !q
}

// -----

!q = tensor<1x2x3x4xf32>
!s = tensor<1x2x3x3xf32>

// A softmax over another axis is not attention.
// CHECK-LABEL: func.func @main
// CHECK-NOT: graph.attention
func.func @main(%q: !q, %k: tensor<1x2x4x3xf32>, %v: !q) -> !q {
  %s = graph.matmul %q, %k : (!q, tensor<1x2x4x3xf32>) -> !s
  %p = graph.softmax %s {axis = 1 : i64} : (!s) -> !s
  %y = graph.matmul %p, %v : (!s, !q) -> !q
  return %y : !q
}

// -----

!f = tensor<2x3x4xf32>
!t = tensor<2x4x3xf32>
!s = tensor<2x3x3xf32>
!u = tensor<1x2x3x3xf32>

// Bloom: products of [batch * heads, ...], a position bias that is added before they are unfolded, a mask after.
// CHECK-LABEL: func.func @main
// CHECK: %[[B:.*]] = graph.reshape %arg3
// CHECK-NEXT: %[[MASK:.*]] = graph.binary add %arg4, %[[B]]
// CHECK: %[[Q:.*]] = graph.reshape %arg0
// CHECK: %[[A:.*]] = graph.attention %[[Q]], %{{.*}}, %{{.*}} mask %[[MASK]] {{.*}}scale = 5.000000e-01 : f32
// CHECK: %[[Y:.*]] = graph.reshape %[[A]]
// CHECK: return %[[Y]]
func.func @main(%q: !f, %k: !f, %v: !f, %bias: tensor<2x1x3xf32>, %mask: tensor<1x1x3x3xf32>) -> !f {
  %half = graph.constant dense<0.5> : tensor<f32>
  %unfold = graph.constant dense<[1, 2, 3, 3]> : tensor<4xi64>
  %fold = graph.constant dense<[2, 3, 3]> : tensor<3xi64>
  %t = graph.transpose %k {perm = array<i64: 0, 2, 1>} : (!f) -> !t
  %s = graph.matmul %q, %t : (!f, !t) -> !s
  %ss = graph.binary mul %s, %half : (!s, tensor<f32>) -> !s
  %b = graph.binary add %ss, %bias : (!s, tensor<2x1x3xf32>) -> !s
  %u = graph.reshape %b, %unfold : (!s, tensor<4xi64>) -> !u
  %m = graph.binary add %u, %mask : (!u, tensor<1x1x3x3xf32>) -> !u
  %p = graph.softmax %m {axis = -1 : i64} : (!u) -> !u
  %c = graph.reshape %p, %fold : (!u, tensor<3xi64>) -> !s
  %y = graph.matmul %c, %v : (!s, !f) -> !f
  return %y : !f
}
