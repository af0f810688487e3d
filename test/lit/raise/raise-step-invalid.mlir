// What a step cannot express is an error that names the node, the operator and the reason.
// RUN: llmc-opt %s --llmc-raise-step --split-input-file --verify-diagnostics

// expected-error@+1 {{the module has no graph function 'main' to raise}}
module {
}

// -----

module {
  // expected-error@+1 {{input 'pixels' is not one that a decoder has; known: input_ids, attention_mask, position_ids}}
  func.func @main(%x: tensor<?x?xf32> {graph.name = "pixels"}) -> (tensor<?x?xf32> {graph.name = "logits"}) {
    return %x : tensor<?x?xf32>
  }
}

// -----

// The first thing that was not understood is what is said, with the node's name and operator.
module {
  // expected-note@+1 {{output 'logits' needs it}}
  func.func @main(%ids: tensor<?x?xi64> {graph.name = "input_ids"}) -> (tensor<?x?x8xf32> {graph.name = "logits"}) {
    %e = graph.weight "embed" in "m.data" at 0 bytes 128 : tensor<4x8xf32>
    %x = graph.gather %e, %ids : (tensor<4x8xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
    // expected-error@unknown {{node 'layers.0/act' (Tan): 'tan' of rows is not a known part of a decoder; known: silu, gelu, relu}}
    %y = graph.unary tan %x : (tensor<?x?x8xf32>) -> tensor<?x?x8xf32> loc("layers.0/act"("Tan"(unknown)))
    %z = graph.unary silu %y : (tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
    return %z : tensor<?x?x8xf32>
  }
}

// -----

// Attention without a mask would see later tokens.
module {
  // expected-note@+1 {{output 'logits' needs it}}
  func.func @main(%ids: tensor<?x?xi64> {graph.name = "input_ids"}) -> (tensor<?x?x8xf32> {graph.name = "logits"}) {
    %e = graph.weight "embed" in "m.data" at 0 bytes 128 : tensor<4x8xf32>
    %x = graph.gather %e, %ids : (tensor<4x8xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
    // expected-error@+1 {{there is no mask, so a token would see later ones}}
    %y = graph.attention %x, %x, %x {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, resultSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
    return %y : tensor<?x?x8xf32>
  }
}

// -----

// A mask made from token ids is never taken for a causal one.
module {
  // expected-note@+1 {{output 'logits' needs it}}
  func.func @main(%ids: tensor<?x?xi64> {graph.name = "input_ids"}) -> (tensor<?x?x8xf32> {graph.name = "logits"}) {
    %pad = graph.constant dense<2> : tensor<i64>
    %axes = graph.constant dense<[1, 2]> : tensor<2xi64>
    %e = graph.weight "embed" in "m.data" at 0 bytes 128 : tensor<4x8xf32>
    %x = graph.gather %e, %ids : (tensor<4x8xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
    %m = graph.compare ne %ids, %pad : (tensor<?x?xi64>, tensor<i64>) -> tensor<?x?xi1>
    %mask = graph.unsqueeze %m, %axes : (tensor<?x?xi1>, tensor<2xi64>) -> tensor<?x1x1x?xi1>
    // expected-error@+1 {{the mask depends on more than the sizes and the attention mask (on token ids, say)}}
    %y = graph.attention %x, %x, %x mask %mask {is_causal, q_num_heads = 2 : i64, kv_num_heads = 2 : i64, resultSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x1x1x?xi1>) -> tensor<?x?x8xf32>
    return %y : tensor<?x?x8xf32>
  }
}

// -----

// A bias that does not grow evenly with the distance is neither a mask nor ALiBi.
module {
  // expected-note@+1 {{output 'logits' needs it}}
  func.func @main(%ids: tensor<?x?xi64> {graph.name = "input_ids"}, %am: tensor<?x?xi64> {graph.name = "attention_mask"}) -> (tensor<?x?x8xf32> {graph.name = "logits"}) {
    %axes = graph.constant dense<[1, 2]> : tensor<2xi64>
    %one = graph.constant dense<1> : tensor<i64>
    %e = graph.weight "embed" in "m.data" at 0 bytes 128 : tensor<4x8xf32>
    %x = graph.gather %e, %ids : (tensor<4x8xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
    %sum = graph.cumsum %am, %one : (tensor<?x?xi64>, tensor<i64>) -> tensor<?x?xi64>
    %f = graph.cast %sum : (tensor<?x?xi64>) -> tensor<?x?xf32>
    %square = graph.binary mul %f, %f : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
    %mask = graph.unsqueeze %square, %axes : (tensor<?x?xf32>, tensor<2xi64>) -> tensor<?x1x1x?xf32>
    // expected-error@+1 {{the mask adds numbers other than 0 and a large negative one to the scores, and they do not fall by one slope a key (ALiBi)}}
    %y = graph.attention %x, %x, %x mask %mask {is_causal, q_num_heads = 2 : i64, kv_num_heads = 2 : i64, resultSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x1x1x?xf32>) -> tensor<?x?x8xf32>
    return %y : tensor<?x?x8xf32>
  }
}

// -----

// A batch and a sequence may not change places.
module {
  // expected-note@+1 {{output 'logits' needs it}}
  func.func @main(%ids: tensor<?x?xi64> {graph.name = "input_ids"}) -> (tensor<?x?x8xf32> {graph.name = "logits"}) {
    %e = graph.weight "embed" in "m.data" at 0 bytes 128 : tensor<4x8xf32>
    %x = graph.gather %e, %ids : (tensor<4x8xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
    %t = graph.transpose %x {perm = array<i64: 1, 0, 2>} : (tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
    // expected-error@+1 {{its operands hold tokens and features in different orders, or are broadcast}}
    %y = graph.binary add %x, %t : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
    return %y : tensor<?x?x8xf32>
  }
}

// -----

// An output that says it is the cache but is not.
module {
  // expected-error@+1 {{output 'present.0.key' is not the cache of layer 0 with the new tokens added, which is what its name says}}
  func.func @main(%ids: tensor<?x?xi64> {graph.name = "input_ids"}) -> (tensor<?x?x8xf32> {graph.name = "present.0.key"}) {
    %e = graph.weight "embed" in "m.data" at 0 bytes 128 : tensor<4x8xf32>
    %x = graph.gather %e, %ids : (tensor<4x8xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
    return %x : tensor<?x?x8xf32>
  }
}

// -----

// A sequence length that the exporter froze is refused, not filled up.
module {
  // expected-error@+1 {{the graph's sequence length is fixed at 128; a step has any number of tokens: export with dynamic axes}}
  func.func @main(%ids: tensor<?x128xi64> {graph.name = "input_ids"}) -> (tensor<?x128x8xf32> {graph.name = "logits"}) {
    %e = graph.weight "embed" in "m.data" at 0 bytes 128 : tensor<4x8xf32>
    %x = graph.gather %e, %ids : (tensor<4x8xf32>, tensor<?x128xi64>) -> tensor<?x128x8xf32>
    return %x : tensor<?x128x8xf32>
  }
}

// -----

module {
  // expected-error@+1 {{the graph's batch is fixed at 4; supported: a dynamic batch, or one of 1}}
  func.func @main(%ids: tensor<4x?xi64> {graph.name = "input_ids"}) -> (tensor<4x?x8xf32> {graph.name = "logits"}) {
    %e = graph.weight "embed" in "m.data" at 0 bytes 128 : tensor<4x8xf32>
    %x = graph.gather %e, %ids : (tensor<4x8xf32>, tensor<4x?xi64>) -> tensor<4x?x8xf32>
    return %x : tensor<4x?x8xf32>
  }
}

// -----

// A padding mask alone lets a token see later ones.
module {
  // expected-note@+1 {{output 'logits' needs it}}
  func.func @main(%ids: tensor<?x?xi64> {graph.name = "input_ids"}, %am: tensor<?x?xi64> {graph.name = "attention_mask"}) -> (tensor<?x?x8xf32> {graph.name = "logits"}) {
    %axes = graph.constant dense<[1, 2]> : tensor<2xi64>
    %e = graph.weight "embed" in "m.data" at 0 bytes 128 : tensor<4x8xf32>
    %x = graph.gather %e, %ids : (tensor<4x8xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
    %b = graph.cast %am : (tensor<?x?xi64>) -> tensor<?x?xi1>
    %mask = graph.unsqueeze %b, %axes : (tensor<?x?xi1>, tensor<2xi64>) -> tensor<?x1x1x?xi1>
    // expected-error@+1 {{the mask is not causal: at 0 past and 5 new tokens, new token 0 sees keys 0 to 4}}
    %y = graph.attention %x, %x, %x mask %mask {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, resultSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x1x1x?xi1>) -> tensor<?x?x8xf32>
    return %y : tensor<?x?x8xf32>
  }
}

// -----

// Rows of a table by twice the position are not position embeddings.
module {
  // expected-note@+1 {{output 'logits' needs it}}
  func.func @main(%ids: tensor<?x?xi64> {graph.name = "input_ids"}, %pos: tensor<?x?xi64> {graph.name = "position_ids"}) -> (tensor<?x?x8xf32> {graph.name = "logits"}) {
    %two = graph.constant dense<2> : tensor<i64>
    %e = graph.weight "table" in "m.data" at 0 bytes 128 : tensor<4x8xf32>
    %p = graph.binary mul %pos, %two : (tensor<?x?xi64>, tensor<i64>) -> tensor<?x?xi64>
    // expected-error@+1 {{the rows of the table are chosen by something other than token ids or positions}}
    %x = graph.gather %e, %p : (tensor<4x8xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
    return %x : tensor<?x?x8xf32>
  }
}
