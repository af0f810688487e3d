//===- Model.cpp - an ONNX model as views of the mapped file ------------------===//
//
// Field numbers are those of onnx/onnx.proto; each parser is one switch over them.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/onnx/Model.h"

#include "llvm/ADT/Twine.h"
#include <bit>

using namespace llmc::onnx;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

namespace {

/// A message costs at least two bytes of file but some hundred of memory, so that a file of
/// nothing but empty messages could ask for far more than its size. No model has this many.
constexpr size_t maxMessages = size_t(1) << 20;

class Parser {
public:
  Error parse(Span message, StringPair &out) {
    return forEachField(message, [&](const Field &f) -> Error {
      switch (f.number) {
      case 1:
        return readString(f, "key", out.key);
      case 2:
        return readString(f, "value", out.value);
      }
      return Error::success();
    });
  }

  Error parse(Span message, TensorView &out) {
    out.message = message;
    int64_t number;
    return forEachField(message, [&](const Field &f) -> Error {
      switch (f.number) {
      case 1:
        return forEachVarint(f, [&](uint64_t dim) -> Error {
          if (out.dims.size() == maxRank)
            return malformed("tensor '" + out.name + "' has more than " + Twine(maxRank) +
                             " dimensions");
          out.dims.push_back(static_cast<int64_t>(dim));
          return Error::success();
        });
      case 2:
        if (Error error = readInt(f, "data_type", number))
          return error;
        out.type = static_cast<DataType>(static_cast<int32_t>(number));
        return Error::success();
      case 8:
        return readString(f, "name of a tensor", out.name);
      case 9:
        out.raw.emplace();
        return readSpan(f, "raw_data", *out.raw);
      case 13:
        return append(f, "external_data", out.externalData);
      case 14:
        if (Error error = readInt(f, "data_location", number))
          return error;
        if (number != 0 && number != 1)
          return malformed("tensor '" + out.name + "' has the unknown data_location " +
                           Twine(number));
        out.external = number == 1;
        return Error::success();
      case 3:
        return malformed("tensor '" + out.name +
                         "' is a segment of a larger one, which is not "
                         "supported; store it whole");
      }
      return Error::success();
    });
  }

  Error parse(Span message, AttributeView &out) {
    out.message = message;
    // IR versions below 2 had no `type`; it then follows from the field that is there.
    AttributeView::Kind implied = AttributeView::Undefined;
    auto imply = [&](AttributeView::Kind kind) { implied = kind; };
    int64_t number;
    if (Error error = forEachField(message, [&](const Field &f) -> Error {
          switch (f.number) {
          case 1:
            return readString(f, "name of an attribute", out.name);
          case 2:
            imply(AttributeView::Float);
            return readFloat(f, "f", out.f);
          case 3:
            imply(AttributeView::Int);
            return readInt(f, "i", out.i);
          case 4:
            imply(AttributeView::String);
            return readString(f, "s", out.s);
          case 5:
            imply(AttributeView::Tensor);
            return Error::success();
          case 6:
            imply(AttributeView::Graph);
            return Error::success();
          case 7:
            imply(AttributeView::Floats);
            return Error::success();
          case 8:
            imply(AttributeView::Ints);
            return Error::success();
          case 9:
            imply(AttributeView::Strings);
            return Error::success();
          case 20:
            if (Error error = readInt(f, "type of an attribute", number))
              return error;
            out.kind = static_cast<AttributeView::Kind>(static_cast<int32_t>(number));
            return Error::success();
          case 21:
            return readString(f, "ref_attr_name", out.reference);
          }
          return Error::success();
        }))
      return error;
    if (out.kind == AttributeView::Undefined)
      out.kind = implied;
    return Error::success();
  }

  Error parse(Span message, NodeView &out) {
    return forEachField(message, [&](const Field &f) -> Error {
      switch (f.number) {
      case 1:
        return readString(f, "input of a node", grow(out.inputs));
      case 2:
        return readString(f, "output of a node", grow(out.outputs));
      case 3:
        return readString(f, "name of a node", out.name);
      case 4:
        return readString(f, "op_type of a node", out.opType);
      case 5:
        return append(f, "attribute of a node", out.attributes);
      case 7:
        if (Error error = readString(f, "domain of a node", out.domain))
          return error;
        out.domain = canonicalDomain(out.domain);
        return Error::success();
      case 8:
        return readString(f, "overload of a node", out.overload);
      }
      return Error::success();
    });
  }

  Error parse(Span message, DimView &out) {
    int64_t number;
    return forEachField(message, [&](const Field &f) -> Error {
      switch (f.number) {
      case 1:
        if (Error error = readInt(f, "dim_value", number))
          return error;
        out.value = number;
        return Error::success();
      case 2:
        return readString(f, "dim_param", out.param);
      }
      return Error::success();
    });
  }

