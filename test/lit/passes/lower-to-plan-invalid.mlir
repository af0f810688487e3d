// RUN: llmc-opt %s -llmc-lower-to-plan -split-input-file -verify-diagnostics

// expected-error @+1 {{module has no function @step}}
module {}

// -----

// expected-error @+1 {{must return rows chosen by llm.gather_rows}}
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %e = llm.weight "e" from [#llm.source<0, 0, 8192>] as f32 : tensor<32x64xf32>
  %h = llm.embedding %tokens, %e {format = #llm.format<f32>} : (tensor<?xi32>, tensor<32x64xf32>) -> tensor<?x64xf32>
  return %h : tensor<?x64xf32>
}

// -----

func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %e = llm.weight "e" from [#llm.source<0, 0, 8192>] as f32 : tensor<32x64xf32>
  // expected-error @+1 {{has no format (is llmc-quantize-weights missing?)}}
  %h = llm.embedding %tokens, %e : (tensor<?xi32>, tensor<32x64xf32>) -> tensor<?x64xf32>
  return %h : tensor<?x64xf32>
}

// -----

// expected-error @+1 {{has layers without a KV cache}}
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %c = llm.kv_cache 1 : !llm.kv<2 x 16 x 16 x f16, paged>
  %e = llm.weight "e" from [#llm.source<0, 0, 8192>] as f32 : tensor<32x64xf32>
  %h = llm.embedding %tokens, %e {format = #llm.format<f32>} : (tensor<?xi32>, tensor<32x64xf32>) -> tensor<?x64xf32>
  return %h : tensor<?x64xf32>
}
