// RUN: llmc-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{type 'tensor<2x3xf32>' takes 24 bytes, not 20}}
func.func @weight_size() { %0 = graph.weight "w" in "f" at 0 bytes 20 : tensor<2x3xf32> return }

// -----

func.func @weight_dynamic() {
  // expected-error@+1 {{a weight has a static shape}}
  %0 = graph.weight "w" in "f" at 0 bytes 4 : tensor<?xf32>
  return
}

// -----

func.func @weight_overflow() {
  // expected-error@+1 {{takes}}
  %0 = graph.weight "w" in "f" at 0 bytes 4 : tensor<4611686018427387904x8xf32>
  return
}

// -----

func.func @unary_isnan(%x: tensor<4xf32>) {
  // expected-error@+1 {{gives i1}}
  %0 = graph.unary is_nan %x : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @binary_types(%x: tensor<4xf32>, %y: tensor<4xf16>) {
  // expected-error@+1 {{a and b have the same element type}}
  %0 = graph.binary add %x, %y : (tensor<4xf32>, tensor<4xf16>) -> tensor<4xf32>
  return
}

// -----

func.func @binary_logical(%x: tensor<4xi64>) {
  // expected-error@+1 {{logical functions take i1}}
  %0 = graph.binary and %x, %x : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  return
}

// -----

func.func @compare_bool(%x: tensor<4xi1>) {
  // expected-error@+1 {{booleans have no order}}
  %0 = graph.compare lt %x, %x : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return
}

// -----

func.func @reshape_count(%x: tensor<4xf32>, %s: tensor<1xi64>) {
  // expected-error@+1 {{the number of elements changes from 4 to 5}}
  %0 = graph.reshape %x, %s : (tensor<4xf32>, tensor<1xi64>) -> tensor<5xf32>
  return
}

// -----

func.func @transpose_perm(%x: tensor<4x2xf32>) {
  // expected-error@+1 {{perm is a permutation of 0 .. rank - 1}}
  %0 = graph.transpose %x {perm = array<i64: 1, 1>} : (tensor<4x2xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @concat_axis(%x: tensor<4x2xf32>) {
  // expected-error@+1 {{axis 2 is out of range for rank 2}}
  %0 = graph.concat %x, %x {axis = 2 : i64} : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  return
}

// -----

func.func @fill_value(%s: tensor<1xi64>) {
  // expected-error@+1 {{value has one element}}
  %0 = graph.fill %s {value = dense<[1, 2]> : tensor<2xi64>} : (tensor<1xi64>) -> tensor<?xi64>
  return
}

// -----

func.func @dequantize_nbits_bits(%b: tensor<8x32xui8>, %s: tensor<8x2xf32>) {
  // expected-error@+1 {{bits is 2, 4 or 8, not 3}}
  %0 = graph.dequantize_nbits %b scales %s {bits = 3 : i64, block_size = 32 : i64} : (tensor<8x32xui8>, tensor<8x2xf32>) -> tensor<8x64xf32>
  return
}

// -----

func.func @dequantize_nbits_rank(%b: tensor<8x2x16xui8>, %s: tensor<8x2xf32>) {
  // expected-error@+1 {{x is a matrix, not of rank 3}}
  %0 = graph.dequantize_nbits %b scales %s {bits = 4 : i64, block_size = 32 : i64} : (tensor<8x2x16xui8>, tensor<8x2xf32>) -> tensor<8x64xf32>
  return
}

// -----

func.func @nbits_bits(%x: tensor<1x64xf32>, %b: tensor<8x2x16xui8>, %s: tensor<16xf32>) {
  // expected-error@+1 {{bits is 2, 4 or 8, not 3}}
  %0 = graph.matmul_nbits %x, %b scales %s {K = 64 : i64, N = 8 : i64, bits = 3 : i64, block_size = 32 : i64} : (tensor<1x64xf32>, tensor<8x2x16xui8>, tensor<16xf32>) -> tensor<1x8xf32>
  return
}

// -----

func.func @nbits_size(%x: tensor<1x64xf32>, %b: tensor<8x1x16xui8>, %s: tensor<16xf32>) {
  // expected-error@+1 {{b holds 128 bytes}}
  %0 = graph.matmul_nbits %x, %b scales %s {K = 64 : i64, N = 8 : i64, bits = 4 : i64, block_size = 32 : i64} : (tensor<1x64xf32>, tensor<8x1x16xui8>, tensor<16xf32>) -> tensor<1x8xf32>
  return
}

// -----

func.func @rotary_heads(%x: tensor<1x2x8xf32>, %c: tensor<1x2x2xf32>) {
  // expected-error@+1 {{num_heads is needed for x of rank 3}}
  %0 = graph.rotary_embedding %x cos %c sin %c : (tensor<1x2x8xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>) -> tensor<1x2x8xf32>
  return
}

// -----

func.func @gqa_heads(%x: tensor<1x2x8xf32>, %l: tensor<1xi32>, %t: tensor<i32>) {
  // expected-error@+1 {{num_heads is a positive multiple of kv_num_heads}}
  %0 = graph.group_query_attention %x lengths %l, %t {num_heads = 3 : i64, kv_num_heads = 2 : i64, resultSegmentSizes = array<i32: 1, 0, 0>} : (tensor<1x2x8xf32>, tensor<1xi32>, tensor<i32>) -> tensor<1x2x8xf32>
  return
}

// -----

func.func @loop_arguments(%n: tensor<i64>, %x: tensor<2xf32>) {
  // expected-error@+1 {{its body takes 2 values, not a turn's number, a condition and 1 carried ones}}
  %0 = graph.loop trips %n carry %x : (tensor<i64>, tensor<2xf32>) -> tensor<?xf32> {
  ^bb0(%i: tensor<i64>, %on: tensor<i1>):
    graph.yield %on, %x : tensor<i1>, tensor<2xf32>
  }
  return
}

// -----

func.func @loop_condition(%n: tensor<i64>) {
  // expected-error@+1 {{its body's first two values are an i64 and an i1}}
  graph.loop trips %n : (tensor<i64>) -> () {
  ^bb0(%on: tensor<i1>, %i: tensor<i64>):
    graph.yield %on : tensor<i1>
  }
  return
}

// -----

func.func @loop_yield(%n: tensor<i64>, %x: tensor<2xf32>) {
  // expected-error@+1 {{its body gives a condition, 1 carried values and 1 to stack}}
  %0:2 = graph.loop trips %n carry %x : (tensor<i64>, tensor<2xf32>) -> (tensor<?xf32>, tensor<?x?xf32>) {
  ^bb0(%i: tensor<i64>, %on: tensor<i1>, %v: tensor<2xf32>):
    graph.yield %on, %v : tensor<i1>, tensor<2xf32>
  }
  return
}

// -----

func.func @loop_results(%n: tensor<i64>, %x: tensor<2xf32>) {
  // expected-error@+1 {{has 0 results for 1 carried values}}
  graph.loop trips %n carry %x : (tensor<i64>, tensor<2xf32>) -> () {
  ^bb0(%i: tensor<i64>, %on: tensor<i1>, %v: tensor<2xf32>):
    graph.yield %on : tensor<i1>
  }
  return
}

// -----

func.func @loop_scan_element(%n: tensor<i64>) {
  // expected-error@+1 {{scan 0 stacks 'tensor<i64>' to 'tensor<?xf32>'}}
  %0 = graph.loop trips %n : (tensor<i64>) -> tensor<?xf32> {
  ^bb0(%i: tensor<i64>, %on: tensor<i1>):
    graph.yield %on, %i : tensor<i1>, tensor<i64>
  }
  return
}

// -----

func.func @loop_scan_count(%n: tensor<i64>) {
  // expected-error@+1 {{scan_shapes has 2 shapes for 1 scans}}
  %0 = graph.loop trips %n {scan_shapes = [array<i64>, array<i64>]} : (tensor<i64>) -> tensor<?xi64> {
  ^bb0(%i: tensor<i64>, %on: tensor<i1>):
    graph.yield %on, %i : tensor<i1>, tensor<i64>
  }
  return
}

// -----

func.func @loop_scan_rank(%n: tensor<i64>) {
  // expected-error@+1 {{scan_shapes has 2 dimensions for scan 0 of rank 0}}
  %0 = graph.loop trips %n {scan_shapes = [array<i64: 2, 3>]} : (tensor<i64>) -> tensor<?xi64> {
  ^bb0(%i: tensor<i64>, %on: tensor<i1>):
    graph.yield %on, %i : tensor<i1>, tensor<i64>
  }
  return
}

// -----

func.func @loop_scan_kind(%n: tensor<i64>) {
  // expected-error@+1 {{scan_shapes has an array<i64> for each scan}}
  %0 = graph.loop trips %n {scan_shapes = ["2"]} : (tensor<i64>) -> tensor<?xi64> {
  ^bb0(%i: tensor<i64>, %on: tensor<i1>):
    graph.yield %on, %i : tensor<i1>, tensor<i64>
  }
  return
}
