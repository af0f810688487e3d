//===- Passes.td - From the graph dialect to the llm dialect ---------------===//

#ifndef LLMC_COMPILER_PASSES_RAISE_PASSES_TD
#define LLMC_COMPILER_PASSES_RAISE_PASSES_TD

include "mlir/Pass/PassBase.td"

def RaiseConstantsPass : Pass<"llmc-raise-constants", "::mlir::func::FuncOp"> {
  let summary = "Replaces what does not depend on the input by constants, and drops operations that do nothing";
  let description = [{
    Runs the graph at a few sizes (see SampleEvaluation.h). A small value that comes out the same at every size
    becomes a `graph.constant`; an expand, reshape, slice, cast or multiplication by one that leaves shape and
    elements as they are at every size becomes its operand. Views of weights stay views.

    ```mlir
    %s = graph.shape %x : (tensor<?x?x64xf32>) -> tensor<3xi64>
    %d = graph.gather %s, %two : (tensor<3xi64>, tensor<i64>) -> tensor<i64>
    // becomes
    %d = graph.constant dense<64> : tensor<i64>
    ```
  }];
  let statistics = [Statistic<"folded", "folded", "values that became constants">,
                    Statistic<"removed", "removed", "operations that did nothing">];
  let dependentDialects = ["::llmc::graph::GraphDialect"];
}

def RaiseNormPass : Pass<"llmc-raise-norm", "::mlir::func::FuncOp"> {
  let summary = "Recognises RMSNorm and LayerNorm chains";
  let description = [{
    x * (1 / sqrt(mean(x^2) + eps)) * w, in any order of the factors, with division or reciprocal, with casts to f32
    and back, with mean as a reduce or a sum and a factor, becomes `graph.rms_norm`. The same after x - mean(x), with or without
    a bias, becomes `graph.layer_norm`.

    ```mlir
    %p = graph.binary pow %x, %two        %m = graph.reduce mean %p axes %last
    %e = graph.binary add %m, %eps        %s = graph.unary sqrt %e
    %r = graph.binary div %one, %s        %n = graph.binary mul %x, %r
    %y = graph.binary mul %w, %n
    // becomes
    %y = graph.rms_norm %x scale %w {epsilon = 1.0e-5 : f32}
    ```
  }];
  let statistics = [Statistic<"norms", "norms", "norms recognised">];
  let dependentDialects = ["::llmc::graph::GraphDialect"];
}

def RaiseActivationPass : Pass<"llmc-raise-activation", "::mlir::func::FuncOp"> {
  let summary = "Recognises SiLU and GELU chains";
  let description = [{
    x * sigmoid(x) becomes `graph.unary silu`; 0.5 * x * (1 + erf(x / sqrt 2)) `graph.unary gelu_erf`;
    0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) `graph.unary gelu_tanh`, whatever the order of the factors
    (Bloom factors x out of the cubic).

    ```mlir
    %s = graph.unary sigmoid %x
    %y = graph.binary mul %x, %s
    // becomes
    %y = graph.unary silu %x
    ```
  }];
  let statistics = [Statistic<"activations", "activations", "activations recognised">];
  let dependentDialects = ["::llmc::graph::GraphDialect"];
}

def RaiseRopePass : Pass<"llmc-raise-rope", "::mlir::func::FuncOp"> {
  let summary = "Recognises rotary embedding";
  let description = [{
    x * cos + concat(-x[half:], x[:half]) * sin becomes `graph.rotary_embedding`. Whether the slices are the halves
    is read off their bounds at every sample size, so bounds that are computed at run time are fine.

    ```mlir
    %a = graph.slice %x [0, 32)           %b = graph.slice %x [32, 64)
    %n = graph.unary neg %b               %r = graph.concat %n, %a
    %p = graph.binary mul %x, %cos        %q = graph.binary mul %r, %sin
    %y = graph.binary add %p, %q
    // becomes
    %y = graph.rotary_embedding %x cos %cos sin %sin
    ```
  }];
  let statistics = [Statistic<"rotations", "rotations", "rotary embeddings recognised">];
  let dependentDialects = ["::llmc::graph::GraphDialect"];
}

def RaiseAttentionPass : Pass<"llmc-raise-attention", "::mlir::func::FuncOp"> {
  let summary = "Recognises scaled dot product attention";
  let description = [{
    matmul(softmax(matmul(q, transpose(k)) * scale + mask), v) becomes `graph.attention`. The scale may sit on
    the scores, on q, on k or on both; the mask may be added, or chosen with a select; a soft cap may come between;
    zeros in place of NaN after the softmax (rows that see no key) are part of the operation. Products of [batch * heads, ...]
    that are unfolded before the softmax count, and so do several added masks (ALiBi and the causal one). What a mask means
    is not looked at here: llmc-raise-step reads it off its values.

    ```mlir
    %t = graph.transpose %k {perm = [0, 1, 3, 2]}     %qs = graph.binary mul %q, %c
    %s = graph.matmul %qs, %t                         %m = graph.binary add %s, %mask
    %p = graph.softmax %m {axis = -1}                 %o = graph.matmul %p, %v
    // becomes
    %o = graph.attention %q, %k, %v mask %mask {scale = 0.125 : f32}
    ```
  }];
  let statistics = [Statistic<"attentions", "attentions", "attentions recognised">];
  let dependentDialects = ["::llmc::graph::GraphDialect"];
}

def RaiseStepPass : Pass<"llmc-raise-step", "::mlir::ModuleOp"> {
  let summary = "Turns the decoder graph into the function `step` of the llm dialect";
  let description = [{
    `@main` over padded batches [batch, sequence, ...] and past/present tensors becomes `@step` over a ragged batch of
    tokens [T, ...] and `!llm.kv` values. Each value is followed through reshapes, transposes, splits and
    repeats as a set of axes (batch, sequence, heads, features), so the layout an exporter chose does not matter.
    What the graph may not do is mix tokens other than by attention; a mask must be causal, or causal with a
    window, at every sample size, and may add a bias that falls by one slope a key in each head (ALiBi); cosines and sines must be functions of a token's position alone. What does not
    fit is an error that names the node, the operator and the reason.

    `max_context` of `llm.model` is what the file states; a rotary table bounds it.
  }];
  let dependentDialects = ["::llmc::graph::GraphDialect", "::llmc::llm::LlmDialect", "::mlir::func::FuncDialect"];
}

#endif
