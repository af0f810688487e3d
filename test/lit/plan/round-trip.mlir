// The plan dialect prints what it parses, as text and as bytecode.
// RUN: llmc-opt %s | llmc-opt | FileCheck %s
// RUN: llmc-opt %s --emit-bytecode | llmc-opt | FileCheck %s

// CHECK: plan.program @p limits <tokens = 512, sequences = 8, rows = 512, queryTile = 16> kv [!llm.kv<3 x 64 x 64 x f16, paged>] windows [0] key_tile 64 model {architecture = "llama"}
plan.program @p limits <tokens = 512, sequences = 8, rows = 512, queryTile = 16> kv [!llm.kv<3 x 64 x 64 x f16, paged>] windows [0] key_tile 64
    model {architecture = "llama"} {
  %0 = llm.weight "w" from [#llm.source<0, 0, 4096>] as f32 : tensor<32x32xf32>
  // CHECK: %[[W:.*]] = plan.weight "layers.0.qkv" %{{.*}} as <i4, group = 32, scale = f16> : tensor<32x32xf32>
  %w = plan.weight "layers.0.qkv" %0 as <i4, group = 32, scale = f16> : tensor<32x32xf32>
  // CHECK: %[[X:.*]] = plan.buffer "x" size <64 + 128 T + 8 R> slot 0
  %x = plan.buffer "x" size <64 + 128 T + 8 R> slot 0
  // CHECK: plan.buffer "none" size <0> slot 1
  %n = plan.buffer "none" size <0> slot 1
  // CHECK: %[[Y:.*]] = plan.output "logits" size <128 R> columns 32
  %y = plan.output "logits" size <128 R> columns 32
  // CHECK: plan.kernel @gemm_0 "gemm" ["x", "w", "y"] {eps = 1.000000e-05 : f64, k = 32 : i64, op = "add"}
  plan.kernel @gemm_0 "gemm" ["x", "w", "y"] {k = 32 : i64, eps = 1.0e-5 : f64, op = "add"}
  // CHECK: plan.command "layers.0.qkv" @gemm_0(%[[X]], %[[W]], %[[Y]]) tasks <2 + 3 Q> scalars [7, 8] cost <weightBytes = 1, operationsPerRow = 2, bytesPerRow = 3, kvBytesPerContext = 4, integer = true> : !plan.buffer, !plan.weight, !plan.output
  plan.command "layers.0.qkv" @gemm_0(%x, %w, %y) tasks <2 + 3 Q> scalars [7, 8]
      cost <weightBytes = 1, operationsPerRow = 2, bytesPerRow = 3, kvBytesPerContext = 4, integer = true> : !plan.buffer, !plan.weight, !plan.output
}
