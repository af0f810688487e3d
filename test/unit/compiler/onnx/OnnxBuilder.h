//===- OnnxBuilder.h - small ONNX files for tests -----------------------------===//
//
// Writes protobuf by hand, so that a test can also write what no exporter would.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TEST_ONNX_ONNXBUILDER_H
#define LLMC_TEST_ONNX_ONNXBUILDER_H

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

namespace onnxtest {

/// A protobuf message under construction.
class Message {
public:
  Message &varint(uint32_t field, uint64_t value) {
    raw(uint64_t(field) << 3);
    return raw(value);
  }
  Message &bytes(uint32_t field, const std::string &value) {
    raw(uint64_t(field) << 3 | 2);
    raw(value.size());
    data += value;
    return *this;
  }
  Message &message(uint32_t field, const Message &value) { return bytes(field, value.data); }
  Message &fixed32(uint32_t field, float value) {
    raw(uint64_t(field) << 3 | 5);
    data.append(reinterpret_cast<const char *>(&value), 4);
    return *this;
  }
  Message &packed(uint32_t field, const std::vector<int64_t> &values) {
    Message run;
    for (int64_t value : values)
      run.raw(static_cast<uint64_t>(value));
    return bytes(field, run.data);
  }
  /// Any bytes: a bare varint, or damage.
  Message &raw(uint64_t value) {
    do {
      data += static_cast<char>((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
      value >>= 7;
    } while (value);
    return *this;
  }
  std::string data;
};

enum : int {
  Float = 1,
  UInt8 = 2,
  Int8 = 3,
  Int32 = 6,
  Int64 = 7,
  String = 8,
  Bool = 9,
  Half = 10,
  Double = 11,
  BFloat16 = 16,
  UInt4 = 21,
  Int4 = 22
};

template <typename T> std::string rawBytes(std::initializer_list<T> values) {
  std::string bytes;
  for (T value : values)
    bytes.append(reinterpret_cast<const char *>(&value), sizeof(T));
  return bytes;
}

inline Message tensorHead(const std::string &name, int type, const std::vector<int64_t> &dims) {
  Message tensor;
  tensor.packed(1, dims).varint(2, static_cast<uint64_t>(type));
  if (!name.empty())
    tensor.bytes(8, name);
  return tensor;
}
inline Message tensor(const std::string &name, int type, const std::vector<int64_t> &dims,
                      const std::string &raw) {
  return tensorHead(name, type, dims).bytes(9, raw);
}
inline Message i64s(const std::string &name, const std::vector<int64_t> &values) {
  std::string raw(reinterpret_cast<const char *>(values.data()), values.size() * 8);
  return tensor(name, Int64, {static_cast<int64_t>(values.size())}, raw);
}
inline Message i64(const std::string &name, int64_t value) {
  return tensor(name, Int64, {}, rawBytes({value}));
}
inline Message f32s(const std::string &name, const std::vector<float> &values) {
  std::string raw(reinterpret_cast<const char *>(values.data()), values.size() * 4);
  return tensor(name, Float, {static_cast<int64_t>(values.size())}, raw);
}
/// External data with the given entries.
inline Message external(const std::string &name, int type, const std::vector<int64_t> &dims,
                        const std::string &location, const std::string &offset = "",
                        const std::string &length = "") {
  Message tensor = tensorHead(name, type, dims);
  auto entry = [&](const char *key, const std::string &value) {
    tensor.message(13, Message().bytes(1, key).bytes(2, value));
  };
  entry("location", location);
  if (!offset.empty())
    entry("offset", offset);
  if (!length.empty())
    entry("length", length);
  return tensor.varint(14, 1);
}

inline Message attribute(const std::string &name, int kind) {
  return Message().bytes(1, name).varint(20, static_cast<uint64_t>(kind));
}
inline Message intAttr(const std::string &name, int64_t value) {
  return attribute(name, 2).varint(3, static_cast<uint64_t>(value));
}
inline Message floatAttr(const std::string &name, float value) {
  return attribute(name, 1).fixed32(2, value);
}
inline Message stringAttr(const std::string &name, const std::string &value) {
  return attribute(name, 3).bytes(4, value);
}
inline Message tensorAttr(const std::string &name, const Message &value) {
  return attribute(name, 4).message(5, value);
}
inline Message graphAttr(const std::string &name, const Message &value) {
  return attribute(name, 5).message(6, value);
}
inline Message intsAttr(const std::string &name, const std::vector<int64_t> &values) {
  return attribute(name, 7).packed(8, values);
}
inline Message refAttr(const std::string &name, int kind, const std::string &outer) {
  return attribute(name, kind).bytes(21, outer);
}

inline Message node(const std::string &op, const std::vector<std::string> &inputs,
                    const std::vector<std::string> &outputs,
                    const std::vector<Message> &attributes = {}, const std::string &domain = "",
                    const std::string &name = "") {
  Message node;
  for (const std::string &input : inputs)
    node.bytes(1, input);
  for (const std::string &output : outputs)
    node.bytes(2, output);
  node.bytes(3, name.empty() ? "n_" + (outputs.empty() ? op : outputs[0]) : name).bytes(4, op);
  for (const Message &attribute : attributes)
    node.message(5, attribute);
  if (!domain.empty())
    node.bytes(7, domain);
  return node;
}

/// A value; a dimension is a number or, as a string, a name.
inline Message value(const std::string &name, int type, const std::vector<std::string> &dims) {
  Message shape;
  for (const std::string &dim : dims) {
    bool isNumber = !dim.empty() && (isdigit(static_cast<unsigned char>(dim[0])) || dim[0] == '-');
    shape.message(1, isNumber ? Message().varint(1, static_cast<uint64_t>(std::stoll(dim)))
                              : Message().bytes(2, dim));
  }
  return Message().bytes(1, name).message(
      2, Message().message(1, Message().varint(1, static_cast<uint64_t>(type)).message(2, shape)));
}
/// A value of any shape.
inline Message anyShape(const std::string &name, int type) {
  return Message().bytes(1, name).message(
      2, Message().message(1, Message().varint(1, static_cast<uint64_t>(type))));
}

struct Model {
  int64_t irVersion = 8, opset = 18;
  std::vector<Message> nodes, initializers, inputs, outputs, functions;
  std::vector<std::pair<std::string, int64_t>> domains{{"com.microsoft", 1}};

  Message graph() const {
    Message graph;
    for (const Message &node : nodes)
      graph.message(1, node);
    graph.bytes(2, "g");
    for (const Message &tensor : initializers)
      graph.message(5, tensor);
    for (const Message &input : inputs)
      graph.message(11, input);
    for (const Message &output : outputs)
      graph.message(12, output);
    return graph;
  }
  std::string file() const {
    Message model;
    model.varint(1, static_cast<uint64_t>(irVersion)).bytes(2, "test").message(7, graph());
    model.message(8, Message().bytes(1, "").varint(2, static_cast<uint64_t>(opset)));
    for (const auto &[domain, version] : domains)
      model.message(8, Message().bytes(1, domain).varint(2, static_cast<uint64_t>(version)));
    for (const Message &function : functions)
      model.message(25, function);
    return model.data;
  }
};

inline Message function(const std::string &domain, const std::string &name,
                        const std::vector<std::string> &inputs,
                        const std::vector<std::string> &outputs, const std::vector<Message> &nodes,
                        const std::vector<std::string> &attributes = {}, int64_t opset = 18) {
  Message message;
  message.bytes(1, name);
  for (const std::string &input : inputs)
    message.bytes(4, input);
  for (const std::string &output : outputs)
    message.bytes(5, output);
  for (const std::string &attribute : attributes)
    message.bytes(6, attribute);
  for (const Message &node : nodes)
    message.message(7, node);
  message.message(9, Message().bytes(1, "").varint(2, static_cast<uint64_t>(opset)));
  message.message(9, Message().bytes(1, domain).varint(2, 1));
  return message.bytes(10, domain);
}

} // namespace onnxtest

#endif // LLMC_TEST_ONNX_ONNXBUILDER_H
