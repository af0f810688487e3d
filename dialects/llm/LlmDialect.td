//===- LlmDialect.td - the llm dialect, its types and attributes --*- tablegen -*-===//
#ifndef LLMC_DIALECTS_LLM_LLMDIALECT
#define LLMC_DIALECTS_LLM_LLMDIALECT

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Llm_Dialect : Dialect {
  let name = "llm";
  let cppNamespace = "::llmc::llm";
  let summary = "What a language model computes";
  let description = [{
    The llm dialect says what a decoder computes, token by token, with no trace of the file it came
    from: every importer ends here, in one form. A module holds

    - `llm.files`: the source files, by name, to which `llm.weight` refers by index;
    - `llm.model`: a dictionary with the model's configuration (see below);
    - one function `@step`, over a *ragged batch*: every tensor's first dimension is the T new tokens
      of a step (all sequences, one after the other), never a batch and a padded length. After
      `llm.gather_rows` it is the R rows whose logits are wanted.

    ```mlir
    module attributes {llm.files = ["model.safetensors"],
                       llm.model = {architecture = "llama", layers = 30 : i64, ...}} {
      func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x49152xf32> {
        %e = llm.weight "model.embed_tokens.weight" from [#llm.source<0, 4096, 56623104>] as bf16
             : tensor<49152x576xf32>
        %h = llm.embedding %tokens, %e : (tensor<?xi32>, tensor<49152x576xf32>) -> tensor<?x576xf32>
        ...
      }
    }
    ```

    Weights never enter the IR: `llm.weight` names bytes in a file, and the `llm.weight_*` operations
    are views that the compiler evaluates row by row when it writes the plan. Values are always
    logically f32; how they are stored is an attribute.

    Keys of `llm.model`: `name`, `architecture` (strings); `layers`, `hidden_size`,
    `intermediate_size`, `heads`, `kv_heads`, `key_size`, `value_size`, `vocab_size`, `max_context`,
    `rotary_size`, `sliding_window`, `parameters` (i64); `rope_theta` (f64).
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasConstantMaterializer = 1;
}

//===----------------------------------------------------------------------===//
// Enums
//===----------------------------------------------------------------------===//

class Llm_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::llmc::llm";
  let genSpecializedAttr = 0;
}

// How a source file stores a tensor. The block forms are those of GGUF (ggml's block_* structs);
// `nbits` is com.microsoft.MatMulNBits (packed, scales[, zero points] as three sources).
def Llm_Encoding : Llm_Enum<"Encoding", "how a file stores a tensor", [
  I32EnumAttrCase<"F32", 0, "f32">, I32EnumAttrCase<"F16", 1, "f16">,
  I32EnumAttrCase<"BF16", 2, "bf16">, I32EnumAttrCase<"Q4_0", 3, "q4_0">,
  I32EnumAttrCase<"Q4_1", 4, "q4_1">, I32EnumAttrCase<"Q5_0", 5, "q5_0">,
  I32EnumAttrCase<"Q5_1", 6, "q5_1">, I32EnumAttrCase<"Q8_0", 7, "q8_0">,
  I32EnumAttrCase<"Q4_K", 8, "q4_k">, I32EnumAttrCase<"Q5_K", 9, "q5_k">,
  I32EnumAttrCase<"Q6_K", 10, "q6_k">, I32EnumAttrCase<"NBits", 11, "nbits">,
  I32EnumAttrCase<"BlockInt4", 12, "block_int4">, I32EnumAttrCase<"F64", 13, "f64">,
  I32EnumAttrCase<"BlockInt8", 14, "block_int8">, I32EnumAttrCase<"Q2_K", 15, "q2_k">,
  I32EnumAttrCase<"Q3_K", 16, "q3_k">, I32EnumAttrCase<"Q8_K", 17, "q8_k">,
  I32EnumAttrCase<"IQ4_NL", 18, "iq4_nl">, I32EnumAttrCase<"IQ4_XS", 19, "iq4_xs">,
  I32EnumAttrCase<"TQ1_0", 20, "tq1_0">, I32EnumAttrCase<"TQ2_0", 21, "tq2_0">,
  I32EnumAttrCase<"MXFP4", 22, "mxfp4">, I32EnumAttrCase<"Gptq", 23, "gptq">,
  I32EnumAttrCase<"GptqV2", 24, "gptq_v2">, I32EnumAttrCase<"Awq", 25, "awq">,
  I32EnumAttrCase<"PackedInt", 26, "packed_int">, I32EnumAttrCase<"NF4", 27, "nf4">,
  I32EnumAttrCase<"RowInt8", 28, "row_int8">, I32EnumAttrCase<"FP8", 29, "fp8">,
  I32EnumAttrCase<"SplitMXFP4", 30, "split_mxfp4">, I32EnumAttrCase<"IQ1_S", 31, "iq1_s">,
  I32EnumAttrCase<"IQ1_M", 32, "iq1_m">, I32EnumAttrCase<"IQ2_XXS", 33, "iq2_xxs">,
  I32EnumAttrCase<"IQ2_XS", 34, "iq2_xs">, I32EnumAttrCase<"IQ2_S", 35, "iq2_s">,
  I32EnumAttrCase<"IQ3_XXS", 36, "iq3_xxs">, I32EnumAttrCase<"IQ3_S", 37, "iq3_s">]>;
def Llm_EncodingAttr : EnumAttr<Llm_Dialect, Llm_Encoding, "encoding">;

// The activation functions of MLPs. `gelu` is the exact one (erf), `gelu_tanh` its tanh form.
def Llm_Activation : Llm_Enum<"Activation", "an activation function", [
  I32EnumAttrCase<"None", 0, "none">, I32EnumAttrCase<"Silu", 1, "silu">,
  I32EnumAttrCase<"Gelu", 2, "gelu">, I32EnumAttrCase<"GeluTanh", 3, "gelu_tanh">,
  I32EnumAttrCase<"Relu", 4, "relu">, I32EnumAttrCase<"Sigmoid", 5, "sigmoid">]>;
def Llm_ActivationAttr : EnumAttr<Llm_Dialect, Llm_Activation, "activation_kind">;

// How a router's logits become scores, see `llm.route`.
def Llm_Scoring : Llm_Enum<"Scoring", "the scores of a router", [
  I32EnumAttrCase<"Softmax", 0, "softmax">, I32EnumAttrCase<"Sigmoid", 1, "sigmoid">,
  I32EnumAttrCase<"SoftmaxChosen", 2, "softmax_chosen">]>;
def Llm_ScoringAttr : EnumAttr<Llm_Dialect, Llm_Scoring, "scoring">;

// The element of a packed weight.
def Llm_Element : Llm_Enum<"Element", "the stored element of a weight or a cache", [
  I32EnumAttrCase<"F32", 0, "f32">, I32EnumAttrCase<"F16", 1, "f16">,
  I32EnumAttrCase<"BF16", 2, "bf16">, I32EnumAttrCase<"I8", 3, "i8">,
  I32EnumAttrCase<"I4", 4, "i4">, I32EnumAttrCase<"E2M1", 8, "e2m1">,
  I32EnumAttrCase<"E8M0", 9, "e8m0">]>;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class Llm_Attr<string name, string mnem> : AttrDef<Llm_Dialect, name> { let mnemonic = mnem; }

def Llm_SourceAttr : Llm_Attr<"Source", "source"> {
  let summary = "a range of bytes in a source file";
  let description = "`#llm.source<file, offset, size>`: file is an index into `llm.files`.";
  let parameters = (ins "int64_t":$file, "int64_t":$offset, "int64_t":$size);
  let assemblyFormat = "`<` $file `,` $offset `,` $size `>`";
  let genVerifyDecl = 1;
}
def Llm_SourceArrayAttr : TypedArrayAttrBase<Llm_SourceAttr, "array of #llm.source">;

def Llm_FormatAttr : Llm_Attr<"Format", "format"> {
  let summary = "how the plan stores a weight matrix";
  let description = [{
    `#llm.format<f32>`, `#llm.format<bf16>`: tiles of 16 rows, columns side by side (N16).
    `#llm.format<i4, group = 32, scale = f16>`: integers in groups along the columns, each group with
    a scale, and a minimum where `min` is given: value = scale * q + min. Without a minimum an i4 is
    scale * (q - 8) and an i8 is scale * q. `#llm.format<e2m1, group = 32, scale = e8m0>` is OCP
    Microscaling's MXFP4: 4-bit floats times a power of two. Design: kernels-cpu, N16K4.
  }];
  let parameters = (ins EnumParameter<Llm_Element>:$element,
                        DefaultValuedParameter<"int64_t", "0">:$group,
                        DefaultValuedParameter<"::llmc::llm::Element", "::llmc::llm::Element::F32">:$scale,
                        DefaultValuedParameter<"bool", "false">:$hasMin);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Whether a dot product is one of integers, in groups (e2m1 doubled is a whole number).
    bool isInteger() const {
      return getElement() == Element::I8 || getElement() == Element::I4 ||
             getElement() == Element::E2M1;
    }
  }];
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

