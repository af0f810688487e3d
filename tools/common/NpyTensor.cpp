#include "tools/common/NpyTensor.h"

#include "tools/common/TokenFile.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <unistd.h>

namespace llmc::tools {

using namespace llmrt;

namespace {

/// NumPy's code of an element type, without the byte order; a small float is raw bytes.
const char *npyCode(int32_t type) {
  switch (type) {
  case LLMRT_TYPE_F32:
    return "f4";
  case LLMRT_TYPE_F64:
    return "f8";
  case LLMRT_TYPE_F16:
    return "f2";
  case LLMRT_TYPE_BF16:
    return "V2";
  case LLMRT_TYPE_U8:
  case LLMRT_TYPE_U4:
  case LLMRT_TYPE_U2:
    return "u1";
  case LLMRT_TYPE_I8:
  case LLMRT_TYPE_I4:
  case LLMRT_TYPE_I2:
    return "i1";
  case LLMRT_TYPE_U16:
    return "u2";
  case LLMRT_TYPE_I16:
    return "i2";
  case LLMRT_TYPE_U32:
    return "u4";
  case LLMRT_TYPE_I32:
    return "i4";
  case LLMRT_TYPE_U64:
    return "u8";
  case LLMRT_TYPE_I64:
    return "i8";
  case LLMRT_TYPE_BOOL:
    return "b1";
  default:
    return "V1";
  }
}

std::string_view entry(std::string_view header, std::string_view key) {
  size_t at = header.find("'" + std::string(key) + "'");
  if (at == std::string_view::npos || (at = header.find(':', at)) == std::string_view::npos)
    return {};
  std::string_view value = header.substr(at + 1);
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  bool tuple = value.starts_with("(");
  return value.substr(0, tuple ? value.find(')') + 1 : value.find_first_of(",}"));
}

Result<std::vector<int64_t>> parseShape(std::string_view text, const std::string &path) {
  std::vector<int64_t> dims;
  if (!text.starts_with("(") || !text.ends_with(")"))
    return invalidArgument(path + ": the .npy header has no shape");
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
    if (part.empty())
      continue;
    int64_t value = 0;
    for (char c : part)
      if (c < '0' || c > '9' || __builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, c - '0', &value))
        return invalidArgument(path + ": the .npy header has the shape (" + std::string(part) +
                               ")");
    dims.push_back(value);
  }
  if (dims.size() > LLMRT_GRAPH_MAX_RANK)
    return invalidArgument(path + ": " + std::to_string(dims.size()) + " dimensions; at most " +
                           std::to_string(LLMRT_GRAPH_MAX_RANK) + " are supported");
  return dims;
}

} // namespace

Result<GraphValue> readNpy(const std::string &path, int32_t wanted) {
  LLMRT_ASSIGN_OR_RETURN(std::string bytes, readWholeFile(path));
  auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(bytes[i])); };
  if (!std::string_view(bytes).starts_with("\x93NUMPY") || bytes.size() < 12)
    return invalidArgument(path + ": not an .npy file");
  size_t start = byte(6) >= 2 ? 12 : 10, length = byte(8) | byte(9) << 8;
  if (start == 12)
    length |= byte(10) << 16 | byte(11) << 24;
  if (length > bytes.size() - start)
    return invalidArgument(path + ": the .npy header is cut off");
  std::string_view header = std::string_view(bytes).substr(start, length);
  std::string_view data = std::string_view(bytes).substr(start + length);
  if (entry(header, "fortran_order") != "False")
    return invalidArgument(path + ": must be stored row by row (fortran_order False)");
  std::string_view descr = entry(header, "descr");
  if (descr.size() < 4 || descr.size() > 16 || descr[0] != '\'')
    return invalidArgument(path + ": an element type that is not supported");
  char order = descr[1];
  std::string_view code = descr.substr(2, descr.size() - 3);
  if (order == '>')
    return invalidArgument(path + ": big-endian elements; store them little-endian");

  GraphValue value;
  if (code == npyCode(wanted)) {
    value.type = wanted;
  } else {
    for (int32_t type = 1; type <= LLMRT_TYPE_I2; ++type)
      if (graphElementBytes(type) && code == npyCode(type)) {
        value.type = type;
        break;
      }
    if (!value.type)
      return invalidArgument(path + ": elements of type " + std::string(descr) +
                             " are not supported");
  }
  LLMRT_ASSIGN_OR_RETURN(value.dims, parseShape(entry(header, "shape"), path));
  int64_t size = graphElementBytes(value.type);
  for (int64_t dim : value.dims)
    if (__builtin_mul_overflow(size, dim, &size))
      return invalidArgument(path + ": the shape has too many elements");
  if (static_cast<uint64_t>(size) != data.size())
    return invalidArgument(path + ": " + std::to_string(data.size()) + " bytes of elements; its " +
                           "shape takes " + std::to_string(size));
  value.data.assign(data.begin(), data.end());
  if (value.type == LLMRT_TYPE_BOOL)
    for (uint8_t &element : value.data)
      element = element != 0;
  return value;
}

Status writeNpy(const std::string &path, const GraphValue &value) {
  std::string temporary = path + ".tmp-" + std::to_string(::getpid());
  std::FILE *file = std::fopen(temporary.c_str(), "wb");
  if (!file)
    return ioError(path + ": " + std::strerror(errno));
  std::string shape;
  for (int64_t dim : value.dims)
    shape += std::to_string(dim) + ", ";
  if (value.dims.size() > 1)
    shape.resize(shape.size() - 2);
  else if (value.dims.size() == 1)
    shape.resize(shape.size() - 1);
  // Raw bytes of two keep the order mark that ml_dtypes writes.
  std::string code = npyCode(value.type);
  std::string header = "{'descr': '" + std::string(code.back() == '1' ? "|" : "<") + code +
                       "', 'fortran_order': False, 'shape': (" + shape + "), }";
  size_t total = (10 + header.size() + 1 + 63) / 64 * 64;
  header.append(total - 10 - header.size() - 1, ' ');
  header += '\n';
  std::string start("\x93NUMPY\x01\x00", 8);
  start += static_cast<char>(header.size() & 0xff);
  start += static_cast<char>(header.size() >> 8);
  start += header;
  bool isWritten = std::fwrite(start.data(), 1, start.size(), file) == start.size() &&
                   std::fwrite(value.data.data(), 1, value.data.size(), file) == value.data.size();
  int error = errno;
  isWritten = std::fclose(file) == 0 && isWritten;
  if (!isWritten || std::rename(temporary.c_str(), path.c_str()) != 0) {
    error = isWritten ? errno : error;
    ::unlink(temporary.c_str());
    return ioError(path + ": " + std::strerror(error));
  }
  return Status::ok();
}

} // namespace llmc::tools