  /// TypeProto.Tensor
  Error parseTensorType(Span message, ValueView &out) {
    int64_t number;
    Span shape;
    return forEachField(message, [&](const Field &f) -> Error {
      switch (f.number) {
      case 1:
        if (Error error = readInt(f, "elem_type", number))
          return error;
        out.type = static_cast<DataType>(static_cast<int32_t>(number));
        return Error::success();
      case 2:
        if (Error error = readSpan(f, "shape", shape))
          return error;
        out.shape.emplace();
        return forEachField(shape, [&](const Field &dim) -> Error {
          if (dim.number != 1)
            return Error::success();
          if (out.shape->size() == maxRank)
            return malformed("'" + out.name + "' has more than " + Twine(maxRank) + " dimensions");
          return append(dim, "dim", *out.shape);
        });
      }
      return Error::success();
    });
  }

  /// TypeProto: a tensor (field 1), a sequence (4) or an optional (9) of another type.
  Error parseType(Span message, ValueView &out, unsigned depth) {
    Span inner;
    return forEachField(message, [&](const Field &kind) -> Error {
      if (kind.number == 1) {
        out.isTensor = depth == 0;
        if (Error error = readSpan(kind, "tensor_type", inner))
          return error;
        return parseTensorType(inner, out);
      }
      bool isSequence = kind.number == 4, isOptional = kind.number == 9;
      // An optional of a sequence of tensors is the deepest that operators give.
      if ((!isSequence && !isOptional) || (isOptional && depth > 0) ||
          (isSequence && out.isSequence))
        return Error::success();
      (isSequence ? out.isSequence : out.isOptional) = true;
      if (Error error = readSpan(kind, isSequence ? "sequence_type" : "optional_type", inner))
        return error;
      return forEachField(inner, [&](const Field &f) -> Error {
        Span element;
        if (f.number != 1)
          return Error::success();
        if (Error error = readSpan(f, "elem_type", element))
          return error;
        return parseType(element, out, depth + 1);
      });
    });
  }

  Error parse(Span message, ValueView &out) {
    Span type;
    return forEachField(message, [&](const Field &f) -> Error {
      switch (f.number) {
      case 1:
        return readString(f, "name of a value", out.name);
      case 2:
        if (Error error = readSpan(f, "type of a value", type))
          return error;
        return parseType(type, out, 0);
      }
      return Error::success();
    });
  }

  Error parse(Span message, GraphView &out) {
    return forEachField(message, [&](const Field &f) -> Error {
      switch (f.number) {
      case 1:
        return append(f, "node", out.nodes);
      case 2:
        return readString(f, "name of a graph", out.name);
      case 5:
        return append(f, "initializer", out.initializers);
      case 11:
        return append(f, "input of a graph", out.inputs);
      case 12:
        return append(f, "output of a graph", out.outputs);
      case 15:
        out.hasSparseInitializers = true;
        return Error::success();
      }
      return Error::success();
    });
  }

  Error parse(Span message, OpsetView &out) {
    return forEachField(message, [&](const Field &f) -> Error {
      switch (f.number) {
      case 1:
        if (Error error = readString(f, "domain of an opset", out.domain))
          return error;
        out.domain = canonicalDomain(out.domain);
        return Error::success();
      case 2:
        return readInt(f, "version of an opset", out.version);
      }
      return Error::success();
    });
  }

  Error parse(Span message, FunctionView &out) {
    return forEachField(message, [&](const Field &f) -> Error {
      switch (f.number) {
      case 1:
        return readString(f, "name of a function", out.name);
      case 4:
        return readString(f, "input of a function", grow(out.inputs));
      case 5:
        return readString(f, "output of a function", grow(out.outputs));
      case 6:
        return readString(f, "attribute of a function", grow(out.attributes));
      case 7:
        return append(f, "node of a function", out.nodes);
      case 9:
        return append(f, "opset_import of a function", out.opsets);
      case 10:
        if (Error error = readString(f, "domain of a function", out.domain))
          return error;
        out.domain = canonicalDomain(out.domain);
        return Error::success();
      case 11:
        return append(f, "attribute_proto of a function", out.defaults);
      case 13:
        return readString(f, "overload of a function", out.overload);
      }
      return Error::success();
    });
  }

