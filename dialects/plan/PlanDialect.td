//===- PlanDialect.td - the plan dialect --------------------------*- tablegen -*-===//
#ifndef LLMC_DIALECTS_PLAN_PLANDIALECT
#define LLMC_DIALECTS_PLAN_PLANDIALECT

include "dialects/llm/LlmDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::llmc::plan";
  let summary = "What the runtime will do: the text form of a plan file's head";
  let description = [{
    One to one with runtime/plan/plan.fbs: weights with their storage, buffers in the arena, kernels
    with the constants they are specialised for, and the flat list of commands. Order matters: the
    runtime runs commands from the first to the last.

    ```mlir
    plan.program @smollm2 limits(tokens = 512, sequences = 64, rows = 512, query_tile = 16)
        kv [!llm.kv<3 x 64 x 64 x f16, paged>] {
      %0 = llm.weight "w" from [#llm.source<0, 0, 1327104>] as f32 : tensor<576x576xf32>
      %w = plan.weight "layers.0.qkv" %0 as #llm.format<i4, group = 32, scale = f16> : tensor<576x576xf32>
      %x = plan.buffer "x" size #plan.affine<2304 T> slot 0
      %y = plan.buffer "y" size #plan.affine<2304 T> slot 1
      plan.kernel @gemm_0 "gemm" ["x", "w", "y"] {k = 576 : i64, n = 576 : i64}
      plan.command "layers.0.qkv" @gemm_0(%x, %w, %y) tasks #plan.affine<9>
        : !plan.buffer, !plan.weight, !plan.buffer
    }
    ```
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::llmc::llm::LlmDialect"];
}

class Plan_Type<string name, string mnem> : TypeDef<Plan_Dialect, name> { let mnemonic = mnem; }
def Plan_WeightType : Plan_Type<"Weight", "weight"> { let summary = "a weight of the plan"; }
def Plan_BufferType : Plan_Type<"Buffer", "buffer"> { let summary = "a part of the arena"; }
def Plan_OutputType : Plan_Type<"Output", "output"> { let summary = "an output of the step"; }
def Plan_Operand : AnyTypeOf<[Plan_WeightType, Plan_BufferType, Plan_OutputType]>;

def Plan_AffineAttr : AttrDef<Plan_Dialect, "Affine"> {
  let mnemonic = "affine";
  let summary = "a size or count that grows with the step";
  let description = [{
    `#plan.affine<64 + 2304 T + 8 R>`: a constant and multiples of T (tokens), S (sequences),
    R (logit rows) and Q (query tiles).
  }];
  let parameters = (ins "int64_t":$constant, "int64_t":$perToken, "int64_t":$perSequence,
                        "int64_t":$perRow, "int64_t":$perTile);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Plan_CostAttr : AttrDef<Plan_Dialect, "Cost"> {
  let mnemonic = "cost";
  let summary = "what a command reads and computes";
  let description = [{
    Bytes of weights read once a step, operations and bytes of activations for each row (token or
    logit row), bytes of KV read for each token of context; for predictions. `integer` says that the
    operations are int8 ones.
  }];
  let parameters = (ins "int64_t":$weightBytes, "int64_t":$operationsPerRow, "int64_t":$bytesPerRow,
                        "int64_t":$kvBytesPerContext, "bool":$integer);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Plan_LimitsAttr : AttrDef<Plan_Dialect, "Limits"> {
  let mnemonic = "limits";
  let summary = "the largest step";
  let description = "Tokens, sequences and logit rows of one step; tokens of a query tile.";
  let parameters = (ins "int64_t":$tokens, "int64_t":$sequences, "int64_t":$rows,
                        "int64_t":$queryTile);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

class Plan_Op<string mnemonic, list<Trait> traits = []> : Op<Plan_Dialect, mnemonic, traits>;

#endif
