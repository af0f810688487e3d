// What the verifiers of the plan dialect refuse.
// RUN: llmc-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{limits must be at least 1}}
func.func private @f() attributes {a = #plan.limits<tokens = 0, sequences = 1, rows = 1, queryTile = 1>}

// -----

// expected-error @+1 {{terms must not be negative, got -1}}
func.func private @f() attributes {a = #plan.affine<-1 T>}

// -----

// expected-error @+1 {{caches must be paged !llm.kv types}}
plan.program @p limits <tokens = 1, sequences = 1, rows = 1, queryTile = 1> kv [!llm.kv<3 x 64 x 64 x f16>] windows [0] key_tile 64 model {} {
}

// -----

// expected-error @+1 {{has 1 caches and 0 windows}}
plan.program @p limits <tokens = 1, sequences = 1, rows = 1, queryTile = 1> kv [!llm.kv<3 x 64 x 64 x f16, paged>] windows [] key_tile 64 model {} {
}

// -----

plan.program @p limits <tokens = 1, sequences = 1, rows = 1, queryTile = 1> kv [] windows [] key_tile 64 model {} {
  %0 = llm.weight "w" from [#llm.source<0, 0, 128>] as f32 : tensor<32xf32>
  // expected-error @+1 {{only a matrix has a format, got 'tensor<32xf32>'}}
  %w = plan.weight "w" %0 as <f16> : tensor<32xf32>
}

// -----

plan.program @p limits <tokens = 1, sequences = 1, rows = 1, queryTile = 1> kv [] windows [] key_tile 64 model {} {
  // expected-error @+1 {{slot must not be negative}}
  %x = plan.buffer "x" size <1> slot -1
}

// -----

plan.program @p limits <tokens = 1, sequences = 1, rows = 1, queryTile = 1> kv [] windows [] key_tile 64 model {} {
  // expected-error @+1 {{needs at least one column}}
  %x = plan.output "x" size <1> columns 0
}

// -----

plan.program @p limits <tokens = 1, sequences = 1, rows = 1, queryTile = 1> kv [] windows [] key_tile 64 model {} {
  // expected-error @+1 {{constant 'k' must be an integer, a real or a string}}
  plan.kernel @k "gemm" [] {k = [1]}
}

// -----

plan.program @p limits <tokens = 1, sequences = 1, rows = 1, queryTile = 1> kv [] windows [] key_tile 64 model {} {
  %x = plan.buffer "x" size <1> slot 0
  // expected-error @+1 {{runs @k, which is no kernel of this program}}
  plan.command "c" @k(%x) tasks <1> : !plan.buffer
}

// -----

plan.program @p limits <tokens = 1, sequences = 1, rows = 1, queryTile = 1> kv [] windows [] key_tile 64 model {} {
  plan.kernel @k "gemm" ["x"] {}
  %x = plan.buffer "x" size <1> slot 0
  // expected-error @+1 {{binds 2 operands; @k takes 1}}
  plan.command "c" @k(%x, %x) tasks <1> : !plan.buffer, !plan.buffer
}