  Error parse(Span message, ModelView &out) {
    bool hasGraph = false;
    if (Error error = forEachField(message, [&](const Field &f) -> Error {
          switch (f.number) {
          case 1:
            return readInt(f, "ir_version", out.irVersion);
          case 2:
            return readString(f, "producer_name", out.producer);
          case 3:
            return readString(f, "producer_version", out.producerVersion);
          case 7: {
            // Protobuf would merge the two; a writer never writes them.
            if (hasGraph)
              return malformed("the model has two graphs");
            hasGraph = true;
            Span graph;
            if (Error error = readSpan(f, "graph", graph))
              return error;
            return parse(graph, out.graph);
          }
          case 8:
            return append(f, "opset_import", out.opsets);
          case 14:
            return append(f, "metadata_props", out.metadata);
          case 25:
            return append(f, "function", out.functions);
          }
          return Error::success();
        }))
      return error;
    if (!hasGraph)
      return malformed("not an ONNX model: it has no graph");
    if (out.irVersion <= 0)
      return malformed("not an ONNX model: its ir_version is " + Twine(out.irVersion));
    return Error::success();
  }

private:
  static constexpr size_t maxRank = 16;

  template <typename Vector> static StringRef &grow(Vector &vector) {
    vector.emplace_back();
    return vector.back();
  }

  /// Parses a repeated message field into a new element of \p out.
  template <typename Vector> Error append(const Field &field, StringRef what, Vector &out) {
    if (++messages > maxMessages)
      return malformed("more than " + Twine(maxMessages) + " messages");
    Span span;
    if (Error error = readSpan(field, what, span))
      return error;
    out.emplace_back();
    return parse(span, out.back());
  }

  size_t messages = 0;
};

/// Parses the single message in field \p number of \p attribute into \p out.
template <typename View>
Error parseField(const AttributeView &attribute, uint32_t number, StringRef what, View &out) {
  bool found = false;
  Parser parser;
  if (Error error = forEachField(attribute.message, [&](const Field &f) -> Error {
        if (f.number != number)
          return Error::success();
        if (found)
          return malformed("attribute '" + attribute.name + "' has two of " + what);
        found = true;
        Span span;
        if (Error error = readSpan(f, what, span))
          return error;
        return parser.parse(span, out);
      }))
    return error;
  if (!found)
    return malformed("attribute '" + attribute.name + "' has no " + what);
  return Error::success();
}

} // namespace

Expected<llvm::SmallVector<int64_t>> AttributeView::ints() const {
  llvm::SmallVector<int64_t> values;
  if (kind != Ints)
    return malformed("attribute '" + name + "' is not a list of integers");
  if (Error error = forEachField(message, [&](const Field &f) -> Error {
        if (f.number != 8)
          return Error::success();
        return forEachVarint(f, [&](uint64_t value) -> Error {
          values.push_back(static_cast<int64_t>(value));
          return Error::success();
        });
      }))
    return error;
  return values;
}

Expected<llvm::SmallVector<float>> AttributeView::floats() const {
  llvm::SmallVector<float> values;
  if (kind != Floats)
    return malformed("attribute '" + name + "' is not a list of floats");
  if (Error error = forEachField(message, [&](const Field &f) -> Error {
        if (f.number != 7)
          return Error::success();
        return forEachFixed(f, 4, [&](uint64_t bits) -> Error {
          values.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
          return Error::success();
        });
      }))
    return error;
  return values;
}

Expected<TensorView> AttributeView::tensor() const {
  TensorView view;
  if (kind != Tensor)
    return malformed("attribute '" + name + "' is not a tensor");
  if (Error error = parseField(*this, 5, "tensor", view))
    return error;
  return view;
}

Expected<GraphView> AttributeView::graph() const {
  GraphView view;
  if (kind != Graph)
    return malformed("attribute '" + name + "' is not a graph");
  if (Error error = parseField(*this, 6, "graph", view))
    return error;
  return view;
}

Expected<ValueView> AttributeView::typeProto() const {
  ValueView view;
  if (kind != TypeProto)
    return malformed("attribute '" + name + "' is not a type");
  Span type;
  if (Error error = forEachField(message, [&](const Field &f) -> Error {
        if (f.number != 14)
          return Error::success();
        if (Error error = readSpan(f, "tp", type))
          return error;
        return Parser().parseType(type, view, 0);
      }))
    return error;
  return view;
}

Expected<std::vector<StringRef>> AttributeView::strings() const {
  std::vector<StringRef> result;
  if (kind != Strings)
    return malformed("attribute '" + name + "' is not a list of strings");
  if (Error error = forEachField(message, [&](const Field &f) -> Error {
        if (f.number != 9)
          return Error::success();
        return readString(f, "string of an attribute", result.emplace_back());
      }))
    return error;
  return result;
}

Expected<ModelView> llmc::onnx::parseModel(llvm::ArrayRef<uint8_t> file) {
  StringRef text(reinterpret_cast<const char *>(file.data()), file.size());
  if (file.empty())
    return malformed("the file is empty");
  if (text.starts_with("version https://git-lfs"))
    return malformed("this is a Git LFS pointer, not the model; fetch it with `git lfs pull`");
  ModelView model;
  if (Error error = Parser().parse(Span{file.data(), file.size(), 0}, model))
    return error;
  return model;
}
