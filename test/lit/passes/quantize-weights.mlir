// RUN: llmc-opt %s -llmc-quantize-weights | FileCheck %s --check-prefixes=CHECK,NONE
// RUN: llmc-opt %s -llmc-quantize-weights=scheme=int4 | FileCheck %s --check-prefixes=CHECK,INT4
// RUN: llmc-opt %s -llmc-quantize-weights="scheme=int4 head=int4" | FileCheck %s --check-prefixes=CHECK,HEAD4
// RUN: llmc-opt %s -llmc-quantize-weights=widen-e2m1=true | FileCheck %s --check-prefix=WIDE
// RUN: llmc-opt %s -llmc-quantize-weights="scheme=int8 group=64" | FileCheck %s --check-prefixes=CHECK,INT8

// A tied table gets one format for both uses.
// CHECK-LABEL: @tied
// NONE: llm.embedding {{.*}}#llm.format<bf16>
// NONE: llm.linear {{.*}}#llm.format<f32>
// NONE: llm.linear {{.*}}#llm.format<bf16>
// INT4: llm.embedding {{.*}}#llm.format<i8, group = 32, scale = f16>
// INT4: llm.linear {{.*}}#llm.format<i4, group = 32, scale = f16>
// INT4: llm.linear {{.*}}#llm.format<i8, group = 32, scale = f16>
// HEAD4: llm.embedding {{.*}}#llm.format<i4, group = 32, scale = f16, min>
// HEAD4: llm.linear {{.*}}#llm.format<i4, group = 32, scale = f16>
// HEAD4: llm.linear {{.*}}#llm.format<i4, group = 32, scale = f16, min>
// INT8: llm.embedding {{.*}}#llm.format<i8, group = 64, scale = f16>
// INT8: llm.linear {{.*}}#llm.format<i8, group = 64, scale = f16>
// INT8: llm.linear {{.*}}#llm.format<i8, group = 64, scale = f16>
func.func @tied(%tokens: tensor<?xi32>) -> tensor<?x512xf32> {
  %e = llm.weight "e" from [#llm.source<0, 0, 65536>] as bf16 : tensor<512x64xf32>
  %w = llm.weight "w" from [#llm.source<0, 65536, 16384>] as f32 : tensor<64x64xf32>
  %h = llm.embedding %tokens, %e : (tensor<?xi32>, tensor<512x64xf32>) -> tensor<?x64xf32>
  %y = llm.linear %h, %w : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
  %l = llm.linear %y, %e : tensor<?x64xf32>, tensor<512x64xf32> -> tensor<?x512xf32>
  return %l : tensor<?x512xf32>
}

// A table of its own is read a row at a time: 8 bits cost nothing.
// CHECK-LABEL: @untied
// HEAD4: llm.embedding {{.*}}#llm.format<i8, group = 32, scale = f16>
// HEAD4: llm.linear {{.*}}#llm.format<i4, group = 32, scale = f16, min>
func.func @untied(%tokens: tensor<?xi32>) -> tensor<?x512xf32> {
  %e = llm.weight "e" from [#llm.source<0, 0, 65536>] as bf16 : tensor<512x64xf32>
  %w = llm.weight "w" from [#llm.source<0, 65536, 65536>] as bf16 : tensor<512x64xf32>
  %h = llm.embedding %tokens, %e : (tensor<?xi32>, tensor<512x64xf32>) -> tensor<?x64xf32>
  %l = llm.linear %h, %w : tensor<?x64xf32>, tensor<512x64xf32> -> tensor<?x512xf32>
  return %l : tensor<?x512xf32>
}

// What the file has quantized stays as it is, whatever the scheme; views keep it.
// CHECK-LABEL: @quantized_sources
func.func @quantized_sources(%x: tensor<?x256xf32>) {
  %q40 = llm.weight "a" from [#llm.source<0, 0, 2304>] as q4_0 : tensor<16x256xf32>
  %q41 = llm.weight "b" from [#llm.source<0, 0, 2560>] as q4_1 : tensor<16x256xf32>
  %q6k = llm.weight "c" from [#llm.source<0, 0, 3360>] as q6_k : tensor<16x256xf32>
  %nb = llm.weight "d" from [#llm.source<0, 0, 2048>, #llm.source<0, 0, 512>] as nbits block 32 scales f32 : tensor<16x256xf32>
  %down = llm.weight "e" from [#llm.source<0, 0, 2048>, #llm.source<0, 0, 256>] as block_int4 block 32 scales f16 {blocks_down, signed_codes} : tensor<256x16xf32>
  %up = llm.weight_transpose %down : tensor<256x16xf32> -> tensor<16x256xf32>
  %mx = llm.weight "f" from [#llm.source<0, 0, 2176>] as mxfp4 : tensor<16x256xf32>
  %perm = llm.weight_unpermute %q40 heads 1 : tensor<16x256xf32>
  // CHECK: llm.linear {{.*}}#llm.format<i4, group = 32, scale = f16>}
  %0 = llm.linear %x, %perm : tensor<?x256xf32>, tensor<16x256xf32> -> tensor<?x16xf32>
  // CHECK: llm.linear {{.*}}#llm.format<i4, group = 32, scale = f16, min>}
  %1 = llm.linear %x, %q41 : tensor<?x256xf32>, tensor<16x256xf32> -> tensor<?x16xf32>
  // CHECK: llm.linear {{.*}}#llm.format<i8, group = 16, scale = f32>}
  %2 = llm.linear %x, %q6k : tensor<?x256xf32>, tensor<16x256xf32> -> tensor<?x16xf32>
  // CHECK: llm.linear {{.*}}#llm.format<i4, group = 32, scale = f32>}
  %3 = llm.linear %x, %nb : tensor<?x256xf32>, tensor<16x256xf32> -> tensor<?x16xf32>
  // CHECK: llm.linear {{.*}}#llm.format<i4, group = 32, scale = f16>}
  %4 = llm.linear %x, %up : tensor<?x256xf32>, tensor<16x256xf32> -> tensor<?x16xf32>
  // NONE: llm.linear {{.*}}#llm.format<e2m1, group = 32, scale = e8m0>}
  // INT4: llm.linear {{.*}}#llm.format<e2m1, group = 32, scale = e8m0>}
  // WIDE: llm.linear {{.*}}#llm.format<i8, group = 32, scale = f32>}
  %5 = llm.linear %x, %mx : tensor<?x256xf32>, tensor<16x256xf32> -> tensor<?x16xf32>
  return
}
