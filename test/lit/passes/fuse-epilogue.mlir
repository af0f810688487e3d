// RUN: llmc-opt %s -llmc-fuse-epilogue | FileCheck %s

// CHECK-LABEL: @residual
// CHECK: %[[Y:.*]] = llm.linear %arg0, %arg2 residual(%arg1)
// CHECK-NEXT: return %[[Y]]
func.func @residual(%x: tensor<?x64xf32>, %h: tensor<?x64xf32>, %w: tensor<64x64xf32>) -> tensor<?x64xf32> {
  %y = llm.linear %x, %w : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
  %z = llm.add %h, %y : tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}

// CHECK-LABEL: @activation_then_residual
// CHECK: %[[Y:.*]] = llm.linear %arg0, %arg2 residual(%arg1) {activation = {{.*}}gelu{{.*}}}
// CHECK-NEXT: return %[[Y]]
func.func @activation_then_residual(%x: tensor<?x64xf32>, %h: tensor<?x64xf32>, %w: tensor<64x64xf32>) -> tensor<?x64xf32> {
  %y = llm.linear %x, %w : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
  %a = llm.activate gelu %y : tensor<?x64xf32>
  %z = llm.add %a, %h : tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}

// Two projections meet: the later one takes the sum.
// CHECK-LABEL: @two_projections
// CHECK: %[[A:.*]] = llm.linear %arg0, %arg2 :
// CHECK: %[[B:.*]] = llm.linear %arg1, %arg2 residual(%[[A]])
// CHECK-NEXT: return %[[B]]
func.func @two_projections(%x: tensor<?x64xf32>, %h: tensor<?x64xf32>, %w: tensor<64x64xf32>) -> tensor<?x64xf32> {
  %a = llm.linear %x, %w : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
  %b = llm.linear %h, %w : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
  %z = llm.add %b, %a : tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}

// The sum's other operand does not exist yet where the projection runs.
// CHECK-LABEL: @later_operand_noop
// CHECK: llm.add
func.func @later_operand_noop(%x: tensor<?x64xf32>, %w: tensor<64x64xf32>) -> tensor<?x64xf32> {
  %y = llm.linear %x, %w : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
  %s = llm.scale %x by 2.0 : tensor<?x64xf32>
  %z = llm.add %s, %y : tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}
