// RUN: llmc-opt %s -llmc-select-kv-layout=element=bf16 | FileCheck %s

// CHECK: llm.kv_cache 0 : <2 x 16 x 16 x bf16, paged>
// CHECK: llm.attention {{.*}}<2 x 16 x 16 x bf16, paged>
func.func @f(%q: tensor<?x64xf32>, %k: tensor<?x32xf32>) -> tensor<?x64xf32> {
  %c = llm.kv_cache 0 : !llm.kv<2 x 16 x 16 x f32>
  %q1, %c1 = llm.rope_append %q, %k, %k, %c {heads = 4 : i64} : tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>, !llm.kv<2 x 16 x 16 x f32>
  %o = llm.attention %q1, %c1 {heads = 4 : i64, scale = 0.25 : f64} : tensor<?x64xf32>, !llm.kv<2 x 16 x 16 x f32> -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}
