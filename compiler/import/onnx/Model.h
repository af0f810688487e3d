//===- Model.h - an ONNX model as views of the mapped file --------------------===//
//
// The messages of onnx.proto that an importer needs, as light structures whose names, strings
// and tensor data point into the mapped file. What nests (the tensor or graph of an attribute)
// is parsed when asked for. Unknown fields are skipped, so that files of newer schema versions
// load; value_info of inner values is skipped too, since an exporter's annotation of a shape is
// not trusted over what the operators say.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_IMPORT_ONNX_MODEL_H
#define LLMC_IMPORT_ONNX_MODEL_H

#include "compiler/import/onnx/Wire.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>
#include <string>
#include <vector>

namespace llmc::onnx {

/// TensorProto.DataType; what is not one of the table's is kept as its number.
enum class DataType : int32_t {
  Undefined = 0,
#define LLMC_ONNX_TYPE(name, number, bits, field) name##_ = number,
#include "compiler/import/onnx/DataTypes.inc"
};

/// "float16", or "data type 99".
std::string dataTypeName(DataType type);
/// Bits of an element; 0 for strings and unknown types.
unsigned elementBits(DataType type);

struct StringPair {
  llvm::StringRef key, value;
};

/// TensorProto. The elements stay in the file; Tensor.h reads them.
struct TensorView {
  llvm::StringRef name;
  DataType type = DataType::Undefined;
  llvm::SmallVector<int64_t, 4> dims;
  std::optional<Span> raw;
  bool external = false; ///< data_location is EXTERNAL
  llvm::SmallVector<StringPair, 0> externalData;
  Span message; ///< the whole TensorProto, for the typed data fields

  /// Number of elements, of which there may be none; an error for a negative dim or more than
  /// 2^63 - 1 elements.
  llvm::Expected<int64_t> numElements() const;
};

struct GraphView;
struct ValueView;

/// AttributeProto.
struct AttributeView {
  enum Kind : int32_t {
    Undefined = 0,
    Float = 1,
    Int = 2,
    String = 3,
    Tensor = 4,
    Graph = 5,
    Floats = 6,
    Ints = 7,
    Strings = 8,
    Tensors = 9,
    Graphs = 10,
    SparseTensor = 11,
    SparseTensors = 12,
    TypeProto = 13,
    TypeProtos = 14
  };
  llvm::StringRef name;
  Kind kind = Undefined;
  llvm::StringRef reference; ///< ref_attr_name: the attribute of the enclosing function
  float f = 0;
  int64_t i = 0;
  llvm::StringRef s;
  Span message;

  llvm::Expected<llvm::SmallVector<int64_t>> ints() const;
  llvm::Expected<llvm::SmallVector<float>> floats() const;
  llvm::Expected<TensorView> tensor() const;
  /// The sub-graph; its nodes may have sub-graphs themselves, again parsed when asked for.
  llvm::Expected<GraphView> graph() const;
  /// The type, as that of a value without a name.
  llvm::Expected<ValueView> typeProto() const;
  llvm::Expected<std::vector<llvm::StringRef>> strings() const;
};

/// NodeProto.
struct NodeView {
  llvm::StringRef name, opType, domain, overload;
  llvm::SmallVector<llvm::StringRef, 4> inputs, outputs;
  llvm::SmallVector<AttributeView, 1> attributes;
};

/// A dimension: a number, a name, or nothing known.
struct DimView {
  std::optional<int64_t> value;
  llvm::StringRef param;
};

/// ValueInfoProto of a graph's input or output.
struct ValueView {
  llvm::StringRef name;
  bool isTensor = false;   ///< false for a sequence, map, optional or sparse tensor
  bool isSequence = false; ///< of tensors, which type and shape describe
  bool isOptional = false; ///< of a tensor, or (isSequence) of a sequence
  DataType type = DataType::Undefined;
  std::optional<llvm::SmallVector<DimView, 4>> shape; ///< absent: unknown rank
};

/// GraphProto.
struct GraphView {
  llvm::StringRef name;
  std::vector<NodeView> nodes;
  std::vector<TensorView> initializers;
  std::vector<ValueView> inputs, outputs;
  bool hasSparseInitializers = false;
};

struct OpsetView {
  llvm::StringRef domain; ///< "" for ai.onnx
  int64_t version = 0;
};

/// FunctionProto.
struct FunctionView {
  llvm::StringRef name, domain, overload;
  llvm::SmallVector<llvm::StringRef, 4> inputs, outputs, attributes;
  std::vector<AttributeView> defaults; ///< attributes with a default value
  std::vector<NodeView> nodes;
  llvm::SmallVector<OpsetView, 2> opsets;
};

/// ModelProto.
struct ModelView {
  int64_t irVersion = 0;
  llvm::StringRef producer, producerVersion;
  GraphView graph;
  llvm::SmallVector<OpsetView, 2> opsets;
  std::vector<FunctionView> functions;
  std::vector<StringPair> metadata;
};

/// Parses a whole file. Every StringRef of the result points into \p file.
llvm::Expected<ModelView> parseModel(llvm::ArrayRef<uint8_t> file);

/// "ai.onnx" and "" name the same domain, which is "" from here on.
inline llvm::StringRef canonicalDomain(llvm::StringRef domain) {
  return domain == "ai.onnx" ? llvm::StringRef() : domain;
}

} // namespace llmc::onnx

#endif // LLMC_IMPORT_ONNX_MODEL_H
