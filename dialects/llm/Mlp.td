//===- Mlp.td - element by element --------------------------------*- tablegen -*-===//
#ifndef LLMC_DIALECTS_LLM_MLP
#define LLMC_DIALECTS_LLM_MLP

include "dialects/llm/LlmDialect.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Llm_GluOp : Llm_Op<"glu", [Pure, SameOperandsAndResultType]> {
  let summary = "activation(gate) * up";
  let description = [{
    The gated linear unit of Shazeer (2020) after its two projections.

    ```mlir
    %g = llm.glu silu %gate, %up : tensor<?x1536xf32>
    ```
  }];
  let arguments = (ins Llm_ActivationAttr:$activation, Llm_Rows:$gate, Llm_Rows:$up);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "custom<ActivationKeyword>($activation) $gate `,` $up attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Llm_ActivateOp : Llm_Op<"activate", [Pure, SameOperandsAndResultType]> {
  let summary = "an activation function, element by element";
  let description = [{
    ```mlir
    %g = llm.activate gelu_tanh %x : tensor<?x1536xf32>
    ```
  }];
  let arguments = (ins Llm_ActivationAttr:$activation, Llm_Rows:$input);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "custom<ActivationKeyword>($activation) $input attr-dict `:` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

class Llm_BinaryOp<string mnemonic, string what> : Llm_Op<mnemonic, [Pure, Commutative, SameOperandsAndResultType]> {
  let summary = what;
  let arguments = (ins Llm_Rows:$lhs, Llm_Rows:$rhs);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def Llm_AddOp : Llm_BinaryOp<"add", "the sum of two row tensors: residuals"> {
  let description = [{
    ```mlir
    %h1 = llm.add %h, %y : tensor<?x576xf32>
    ```
  }];
}
def Llm_MulOp : Llm_BinaryOp<"mul", "the product of two row tensors, element by element"> {
  let description = [{
    ```mlir
    %p = llm.mul %a, %b : tensor<?x576xf32>
    ```
  }];
}

def Llm_ScaleOp : Llm_Op<"scale", [Pure, SameOperandsAndResultType]> {
  let summary = "a row tensor times a constant";
  let description = [{
    Embedding, residual and logit multipliers. A factor of 1 folds away.

    ```mlir
    %s = llm.scale %h by 2.529822e+01 : tensor<?x640xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$input, F64Attr:$factor);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$input `by` $factor attr-dict `:` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Llm_SoftcapOp : Llm_Op<"softcap", [Pure, SameOperandsAndResultType]> {
  let summary = "cap * tanh(x / cap)";
  let description = [{
    Gemma 2's bound on its logits.

    ```mlir
    %s = llm.softcap %l at 3.000000e+01 : tensor<?x512xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$input, F64Attr:$cap);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$input `at` $cap attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Llm_ColumnsOp : Llm_Op<"columns", [Pure]> {
  let summary = "some columns of a row tensor";
  let description = [{
    A view: `offset` columns are skipped, the count comes from the result's type. All columns are the
    operand itself.

    ```mlir
    %k = llm.columns %qkv from 576 : tensor<?x960xf32> -> tensor<?x192xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$input, I64Attr:$offset);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$input `from` $offset attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

#endif
