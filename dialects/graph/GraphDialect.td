//===- GraphDialect.td - The array dialect that importers write ------------===//

#ifndef LLMC_DIALECTS_GRAPH_DIALECT_TD
#define LLMC_DIALECTS_GRAPH_DIALECT_TD

include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Graph_Dialect : Dialect {
  let name = "graph";
  let cppNamespace = "::llmc::graph";
  let summary = "Array operations: the one form in which the spellings of exporters meet";
  let description = [{
    A model file in an exchange format (ONNX) becomes one `func.func @main` of this dialect. Every operator of
    the file becomes one or a few of the operations below, with the meaning that the operator has in the version
    that the file declares: whatever differs between versions (axes as attribute or input, flattening softmax,
    ...) is settled by the importer, so that a pass sees one meaning an operation.

    - Tensors are `tensor<...>`; a result whose shape the file does not state may be unranked
      (`tensor<*xf32>`), its element type is always known. Unsigned integers are `ui8`, ..., signed and bool are
      signless `i64`, `i1`.
    - Small tensors are `graph.constant`; everything larger is `graph.weight`, a reference into a file: bytes of
      weights never enter the IR.
    - Shapes, axes and indices that ONNX passes as tensors stay operands (i64 tensors), because exporters compute
      them; negative values count from the end as in ONNX, and INT64_MIN and INT64_MAX mean "to the end". They are
      never taken for MLIR's marker of a dynamic dimension.
    - Names of inputs and outputs are the argument and result attributes `graph.name`; names of symbolic
      dimensions are `graph.dims`, a string a dimension ("" for a fixed one).
    - A node's name and operator are its location: `loc("name"("Operator"("model.onnx":12:0)))`.
  }];
  let hasConstantMaterializer = 1;
  let useDefaultTypePrinterParser = 1;
  let dependentDialects = [];
}

class Graph_Op<string mnemonic, list<Trait> traits = []>
    : Op<Graph_Dialect, mnemonic, !listconcat([Pure], traits)> {
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

/// Any ranked or unranked tensor of numbers or booleans.
def Graph_Tensor : TensorOf<[AnyInteger, AnyFloat]>;
/// Shapes, axes, indices.
def Graph_IndexTensor : TensorOf<[I32, I64]>;
def Graph_FloatTensor : TensorOf<[AnyFloat]>;
def Graph_BoolTensor : TensorOf<[I1]>;

/// The first operand and the result hold the same element type.
class Graph_SameElement<string a, string b>
    : PredOpTrait<a # " and " # b # " have the same element type",
                  CPred<"::mlir::getElementTypeOrSelf($" # a # ") == ::mlir::getElementTypeOrSelf($" # b # ")">>;

#endif
