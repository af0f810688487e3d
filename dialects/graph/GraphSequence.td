//===- GraphSequence.td - Sequences, optionals, library functions ----------===//

#ifndef LLMC_DIALECTS_GRAPH_SEQUENCE_TD
#define LLMC_DIALECTS_GRAPH_SEQUENCE_TD

include "dialects/graph/GraphDialect.td"
include "mlir/IR/AttrTypeBase.td"

def Graph_SequenceType : TypeDef<Graph_Dialect, "Sequence"> {
  let mnemonic = "sequence";
  let summary = "any number of tensors of one element type, of any shapes";
  let parameters = (ins "::mlir::Type":$element);
  let assemblyFormat = "`<` $element `>`";
}

def Graph_OptionalType : TypeDef<Graph_Dialect, "Optional"> {
  let mnemonic = "optional";
  let summary = "a value, a tensor or a sequence, or nothing";
  let parameters = (ins "::mlir::Type":$content);
  let assemblyFormat = "`<` $content `>`";
}

def Graph_LibraryOp : Graph_Op<"library"> {
  let summary = "a function of the kernel library that no pass looks into";
  let description = [{
    Convolutions, pooling, resizing, recurrent layers, operations on sequences: what a step of a decoder does not
    have, and what has one meaning however it is spelled. `kernel` names llmc_graph_<kernel> in codegen/cpu/graph,
    which documents its operands and constants (first the reals, then the integers). `present` has an entry for
    every operand of the kernel, false for an optional one that is missing. `element` is the type it is specialised
    for.

    ```mlir
    %y = graph.library "det"(%x) of f32 : (tensor<?x3x3xf32>) -> tensor<?xf32>
    ```
  }];
  let arguments = (ins StrAttr:$kernel, Variadic<AnyType>:$inputs, TypeAttr:$element,
                       DenseBoolArrayAttr:$present, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$integers,
                       DefaultValuedAttr<DenseF64ArrayAttr, "{}">:$reals);
  let results = (outs Variadic<AnyType>:$outputs);
  let assemblyFormat = [{
    $kernel `(` $inputs `)` `of` $element attr-dict `:` functional-type($inputs, $outputs)
  }];
}

#endif
