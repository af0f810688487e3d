//===- SafetensorsBuilder.h - safetensors files made by hand --------------------===//
#ifndef LLMC_TEST_SAFETENSORSBUILDER_H
#define LLMC_TEST_SAFETENSORSBUILDER_H

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace llmc::test {

/// \p json and \p data behind the length of the first, which is right unless \p length says
/// otherwise.
inline std::string safetensors(const std::string &json, const std::string &data,
                               uint64_t length = UINT64_MAX) {
  if (length == UINT64_MAX)
    length = json.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + json + data;
}

class SafetensorsBuilder {
public:
  template <typename T>
  SafetensorsBuilder &add(const std::string &name, const std::string &dtype,
                          const std::string &shape, const std::vector<T> &values) {
    const size_t begin = data.size(), size = values.size() * sizeof(T);
    data.resize(begin + size);
    if (size != 0)
      std::memcpy(data.data() + begin, values.data(), size);
    json +=
        (json.empty() ? "" : ",") +
        ("\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + shape +
         "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(data.size()) + "]}");
    return *this;
  }
  SafetensorsBuilder &f32(const std::string &name, const std::string &shape,
                          const std::vector<float> &values) {
    return add(name, "F32", shape, values);
  }
  std::string build() const { return safetensors("{" + json + "}", data); }

private:
  std::string json, data;
};

} // namespace llmc::test

#endif // LLMC_TEST_SAFETENSORSBUILDER_H
