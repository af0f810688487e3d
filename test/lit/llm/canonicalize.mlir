// Folders and canonicalization of the llm dialect.
// RUN: llmc-opt %s -canonicalize | FileCheck %s

// CHECK-LABEL: @transpose_twice
// CHECK-NEXT: return %arg0
func.func @transpose_twice(%a: tensor<64x32xf32>) -> tensor<64x32xf32> {
  %t = llm.weight_transpose %a : tensor<64x32xf32> -> tensor<32x64xf32>
  %u = llm.weight_transpose %t : tensor<32x64xf32> -> tensor<64x32xf32>
  return %u : tensor<64x32xf32>
}

// CHECK-LABEL: @concat_one
// CHECK-NEXT: return %arg0
func.func @concat_one(%a: tensor<64x32xf32>) -> tensor<64x32xf32> {
  %c = llm.weight_concat %a : tensor<64x32xf32> -> tensor<64x32xf32>
  return %c : tensor<64x32xf32>
}

// CHECK-LABEL: @concat_flattens
// CHECK-NEXT: %[[C:.*]] = llm.weight_concat %arg0, %arg1, %arg0
// CHECK-NEXT: return %[[C]]
func.func @concat_flattens(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>) -> tensor<12x8xf32> {
  %c = llm.weight_concat %b, %a : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<8x8xf32>
  %d = llm.weight_concat %a, %c : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<12x8xf32>
  return %d : tensor<12x8xf32>
}

// CHECK-LABEL: @concat_of_what_was_cut
// CHECK-NEXT: return %arg0
func.func @concat_of_what_was_cut(%a: tensor<12x8xf32>) -> tensor<12x8xf32> {
  %q = llm.weight_rows %a from 0 : tensor<12x8xf32> -> tensor<4x8xf32>
  %k = llm.weight_rows %a from 4 : tensor<12x8xf32> -> tensor<8x8xf32>
  %c = llm.weight_concat %q, %k : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<12x8xf32>
  return %c : tensor<12x8xf32>
}

// A gap or another order stays.
// CHECK-LABEL: @concat_in_another_order_noop
// CHECK: llm.weight_concat
func.func @concat_in_another_order_noop(%a: tensor<12x8xf32>) -> tensor<12x8xf32> {
  %q = llm.weight_rows %a from 0 : tensor<12x8xf32> -> tensor<4x8xf32>
  %k = llm.weight_rows %a from 4 : tensor<12x8xf32> -> tensor<8x8xf32>
  %c = llm.weight_concat %k, %q : tensor<8x8xf32>, tensor<4x8xf32> -> tensor<12x8xf32>
  return %c : tensor<12x8xf32>
}

// CHECK-LABEL: @rows_of_rows
// CHECK-NEXT: %[[R:.*]] = llm.weight_rows %arg0 from 6
// CHECK-NEXT: return %[[R]]
func.func @rows_of_rows(%a: tensor<12x8xf32>) -> tensor<2x8xf32> {
  %q = llm.weight_rows %a from 4 : tensor<12x8xf32> -> tensor<8x8xf32>
  %k = llm.weight_rows %q from 2 : tensor<8x8xf32> -> tensor<2x8xf32>
  return %k : tensor<2x8xf32>
}

// CHECK-LABEL: @reshape_of_reshape
// CHECK-NEXT: return %arg0
func.func @reshape_of_reshape(%a: tensor<12x8xf32>) -> tensor<12x8xf32> {
  %q = llm.weight_reshape %a : tensor<12x8xf32> -> tensor<96xf32>
  %k = llm.weight_reshape %q : tensor<96xf32> -> tensor<12x8xf32>
  return %k : tensor<12x8xf32>
}

// CHECK-LABEL: @identities
// CHECK-NEXT: return %arg0
func.func @identities(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %a = llm.activate none %x : tensor<?x64xf32>
  %b = llm.scale %a by 1.0 : tensor<?x64xf32>
  %c = llm.columns %b from 0 : tensor<?x64xf32> -> tensor<?x64xf32>
  return %c : tensor<?x64xf32>
}