class Llm_Type<string name, string mnem> : TypeDef<Llm_Dialect, name> { let mnemonic = mnem; }

def Llm_KvType : Llm_Type<"Kv", "kv"> {
  let summary = "the KV cache of one layer, as a value";
  let description = [{
    `!llm.kv<3 x 64 x 64 x f16, paged>`: KV heads, key size, value size, element. The layout is
    `logical` until `llmc-select-kv-layout` makes it `paged` (blocks of tokens, runs of 16 keys; see
    runtime/device/cpu/KernelAbi.h). Changing the element or the layout is a change of type.
    In a `latent` cache the values are the first `value size` elements of the keys and are not stored
    again: `!llm.kv<1 x 576 x 512 x f16, latent>` (MLA).
  }];
  let parameters = (ins "int64_t":$heads, "int64_t":$keySize, "int64_t":$valueSize,
                        EnumParameter<Llm_Element>:$element, "bool":$paged, "bool":$latent);
  let builders = [TypeBuilder<(ins "int64_t":$heads, "int64_t":$keySize, "int64_t":$valueSize,
                                   "::llmc::llm::Element":$element, "bool":$paged), [{
    return $_get($_ctxt, heads, keySize, valueSize, element, paged, /*latent=*/false);
  }]>];
  let extraClassDeclaration = [{
    /// Over all heads; int8 keys and values have an f32 scale each. A latent cache has keys alone.
    int64_t getBytesPerToken() const;
  }];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Llm_Q8Type : Llm_Type<"Q8", "q8"> {
  let summary = "an element of an activation row quantized to int8";
  let description = [{
    `tensor<?x576x!llm.q8<32>>`: rows of int8 values in groups of 32, each group with an f32 scale
    (largest magnitude / 127) and the sum of its values.
  }];
  let parameters = (ins "int64_t":$group);
  let assemblyFormat = "`<` $group `>`";
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Constraints
//===----------------------------------------------------------------------===//

// [T] or [R] integers
def Llm_Ids : RankedTensorOf<[I32]>;
// [T, D] f32
def Llm_Rows : RankedTensorOf<[F32]>;
// [T, D] f32 or int8 rows
def Llm_RowsOrQ8 : RankedTensorOf<[F32, Llm_Q8Type]>;
// [N, K] or [N] f32, known shape, evaluated at compile time
def Llm_WeightTensor : StaticShapeTensorOf<[F32]>;

class Llm_Op<string mnemonic, list<Trait> traits = []> : Op<Llm_Dialect, mnemonic, traits>;

#endif
