// What the verifiers of the llm dialect refuse.
// RUN: llmc-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{'llm.files' must be an array of file names}}
module attributes {llm.files = [1]} {}

// -----

// expected-error @+1 {{'llm.model' must be a dictionary}}
module attributes {llm.model = "llama"} {}

// -----

// expected-error @+1 {{has an unknown attribute of the llm dialect, 'llm.fils'}}
module attributes {llm.fils = []} {}

// -----

// expected-error @+1 {{a source's file, offset and size must not be negative}}
func.func private @f() attributes {a = #llm.source<0, -1, 2>}

// -----

// expected-error @+1 {{group must be a multiple of 16 from 16 to 4096, got 0}}
func.func private @f() attributes {a = #llm.format<i4>}

// -----

// expected-error @+1 {{a format of float elements has neither groups nor minimums}}
func.func private @f() attributes {a = #llm.format<f32, group = 32>}

// -----

// expected-error @+1 {{unknown element 'i5'; known: f32, f16, bf16, i8, i4}}
func.func private @f() attributes {a = #llm.format<i5, group = 32>}

// -----

// expected-error @+1 {{a cache of i4 is not supported; supported: f32, f16, bf16, i8}}
func.func private @cache(!llm.kv<2 x 16 x 16 x i4>)

// -----

// expected-error @+1 {{activations are quantized in groups of 16 or 32, got 8}}
func.func private @q8(tensor<?x64x!llm.q8<8>>)

// -----

// expected-error @+1 {{has 4095 bytes; its shape and encoding need 4096}}
%a = llm.weight "a" from [#llm.source<0, 64, 4095>] as bf16 : tensor<64x32xf32>

// -----

// expected-error @+1 {{does not fill whole blocks of q4_0}}
%a = llm.weight "a" from [#llm.source<0, 64, 18>] as q4_0 : tensor<1x31xf32>

// -----

// expected-error @+1 {{needs data, scales and optionally zero points as sources, has 1}}
%a = llm.weight "a" from [#llm.source<0, 64, 16>] as nbits block 32 scales f32 : tensor<1x32xf32>

// -----

// expected-error @+1 {{needs 'block', the values a scale covers}}
%a = llm.weight "a" from [#llm.source<0, 64, 16>, #llm.source<0, 0, 4>] as nbits scales f32 : tensor<1x32xf32>

// -----

func.func @transpose(%a: tensor<64x32xf32>) {
  // expected-error @+1 {{must swap the two dimensions of a matrix}}
  %t = llm.weight_transpose %a : tensor<64x32xf32> -> tensor<64x32xf32>
  return
}

// -----

func.func @concat(%a: tensor<64x32xf32>) {
  // expected-error @+1 {{operands have 128 rows, the result 127}}
  %t = llm.weight_concat %a, %a : tensor<64x32xf32>, tensor<64x32xf32> -> tensor<127x32xf32>
  return
}

// -----

func.func @interleave(%a: tensor<20x32xf32>) {
  // expected-error @+1 {{result must have 64 rows, has 40}}
  %t = llm.weight_interleave %a, %a : tensor<20x32xf32> -> tensor<40x32xf32>
  return
}

// -----

func.func @rows(%a: tensor<64x32xf32>) {
  // expected-error @+1 {{rows [60, 68) are outside the 64 rows of the operand}}
  %t = llm.weight_rows %a from 60 : tensor<64x32xf32> -> tensor<8x32xf32>
  return
}

// -----

func.func @unpermute(%a: tensor<64x32xf32>) {
  // expected-error @+1 {{rows must divide into 3 heads of an even size}}
  %t = llm.weight_unpermute %a heads 3 : tensor<64x32xf32>
  return
}

// -----

func.func @reshape(%a: tensor<64x32xf32>) {
  // expected-error @+1 {{must keep the number of values}}
  %t = llm.weight_reshape %a : tensor<64x32xf32> -> tensor<2047xf32>
  return
}

// -----

func.func @linear(%x: tensor<?x63xf32>, %w: tensor<96x64xf32>) {
  // expected-error @+1 {{input must have 64 columns, has 63}}
  %y = llm.linear %x, %w : tensor<?x63xf32>, tensor<96x64xf32> -> tensor<?x96xf32>
  return
}

// -----

func.func @glu(%x: tensor<?x64xf32>, %w: tensor<48x64xf32>) {
  // expected-error @+1 {{with glu needs interleaved tiles of 16 gate and 16 up rows; 48 rows are not a multiple of 32}}
  %y = llm.linear %x, %w {glu} : tensor<?x64xf32>, tensor<48x64xf32> -> tensor<?x24xf32>
  return
}

// -----

func.func @bias(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>, %b: tensor<95xf32>) {
  // expected-error @+1 {{bias must be tensor<96xf32>, got 'tensor<95xf32>'}}
  %y = llm.linear %x, %w bias(%b) : tensor<?x64xf32>, tensor<96x64xf32> bias tensor<95xf32> -> tensor<?x96xf32>
  return
}

// -----

func.func @quantize(%x: tensor<?x40xf32>) {
  // expected-error @+1 {{int8 rows of 40 columns do not divide into groups of 32}}
  %y = llm.quantize %x : tensor<?x40xf32> -> tensor<?x40x!llm.q8<32>>
  return
}

// -----

func.func @norm(%x: tensor<?x64xf32>, %w: tensor<63xf32>) {
  // expected-error @+1 {{weight must be tensor<64xf32>, got 'tensor<63xf32>'}}
  %y = llm.rms_norm %x, %w {eps = 1.0e-5 : f64} : tensor<?x64xf32>, tensor<63xf32> -> tensor<?x64xf32>
  return
}

// -----

func.func @static_rows(%x: tensor<4x64xf32>) {
  // expected-error @+1 {{operand must be tensor<?xN>, got 'tensor<4x64xf32>'}}
  %y = llm.add %x, %x : tensor<4x64xf32>
  return
}

// -----

func.func @columns(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{columns [60, 76) are outside the 64 columns of the operand}}
  %y = llm.columns %x from 60 : tensor<?x64xf32> -> tensor<?x16xf32>
  return
}

// -----

func.func @softcap(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{cap must be above 0}}
  %y = llm.softcap %x at 0.0 : tensor<?x64xf32>
  return
}

// -----

func.func @activation(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{unknown activation 'swish'; known: none, silu, gelu, gelu_tanh, relu}}
  %y = llm.activate swish %x : tensor<?x64xf32>
  return
}

// -----

func.func @angles(%p: tensor<?xi32>, %f: tensor<8xf32>) {
  // expected-error @+1 {{angles must be tensor<?x2x8xf32>, got 'tensor<?x2x7xf32>'}}
  %a = llm.rope_angles %p, %f : (tensor<?xi32>, tensor<8xf32>) -> tensor<?x2x7xf32>
  return
}

// -----

func.func @rope(%x: tensor<?x64xf32>, %a: tensor<?x2x16xf32>) {
  // expected-error @+1 {{rotates 32 values of heads of size 16}}
  %y = llm.rope %x, %a {heads = 4 : i64} : tensor<?x64xf32>, tensor<?x2x16xf32>
  return
}

// -----

func.func @append(%c: !llm.kv<2 x 16 x 16 x f32>, %k: tensor<?x32xf32>, %v: tensor<?x31xf32>) {
  // expected-error @+1 {{values must be tensor<?x32xf32>, got 'tensor<?x31xf32>'}}
  %d = llm.kv_append %c, %k, %v : !llm.kv<2 x 16 x 16 x f32>, tensor<?x32xf32>, tensor<?x31xf32>
  return
}

// -----

func.func @heads(%q: tensor<?x48xf32>, %c: !llm.kv<2 x 16 x 16 x f32>) {
  // expected-error @+1 {{3 query heads do not divide over 2 KV heads}}
  %o = llm.attention %q, %c {heads = 3 : i64, scale = 0.25 : f64} : tensor<?x48xf32>, !llm.kv<2 x 16 x 16 x f32> -> tensor<?x48xf32>
  return
}

// -----

func.func @window(%q: tensor<?x64xf32>, %c: !llm.kv<2 x 16 x 16 x f32>) {
  // expected-error @+1 {{window must be at least 1}}
  %o = llm.attention %q, %c {heads = 4 : i64, scale = 0.25 : f64, window = 0 : i64} : tensor<?x64xf32>, !llm.kv<2 x 16 x 16 x f32> -> tensor<?x64xf32>
  return
}

// -----

func.func @alibi(%q: tensor<?x64xf32>, %c: !llm.kv<2 x 16 x 16 x f32>, %s: tensor<2xf32>) {
  // expected-error @+1 {{alibi must be tensor<4xf32>, got 'tensor<2xf32>'}}
  %o = llm.attention %q, %c alibi(%s) {heads = 4 : i64, scale = 0.25 : f64} : tensor<?x64xf32>, !llm.kv<2 x 16 x 16 x f32> alibi tensor<2xf32> -> tensor<?x64xf32>
  return
}

// -----

func.func @norm_eps(%q: tensor<?x64xf32>, %k: tensor<?x32xf32>, %c: !llm.kv<2 x 16 x 16 x f32>) {
  // expected-error @+1 {{needs norm_eps exactly where it has norms}}
  %r, %d = llm.rope_append %q, %k, %k, %c {heads = 4 : i64, norm_eps = 1.0e-6 : f64} : tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>, !llm.kv<2 x 16 x 16 x f32>
  return
}

// -----

func.func @split(%q: tensor<?x64xf32>, %c: !llm.kv<2 x 16 x 16 x f32>) -> tensor<?x64xf32> {
  // expected-error @+1 {{key_split must be a multiple of key_tile}}
  %o = llm.attention %q, %c {heads = 4 : i64, scale = 0.25 : f64, key_tile = 64 : i64, key_split = 96 : i64} : tensor<?x64xf32>, !llm.kv<2 x 16 x 16 x f32> -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}
