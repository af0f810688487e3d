//===- Base64.h - binary data in text files ---------------------------------------===//
#ifndef LLMRT_TEXT_BASE64_H
#define LLMRT_TEXT_BASE64_H

#include <optional>
#include <string>
#include <string_view>

namespace llmrt {

/// The bytes that \p text stands for (RFC 4648, with padding); nothing if it is not Base64.
std::optional<std::string> decodeBase64(std::string_view text);

} // namespace llmrt

#endif // LLMRT_TEXT_BASE64_H
