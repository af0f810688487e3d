// RUN: llmc-opt %s -llmc-fuse-norm-quantize | FileCheck %s

// CHECK-LABEL: @norm
// CHECK: %[[N:.*]] = llm.rms_norm %arg0, %arg1 {{.*}} -> tensor<?x64x!llm.q8<32>>
// CHECK-NEXT: return %[[N]]
func.func @norm(%x: tensor<?x64xf32>, %g: tensor<64xf32>) -> tensor<?x64x!llm.q8<32>> {
  %n = llm.rms_norm %x, %g {eps = 1.0e-5 : f64} : tensor<?x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
  %q = llm.quantize %n : tensor<?x64xf32> -> tensor<?x64x!llm.q8<32>>
  return %q : tensor<?x64x!llm.q8<32>>
}

// CHECK-LABEL: @f32_is_read_too_noop
// CHECK: llm.quantize
func.func @f32_is_read_too_noop(%x: tensor<?x64xf32>, %g: tensor<64xf32>) -> (tensor<?x64x!llm.q8<32>>, tensor<?x64xf32>) {
  %n = llm.rms_norm %x, %g {eps = 1.0e-5 : f64} : tensor<?x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
  %q = llm.quantize %n : tensor<?x64xf32> -> tensor<?x64x!llm.q8<32>>
  return %q, %n : tensor<?x64x!llm.q8<32>>, tensor<?x64xf32>
}
