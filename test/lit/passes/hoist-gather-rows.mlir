// RUN: llmc-opt %s -llmc-hoist-gather-rows | FileCheck %s

// Through the norm, the MLP and the residual, up to what other rows need too.
// CHECK-LABEL: @last_layer
// CHECK-DAG: %[[O:.*]] = llm.gather_rows %arg0
// CHECK-DAG: %[[H:.*]] = llm.gather_rows %arg1
// CHECK: %[[Y:.*]] = llm.linear %[[O]], %arg2 residual(%[[H]])
// CHECK-NEXT: %[[N:.*]] = llm.rms_norm %[[Y]], %arg3
// CHECK-NEXT: return %[[N]]
func.func @last_layer(%o: tensor<?x64xf32>, %h: tensor<?x64xf32>, %w: tensor<64x64xf32>, %g: tensor<64xf32>) -> tensor<?x64xf32> {
  %y = llm.linear %o, %w residual(%h) : tensor<?x64xf32>, tensor<64x64xf32> residual tensor<?x64xf32> -> tensor<?x64xf32>
  %n = llm.rms_norm %y, %g {eps = 1.0e-5 : f64} : tensor<?x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
  %r = llm.gather_rows %n : tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}

// All rows of y are read: it stays.
// CHECK-LABEL: @read_by_others_noop
// CHECK: %[[Y:.*]] = llm.scale %arg0
// CHECK: llm.gather_rows %[[Y]]
func.func @read_by_others_noop(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %y = llm.scale %x by 2.0 : tensor<?x64xf32>
  %r = llm.gather_rows %y : tensor<?x64xf32>
  return %r, %y : tensor<?x64xf32>, tensor<?x64xf32>
}
