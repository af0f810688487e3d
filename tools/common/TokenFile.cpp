#include "tools/common/TokenFile.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

namespace llmc::tools {

using namespace llmrt;

namespace {

constexpr std::string_view npyMagic("\x93NUMPY", 6);

/// The value of \p key in the dictionary of an .npy header, up to the next "," or "}" outside
/// parentheses; empty if it isn't there.
std::string_view headerValue(std::string_view header, std::string_view key) {
  size_t at = header.find("'" + std::string(key) + "'");
  if (at == std::string_view::npos || (at = header.find(':', at)) == std::string_view::npos)
    return {};
  std::string_view value = header.substr(at + 1);
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  bool tuple = value.starts_with("(");
  return value.substr(0, tuple ? value.find(')') : value.find_first_of(",}"));
}

template <typename T>
Status appendIds(std::string_view data, const std::string &path, std::vector<int32_t> &ids) {
  if (data.size() % sizeof(T) != 0)
    return invalidArgument(path + ": the file ends within an id");
  ids.reserve(data.size() / sizeof(T));
  for (size_t i = 0; i < data.size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, data.data() + i, sizeof(T));
    if (value < 0 || static_cast<uint64_t>(value) > std::numeric_limits<int32_t>::max())
      return invalidArgument(path + ": " + std::to_string(value) + " is no token id");
    ids.push_back(static_cast<int32_t>(value));
  }
  return Status::ok();
}

/// NEP 1: magic, version, length of the header (2 bytes; 4 from version 2 on), a Python
/// dictionary, the data. How many ids there are follows from the data's size, not from `shape`.
Result<std::vector<int32_t>> parseNpy(std::string_view bytes, const std::string &path) {
  auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(bytes[i])); };
  if (bytes.size() < 12)
    return invalidArgument(path + ": the .npy header is cut off");
  size_t start = byte(6) >= 2 ? 12 : 10;
  size_t length = byte(8) | byte(9) << 8;
  if (start == 12)
    length |= byte(10) << 16 | byte(11) << 24;
  if (length > bytes.size() - start)
    return invalidArgument(path + ": the .npy header is cut off");
  std::string_view header = bytes.substr(start, length), data = bytes.substr(start + length);
  std::string_view type = headerValue(header, "descr");
  if (headerValue(header, "fortran_order") != "False")
    return invalidArgument(path + ": ids must be stored row by row (fortran_order False)");
  std::vector<int32_t> ids;
  Status status;
  if (type == "'<i4'")
    status = appendIds<int32_t>(data, path, ids);
  else if (type == "'<i8'")
    status = appendIds<int64_t>(data, path, ids);
  else
    status = invalidArgument(path + ": token ids are '<i4' or '<i8' in an .npy file, not " +
                             std::string(type.substr(0, 32)));
  LLMRT_RETURN_IF_ERROR(status);
  return ids;
}

} // namespace

Result<std::string> readWholeFile(const std::string &path) {
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(std::fopen(path.c_str(), "rb"),
                                                        std::fclose);
  if (!file)
    return ioError(path + ": " + std::strerror(errno));
  std::string bytes;
  char buffer[65536];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, file.get())) > 0;)
    bytes.append(buffer, n);
  if (std::ferror(file.get()))
    return ioError(path + ": " + std::strerror(errno));
  return bytes;
}

Result<std::vector<int32_t>> parseTokens(std::string_view bytes, const std::string &path) {
  if (bytes.starts_with(npyMagic))
    return parseNpy(bytes, path);
  // A list of numbers only: a depth of 1 keeps hostile nesting off the stack.
  auto flat = [](int depth, nlohmann::json::parse_event_t, nlohmann::json &) { return depth <= 1; };
  auto json = nlohmann::json::parse(bytes, flat, false);
  if (!json.is_array())
    return invalidArgument(path + ": token ids are a JSON list of numbers or an .npy file");
  std::vector<int32_t> ids;
  ids.reserve(json.size());
  for (const auto &id : json) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > std::numeric_limits<int32_t>::max())
      return invalidArgument(path + ": element " + std::to_string(ids.size()) +
                             " of the list is no token id");
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

Result<std::vector<int32_t>> readTokenFile(const std::string &path) {
  LLMRT_ASSIGN_OR_RETURN(std::string bytes, readWholeFile(path));
  return parseTokens(bytes, path);
}

} // namespace llmc::tools
