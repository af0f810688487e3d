// RUN: llmc-opt %s --llmc-raise-constants --split-input-file | FileCheck %s

// The size of the last dimension is the same at every size of a step; that of the sequence is not.
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[FOUR:.*]] = graph.constant dense<4> : tensor<i64>
// CHECK-DAG: %[[SEQ:.*]] = graph.gather
// CHECK: return %[[FOUR]], %[[SEQ]]
func.func @main(%ids: tensor<?x?xi64> {graph.name = "input_ids"}, %past: tensor<?x2x?x4xf32> {graph.name = "past_key_values.0.key"}) -> (tensor<i64>, tensor<i64>) {
  %three = graph.constant dense<3> : tensor<i64>
  %one = graph.constant dense<1> : tensor<i64>
  %s = graph.shape %past : (tensor<?x2x?x4xf32>) -> tensor<4xi64>
  %d = graph.gather %s, %three : (tensor<4xi64>, tensor<i64>) -> tensor<i64>
  %t = graph.shape %ids : (tensor<?x?xi64>) -> tensor<2xi64>
  %n = graph.gather %t, %one : (tensor<2xi64>, tensor<i64>) -> tensor<i64>
  return %d, %n : tensor<i64>, tensor<i64>
}

// -----

// What depends on the token ids is not known, whatever it is compared with.
// CHECK-LABEL: func.func @main
// CHECK: graph.compare ne
func.func @main(%ids: tensor<?x?xi64> {graph.name = "input_ids"}) -> tensor<?x?xi1> {
  %pad = graph.constant dense<2> : tensor<i64>
  %m = graph.compare ne %ids, %pad : (tensor<?x?xi64>, tensor<i64>) -> tensor<?x?xi1>
  return %m : tensor<?x?xi1>
}

// -----

// Sentinels in slices mean "to the end", with both signs of the step.
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[A:.*]] = graph.constant dense<[4, 3, 2, 1, 0]> : tensor<5xi64>
// CHECK-DAG: %[[B:.*]] = graph.constant dense<> : tensor<0xi64>
// CHECK-DAG: %[[C:.*]] = graph.constant dense<[4, 2]> : tensor<2xi64>
// CHECK-DAG: %[[D:.*]] = graph.constant dense<[0, 2, 4]> : tensor<3xi64>
// CHECK: return %[[A]], %[[B]], %[[C]], %[[D]]
func.func @main() -> (tensor<?xi64>, tensor<?xi64>, tensor<?xi64>, tensor<?xi64>) {
  %x = graph.constant dense<[0, 1, 2, 3, 4]> : tensor<5xi64>
  %max = graph.constant dense<9223372036854775807> : tensor<1xi64>
  %min = graph.constant dense<-9223372036854775808> : tensor<1xi64>
  %back = graph.constant dense<-1> : tensor<1xi64>
  %two = graph.constant dense<2> : tensor<1xi64>
  %backTwo = graph.constant dense<-2> : tensor<1xi64>
  %zero = graph.constant dense<0> : tensor<1xi64>
  %a = graph.slice %x from %max to %min axes %zero steps %back : (tensor<5xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xi64>
  %b = graph.slice %x from %two to %min axes %zero : (tensor<5xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xi64>
  %c = graph.slice %x from %back to %zero axes %zero steps %backTwo : (tensor<5xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xi64>
  %d = graph.slice %x from %min to %max axes %zero steps %two : (tensor<5xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xi64>
  return %a, %b, %c, %d : tensor<?xi64>, tensor<?xi64>, tensor<?xi64>, tensor<?xi64>
}

// -----

// Integers: division truncates, mod takes the divisor's sign, ranges of int64 do not go through floats, rounding is
// to even, and nothing divided by zero is folded.
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[DIV:.*]] = graph.constant dense<-3> : tensor<i64>
// CHECK-DAG: %[[MOD:.*]] = graph.constant dense<1> : tensor<i64>
// CHECK-DAG: %[[RANGE:.*]] = graph.constant dense<[9007199254740992, 9007199254740993]> : tensor<2xi64>
// CHECK-DAG: %[[ROUND:.*]] = graph.constant dense<[0.000000e+00, 2.000000e+00, -2.000000e+00]> : tensor<3xf32>
// CHECK-DAG: %[[ZERO:.*]] = graph.binary div
// CHECK: return %[[DIV]], %[[MOD]], %[[RANGE]], %[[ROUND]], %[[ZERO]]
func.func @main() -> (tensor<i64>, tensor<i64>, tensor<?xi64>, tensor<3xf32>, tensor<i64>) {
  %a = graph.constant dense<-7> : tensor<i64>
  %b = graph.constant dense<2> : tensor<i64>
  %zero = graph.constant dense<0> : tensor<i64>
  %one = graph.constant dense<1> : tensor<i64>
  %big = graph.constant dense<9007199254740992> : tensor<i64>
  %limit = graph.constant dense<9007199254740994> : tensor<i64>
  %f = graph.constant dense<[0.5, 1.5, -2.5]> : tensor<3xf32>
  %0 = graph.binary div %a, %b : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %1 = graph.binary mod %a, %b : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %2 = graph.range %big, %limit, %one : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  %3 = graph.unary round %f : (tensor<3xf32>) -> tensor<3xf32>
  %4 = graph.binary div %a, %zero : (tensor<i64>, tensor<i64>) -> tensor<i64>
  return %0, %1, %2, %3, %4 : tensor<i64>, tensor<i64>, tensor<?xi64>, tensor<3xf32>, tensor<i64>
}

// -----

// Operations that keep shape and elements at every size go; a reshape to another shape stays.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<?x2x?x4xf32>
// CHECK: %[[R:.*]] = graph.reshape %[[X]]
// CHECK: return %[[X]], %[[R]]
func.func @main(%x: tensor<?x2x?x4xf32> {graph.name = "past_key_values.0.key"}) -> (tensor<*xf32>, tensor<*xf32>) {
  %one = graph.constant dense<1.0> : tensor<f32>
  %max = graph.constant dense<9223372036854775807> : tensor<1xi64>
  %zero = graph.constant dense<0> : tensor<1xi64>
  %flat = graph.constant dense<[0, 0, -1]> : tensor<3xi64>
  %s = graph.shape %x : (tensor<?x2x?x4xf32>) -> tensor<4xi64>
  %0 = graph.expand %x, %s : (tensor<?x2x?x4xf32>, tensor<4xi64>) -> tensor<*xf32>
  %1 = graph.reshape %0, %s : (tensor<*xf32>, tensor<4xi64>) -> tensor<*xf32>
  %2 = graph.slice %1 from %zero to %max axes %zero : (tensor<*xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<*xf32>
  %3 = graph.binary mul %2, %one : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %4 = graph.reshape %x, %flat : (tensor<?x2x?x4xf32>, tensor<3xi64>) -> tensor<*xf32>
  return %3, %4 : tensor<*xf32>, tensor<*xf32>
}

// -----

// A view of a weight stays one: weights do not enter the IR.
// CHECK-LABEL: func.func @main
// CHECK: graph.transpose
func.func @main() -> tensor<4x2xf32> {
  %w = graph.weight "w" in "none.data" at 0 bytes 32 : tensor<2x4xf32>
  %t = graph.transpose %w {perm = array<i64: 1, 0>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  return %t : tensor<4x2xf32>
}
