// RUN: not llmc-opt %s -llmc-quantize-weights=scheme=int3 2>&1 | FileCheck %s --check-prefix=SCHEME
// RUN: not llmc-opt %s -llmc-quantize-weights="scheme=int8 head=int4" 2>&1 | FileCheck %s --check-prefix=HEAD
// RUN: not llmc-opt %s -llmc-quantize-weights="scheme=int4 group=20" 2>&1 | FileCheck %s --check-prefix=GROUP
// RUN: not llmc-opt %s -llmc-select-kv-layout=element=i4 2>&1 | FileCheck %s --check-prefix=KV
// RUN: not llmc-opt %s -llmc-tile-attention=key-tile=24 2>&1 | FileCheck %s --check-prefix=TILE
// RUN: not llmc-opt %s -llmc-quantize-activations=group=8 2>&1 | FileCheck %s --check-prefix=ACTIVATIONS
// ACTIVATIONS: group must be 16 or 32, got 8
// SCHEME: weight quantization 'int3' is not known; known: none, int8, int4
// HEAD: heads in 'int4' under 'int8' are not known; known: int8, and int4 under int4
// GROUP: group must be a multiple of 32 from 32 to 256, got 20
// KV: KV cache element 'i4' is not supported; supported: f32, f16, bf16, i8
// TILE: key-tile must be a multiple of 16 and cache-bytes positive, got 24 and 524288
module {}
