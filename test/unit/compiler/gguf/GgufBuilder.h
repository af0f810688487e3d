//===- GgufBuilder.h - GGUF files made by hand ---------------------------------===//
#ifndef LLMC_TEST_GGUFBUILDER_H
#define LLMC_TEST_GGUFBUILDER_H

#include "compiler/import/gguf/GgufFile.h"

#include <cstring>
#include <string>
#include <vector>

namespace llmc::test {

/// Puts a file together entry by entry; counts and offsets are right unless overridden.
class GgufBuilder {
public:
  template <typename T> static std::string raw(T value) {
    std::string bytes(sizeof(T), '\0');
    std::memcpy(bytes.data(), &value, sizeof(T));
    return bytes;
  }
  static std::string text(const std::string &s) { return raw<uint64_t>(s.size()) + s; }
  static std::string array(GgufType type, uint64_t count, const std::string &elements) {
    return raw(uint32_t(type)) + raw(count) + elements;
  }
  static std::string strings(const std::vector<std::string> &list) {
    std::string all;
    for (const std::string &s : list)
      all += text(s);
    return array(GgufType::String, list.size(), all);
  }
  template <typename T> static std::string list(GgufType type, const std::vector<T> &values) {
    std::string all;
    for (T v : values)
      all += raw(v);
    return array(type, values.size(), all);
  }

  GgufBuilder &entry(const std::string &key, GgufType type, const std::string &value) {
    entries += text(key) + raw(uint32_t(type)) + value;
    ++entryCount;
    return *this;
  }
  GgufBuilder &u32(const std::string &key, uint32_t value) {
    return entry(key, GgufType::Uint32, raw(value));
  }
  GgufBuilder &f32(const std::string &key, float value) {
    return entry(key, GgufType::Float32, raw(value));
  }
  GgufBuilder &string(const std::string &key, const std::string &value) {
    return entry(key, GgufType::String, text(value));
  }
  /// \p dimensions innermost first, as in the file.
  GgufBuilder &tensor(const std::string &name, const std::vector<uint64_t> &dimensions,
                      uint32_t type, uint64_t offset) {
    tensors += text(name) + raw(uint32_t(dimensions.size()));
    for (uint64_t d : dimensions)
      tensors += raw(d);
    tensors += raw(type) + raw(offset);
    ++tensorCount;
    return *this;
  }
  /// An f32 tensor behind what is there already.
  GgufBuilder &floats(const std::string &name, const std::vector<uint64_t> &dimensions,
                      const std::vector<float> &values) {
    data.resize((data.size() + alignment - 1) / alignment * alignment);
    tensor(name, dimensions, 0, data.size());
    for (float v : values)
      data += raw(v);
    return *this;
  }

  std::string build() const {
    std::string file =
        "GGUF" + raw(version) + raw(tensorCount) + raw(entryCount) + entries + tensors;
    if (tensorCount != 0 && !data.empty())
      file.resize((file.size() + alignment - 1) / alignment * alignment);
    return file + data;
  }

  uint32_t version = 3;
  uint64_t tensorCount = 0, entryCount = 0, alignment = 32;
  std::string entries, tensors, data;
};

} // namespace llmc::test

#endif // LLMC_TEST_GGUFBUILDER_H
