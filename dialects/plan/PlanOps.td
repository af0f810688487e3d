//===- PlanOps.td - operations of the plan dialect ----------------*- tablegen -*-===//
#ifndef LLMC_DIALECTS_PLAN_PLANOPS
#define LLMC_DIALECTS_PLAN_PLANOPS

include "dialects/plan/PlanDialect.td"

def Plan_ProgramOp : Plan_Op<"program", [SymbolTable, NoTerminator, SingleBlock, IsolatedFromAbove]> {
  let summary = "a whole plan";
  let description = [{
    Holds weights, buffers, outputs, kernels and commands. `kv` gives each layer's cache, `windows` its
    sliding window (0: none), `model` what `llm.model` said.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_LimitsAttr:$limits, TypeArrayAttr:$kv,
                       DenseI64ArrayAttr:$windows, I64Attr:$key_tile, DictionaryAttr:$model);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `limits` $limits `kv` $kv `windows` $windows `key_tile` $key_tile `model` $model
    attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

def Plan_WeightOp : Plan_Op<"weight", [Pure]> {
  let summary = "a matrix or vector as the plan stores it";
  let description = [{
    The values of `source` in `format`; without a format they are f32 rows, as vectors are. Where the source
    holds the format's own integers they are kept, otherwise floats are rounded to it.
  }];
  let arguments = (ins StrAttr:$name, Llm_WeightTensor:$source, OptionalAttr<Llm_FormatAttr>:$format);
  let results = (outs Plan_WeightType:$result);
  let assemblyFormat = "$name $source (`as` $format^)? attr-dict `:` type($source)";
  let hasVerifier = 1;
}

def Plan_BufferOp : Plan_Op<"buffer", [MemoryEffects<[MemAlloc]>]> {
  let summary = "memory of the arena";
  let description = "Buffers of one `slot` share memory: the planner gives it to those whose lives do not overlap.";
  let arguments = (ins StrAttr:$name, Plan_AffineAttr:$size, I64Attr:$slot);
  let results = (outs Plan_BufferType:$result);
  let assemblyFormat = "$name `size` $size `slot` $slot attr-dict";
  let hasVerifier = 1;
}

def Plan_OutputOp : Plan_Op<"output", [MemoryEffects<[MemAlloc]>]> {
  let summary = "an output of the step, in memory of the caller";
  let description = "Rows of `columns` f32 values; `size` in bytes.";
  let arguments = (ins StrAttr:$name, Plan_AffineAttr:$size, I64Attr:$columns);
  let results = (outs Plan_OutputType:$result);
  let assemblyFormat = "$name `size` $size `columns` $columns attr-dict";
  let hasVerifier = 1;
}

def Plan_KernelOp : Plan_Op<"kernel", [Symbol]> {
  let summary = "a kernel to be generated";
  let description = [{
    `kind` names the family, `signature` the bindings in order, `constants` what it is specialised for
    (integers, reals, strings). codegen/cpu/kernels/README.md lists the families.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$kind, StrArrayAttr:$signature,
                       DictionaryAttr:$constants);
  let assemblyFormat = "$sym_name $kind $signature $constants attr-dict";
  let hasVerifier = 1;
}

def Plan_CommandOp : Plan_Op<"command", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "one run of a kernel over its tasks";
  let description = [{
    ```mlir
    plan.command "layers.0.attention" @attention_0(%q, %o) tasks #plan.affine<3 Q> scalars [0]
      : !plan.buffer, !plan.buffer
    ```
  }];
  let arguments = (ins StrAttr:$name, FlatSymbolRefAttr:$kernel, Variadic<Plan_Operand>:$bindings,
                       Plan_AffineAttr:$tasks, OptionalAttr<DenseI64ArrayAttr>:$scalars,
                       OptionalAttr<Plan_CostAttr>:$cost);
  let assemblyFormat = [{
    $name $kernel `(` $bindings `)` `tasks` $tasks (`scalars` $scalars^)? (`cost` $cost^)? attr-dict `:` type($bindings)
  }];
}

#endif
