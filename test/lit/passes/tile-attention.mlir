// The query tile follows the cache: keys and values of a tile are 64 * 256 * 4 bytes, a token of two heads 2 * (128 + 64 + 128) * 4.
// RUN: llmc-opt %s -llmc-tile-attention | FileCheck %s
// RUN: llmc-opt %s -llmc-tile-attention="cache-bytes=200000 key-tile=32" | FileCheck %s --check-prefix=SMALL

// RUN: llmc-opt %s -llmc-tile-attention="key-split=512" | FileCheck %s --check-prefix=SPLIT
// RUN: not llmc-opt %s -llmc-tile-attention="key-split=100" 2>&1 | FileCheck %s --check-prefix=ODD

// ODD: key-split must be 0 or a multiple of key-tile, got 100
// SPLIT: key_split = 512 : i64, key_tile = 64 : i64
// CHECK-NOT: key_split
// CHECK: key_tile = 64 : i64, query_tile = 64 : i64
// SMALL: key_tile = 32 : i64, query_tile = 16 : i64
func.func @f(%q: tensor<?x512xf32>, %c: !llm.kv<2 x 128 x 128 x f16, paged>) -> tensor<?x512xf32> {
  %o = llm.attention %q, %c {heads = 4 : i64, scale = 0.25 : f64} : tensor<?x512xf32>, !llm.kv<2 x 128 x 128 x f16, paged> -> tensor<?x512xf32>
  return %o : tensor<?x512xf32>
}
