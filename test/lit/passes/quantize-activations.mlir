// RUN: llmc-opt %s -llmc-quantize-activations -verify-diagnostics | FileCheck %s

// One conversion for two readers; a float weight reads f32.
// CHECK-LABEL: @shared
// CHECK: %[[Q:.*]] = llm.quantize %arg0
// CHECK-NOT: llm.quantize
// CHECK: llm.linear %[[Q]]
// CHECK: llm.linear %[[Q]]
// CHECK: llm.linear %arg0
func.func @shared(%x: tensor<?x64xf32>, %w: tensor<64x64xf32>) {
  %0 = llm.linear %x, %w {format = #llm.format<i4, group = 32, scale = f16>} : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
  %1 = llm.linear %x, %w {format = #llm.format<i8, group = 32, scale = f16>} : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
  %2 = llm.linear %x, %w {format = #llm.format<f32>} : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
  return
}

// CHECK-LABEL: @odd_columns
// CHECK-NOT: llm.quantize
func.func @odd_columns(%x: tensor<?x40xf32>, %w: tensor<64x40xf32>) {
  // expected-remark @+1 {{rows of 40 columns do not divide into groups of 32: the projection runs in f32}}
  %0 = llm.linear %x, %w {format = #llm.format<i4, group = 32, scale = f16>} : tensor<?x40xf32>, tensor<64x40xf32> -> tensor<?x64xf32>
  return
}
