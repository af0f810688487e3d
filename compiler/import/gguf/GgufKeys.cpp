#include "compiler/import/gguf/GgufKeys.h"

#include <algorithm>

using namespace llmrt;

namespace llmc {

Result<std::optional<uint64_t>> GgufKeys::integer(const char *key) {
  asked.insert(full(key));
  return file_.unsignedInteger(full(key));
}

Result<std::optional<double>> GgufKeys::number(const char *key) {
  asked.insert(full(key));
  return file_.number(full(key));
}

Result<std::optional<std::string>> GgufKeys::text(const char *key) {
  asked.insert(full(key));
  return file_.string(full(key));
}

Result<bool> GgufKeys::flag(const char *key, bool fallback) {
  asked.insert(full(key));
  LLMRT_ASSIGN_OR_RETURN(const std::optional<bool> value, file_.boolean(full(key)));
  return value.value_or(fallback);
}

Result<uint64_t> GgufKeys::required(const char *key) {
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> value, integer(key));
  if (!value)
    return fail("has no metadata key '" + full(key) + "'");
  return *value;
}

Status GgufKeys::uniform(const char *key, uint64_t layers, uint64_t &to) {
  asked.insert(full(key));
  LLMRT_ASSIGN_OR_RETURN(const auto values, file_.perLayer(full(key), layers));
  if (!values)
    return to ? Status::ok() : fail("has no metadata key '" + full(key) + "'");
  for (uint64_t value : *values)
    if (value != values->front())
      return unsupported(path() + ": '" + full(key) + "' differs by layer, which is not supported");
  to = values->front();
  return Status::ok();
}

Status GgufKeys::read(const char *key, double &to) {
  LLMRT_ASSIGN_OR_RETURN(const std::optional<double> value, number(key));
  to = value.value_or(to);
  return Status::ok();
}

Status GgufKeys::checkHonoured() const {
  // What says nothing about the step: the vocabulary's size is the embedding's, the rest names how
  // the file was made.
  static constexpr std::string_view harmless[] = {"vocab_size", "tensor_data_layout",
                                                  "attention.causal"};
  for (std::string_view key : file_.keys()) {
    if (!key.starts_with(prefix_) || asked.contains(key) ||
        std::find(std::begin(harmless), std::end(harmless), key.substr(prefix_.size())) !=
            std::end(harmless))
      continue;
    return unsupported(path() + ": metadata key '" + std::string(key) +
                       "' may change what the model computes and is not supported");
  }
  return Status::ok();
}

} // namespace llmc
