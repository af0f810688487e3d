//===- Passes.td - passes over the llm dialect --------------------*- tablegen -*-===//
#ifndef LLMC_COMPILER_PASSES_PASSES
#define LLMC_COMPILER_PASSES_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// fuse
//===----------------------------------------------------------------------===//

def FuseQkvPass : Pass<"llmc-fuse-qkv", "::mlir::ModuleOp"> {
  let summary = "Reads x once for Q, K and V";
  let description = [{
    Projections of one x whose results meet in one layer's attention become one matrix; its columns are
    what the projections gave. Biases join likewise.

    ```mlir
    %q = llm.linear %x, %wq   %k = llm.linear %x, %wk   %v = llm.linear %x, %wv
    // becomes
    %w = llm.weight_concat %wq, %wk, %wv
    %y = llm.linear %x, %w
    %q = llm.columns %y from 0   %k = llm.columns %y from 576   %v = llm.columns %y from 768
    ```
  }];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
}

def FuseGateUpPass : Pass<"llmc-fuse-gate-up", "::mlir::ModuleOp"> {
  let summary = "Gate and up projections in one read, the product in the epilogue";
  let description = [{
    ```mlir
    %g = llm.linear %x, %wg   %u = llm.linear %x, %wu   %y = llm.glu silu %g, %u
    // becomes
    %w = llm.weight_interleave %wg, %wu
    %y = llm.linear %x, %w {activation = silu, glu}
    ```
  }];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
}

def FuseEpiloguePass : Pass<"llmc-fuse-epilogue", "::mlir::ModuleOp"> {
  let summary = "Activation and residual sum in the projection's epilogue";
  let description = [{
    `activate(linear(x))` and `add(linear(x), h)` become one `llm.linear`, when nothing else reads the
    projection and h exists before it.

    ```mlir
    %y = llm.linear %x, %w   %z = llm.add %h, %y
    // becomes
    %z = llm.linear %x, %w residual(%h)
    ```
  }];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
}

def FuseRopeAppendPass : Pass<"llmc-fuse-rope-append", "::mlir::ModuleOp"> {
  let summary = "RoPE of Q and K and the KV append in one pass over the rows";
  let description = [{
    Always part of the pipeline: `llm.rope_append` is the form that has a kernel. Head norms before the rotation
    (`llm.rms_norm` with `group_size`) join too.

    ```mlir
    %q1 = llm.rope %q, %a   %k1 = llm.rope %k, %a   %kv1 = llm.kv_append %kv, %k1, %v
    // becomes
    %q1, %kv1 = llm.rope_append %q, %k, %v, %kv angles(%a)
    ```
  }];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
}

def SplitColumnsPass : Pass<"llmc-split-columns", "::mlir::ModuleOp"> {
  let summary = "A projection of its own for columns that no kernel reads where they stand";
  let description = [{
    Always part of the pipeline. Checkpoints and graphs join projections (gate and up, Q with a latent K and V)
    whose parts go different ways. `llm.rope_append` reads Q, K and V side by side; for every other reader the
    projection of those columns is one of some rows of the weight.

    ```mlir
    %y = llm.linear %x, %w   %g = llm.columns %y from 0   %u = llm.columns %y from 128   %z = llm.glu silu %g, %u
    // becomes
    %wg = llm.weight_rows %w from 0      %g = llm.linear %x, %wg
    %wu = llm.weight_rows %w from 128    %u = llm.linear %x, %wu   %z = llm.glu silu %g, %u
    ```
  }];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
}

def HoistGatherRowsPass : Pass<"llmc-hoist-gather-rows", "::mlir::ModuleOp"> {
  let summary = "Computes only the rows whose logits are wanted";
  let description = [{
    Moves `llm.gather_rows` against the data flow through everything that works row by row: the final norm, the
    last layer's MLP and output projection, up to its attention.

    ```mlir
    %n = llm.rms_norm %h, %w   %r = llm.gather_rows %n
    // becomes
    %g = llm.gather_rows %h    %r = llm.rms_norm %g, %w
    ```
  }];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
}

def FuseNormQuantizePass : Pass<"llmc-fuse-norm-quantize", "::mlir::ModuleOp"> {
  let summary = "A norm that writes int8 rows";
  let description = [{
    When every reader of a norm wants the same int8 rows, the norm writes them itself.

    ```mlir
    %n = llm.rms_norm %h, %w   %q = llm.quantize %n
    // becomes
    %q = llm.rms_norm %h, %w : ... -> tensor<?x576x!llm.q8<32>>
    ```
  }];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
}

