// RUN: llmc-opt %s -llmc-fuse-gate-up | FileCheck %s

// CHECK-LABEL: @gated
// CHECK: %[[W:.*]] = llm.weight_interleave %arg1, %arg2 : tensor<40x64xf32> -> tensor<96x64xf32>
// CHECK: %[[Y:.*]] = llm.linear %arg0, %[[W]] {activation = {{.*}}silu{{.*}}, glu} : {{.*}} -> tensor<?x40xf32>
// CHECK: return %[[Y]]
func.func @gated(%x: tensor<?x64xf32>, %wg: tensor<40x64xf32>, %wu: tensor<40x64xf32>) -> tensor<?x40xf32> {
  %g = llm.linear %x, %wg : tensor<?x64xf32>, tensor<40x64xf32> -> tensor<?x40xf32>
  %u = llm.linear %x, %wu : tensor<?x64xf32>, tensor<40x64xf32> -> tensor<?x40xf32>
  %y = llm.glu silu %g, %u : tensor<?x40xf32>
  return %y : tensor<?x40xf32>
}

// Something else reads the gate.
// CHECK-LABEL: @gate_read_twice_noop
// CHECK-NOT: llm.weight_interleave
func.func @gate_read_twice_noop(%x: tensor<?x64xf32>, %wg: tensor<40x64xf32>, %wu: tensor<40x64xf32>) -> (tensor<?x40xf32>, tensor<?x40xf32>) {
  %g = llm.linear %x, %wg : tensor<?x64xf32>, tensor<40x64xf32> -> tensor<?x40xf32>
  %u = llm.linear %x, %wu : tensor<?x64xf32>, tensor<40x64xf32> -> tensor<?x40xf32>
  %y = llm.glu silu %g, %u : tensor<?x40xf32>
  return %y, %g : tensor<?x40xf32>, tensor<?x40xf32>
}