//===----------------------------------------------------------------------===//
// quantize
//===----------------------------------------------------------------------===//

def QuantizeWeightsPass : Pass<"llmc-quantize-weights", "::mlir::ModuleOp"> {
  let summary = "Chooses how the plan stores each matrix";
  let description = [{
    Sets `format` on every `llm.linear` and `llm.embedding`. Weights that the source has quantized already keep
    their integers (Q4_0, Q4_1, Q8_0, MatMulNBits and the others map exactly); floats keep their type under
    `scheme=none`, and become groups of 32 with a scale under `int8` and `int4`. Under `int4` embeddings are int8, and
    heads are what `head` says: int8, or int4 with a minimum for each group. A tied matrix has its head's format.
  }];
  let options = [
    Option<"scheme", "scheme", "std::string", "\"none\"", "none, int8 or int4: what floats become">,
    Option<"group", "group", "int64_t", "32", "values a scale covers">,
    Option<"head", "head", "std::string", "\"int8\"", "int8 or int4: what heads become under int4">,
    Option<"widenE2m1", "widen-e2m1", "bool", "false", "MXFP4 as int8, for targets whose kernels have no 4-bit floats">,
  ];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
}

def QuantizeActivationsPass : Pass<"llmc-quantize-activations", "::mlir::ModuleOp"> {
  let summary = "Quantizes the rows that integer weights are multiplied with";
  let description = [{
    Puts `llm.quantize` before each `llm.linear` whose format has integers, once for all readers of a row tensor. A row
    length that the group does not divide stays f32, with a remark. Groups of 16 halve the error's share that large
    neighbours cause, for twice the scale arithmetic.
  }];
  let options = [
    Option<"group", "group", "int64_t", "32", "16 or 32 values a scale, never more than the weight's group">,
  ];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
}

//===----------------------------------------------------------------------===//
// kv, attention
//===----------------------------------------------------------------------===//

def SelectKvLayoutPass : Pass<"llmc-select-kv-layout", "::mlir::ModuleOp"> {
  let summary = "Chooses the cache's element and layout";
  let description = [{
    Every `!llm.kv` becomes paged, with the element asked for.

    ```mlir
    !llm.kv<3 x 64 x 64 x f32>  ->  !llm.kv<3 x 64 x 64 x f16, paged>
    ```
  }];
  let options = [
    Option<"element", "element", "std::string", "\"f16\"", "f32, f16, bf16 or i8">,
  ];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
}

def TileAttentionPass : Pass<"llmc-tile-attention", "::mlir::ModuleOp"> {
  let summary = "Flash attention: the tiles of keys and queries";
  let description = [{
    The key tile is a constant of the plan: it is part of the order of additions. The query tile is the most tokens whose
    queries, scores and results for one group of heads fit in half of the second-level cache beside a tile of keys and
    values; it has no influence on results. Dao et al., 2022 and 2023. `key-split` is a constant of the plan, too: a
    length that depended on the step would make the bits depend on it. Dao et al., Flash-Decoding, 2023.
  }];
  let options = [
    Option<"keyTile", "key-tile", "int64_t", "64", "keys of one softmax step">,
    Option<"keySplit", "key-split", "int64_t", "0", "keys of one of the parts that threads share; 0: one part">,
    Option<"cacheBytes", "cache-bytes", "int64_t", "524288", "the second-level cache of the target">,
  ];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
}

//===----------------------------------------------------------------------===//
// plan
//===----------------------------------------------------------------------===//

def LowerToPlanPass : Pass<"llmc-lower-to-plan", "::mlir::ModuleOp"> {
  let summary = "Outlines kernels, plans memory, lists commands";
  let description = [{
    Replaces `@step` by a `plan.program`: each operation becomes a command of a kernel; kernels with the same constants are
    one; buffers whose lives do not overlap share a slot of the arena; its size is a formula in T, S, R.
  }];
  let options = [
    Option<"maxTokens", "max-tokens", "int64_t", "512", "tokens of the largest step">,
    Option<"maxSequences", "max-sequences", "int64_t", "256", "sequences of the largest step">,
  ];
  let dependentDialects = ["::llmc::llm::LlmDialect", "::llmc::plan::PlanDialect"];
}

#endif
