//===- ModelConfig.cpp - what the JSON files beside an ONNX model say ---------===//
#include "compiler/import/onnx/ModelConfig.h"

#include "compiler/import/common/ConfinedPath.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

using namespace llmc;
using namespace mlir;

/// Deeper than any configuration, and shallow enough for a recursive parser.
static constexpr unsigned maxNesting = 64;
static constexpr uint64_t maxConfigBytes = 16 << 20;

static bool isNestedTooDeeply(llvm::StringRef text) {
  unsigned depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (inString) {
      i += c == '\\';
      inString = c != '"';
    } else if (c == '"') {
      inString = true;
    } else if (c == '{' || c == '[') {
      if (++depth > maxNesting)
        return true;
    } else if (c == '}' || c == ']') {
      depth -= depth > 0;
    }
  }
  return false;
}

namespace {

class ConfigReader {
public:
  ConfigReader(ModuleOp module, llvm::StringRef folder) : module(module), folder(folder) {}

  /// Reads \p name into \p object, which stays empty if there is no such file.
  LogicalResult read(llvm::StringRef name, llvm::json::Object &object) {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, name);
    if (!llvm::sys::fs::exists(path))
      return success();
    auto file = openConfined(folder, {name.data(), name.size()}, "model configuration");
    if (!file)
      return fail(file.status().message());
    llvm::StringRef text(reinterpret_cast<const char *>(file->bytes().data()),
                         file->bytes().size());
    if (text.size() > maxConfigBytes)
      return fail(path + ": " + llvm::Twine(text.size()) + " bytes are no configuration");
    if (isNestedTooDeeply(text))
      return fail(path + ": nested more than " + llvm::Twine(maxNesting) + " deep");
    auto value = llvm::json::parse(text);
    if (!value)
      return fail(path + ": " + llvm::toString(value.takeError()));
    if (!value->getAsObject())
      return fail(path + ": not a JSON object");
    object = std::move(*value->getAsObject());
    return success();
  }

  /// Takes the context length from \p key unless an earlier file gave one.
  LogicalResult takeContext(const llvm::json::Object &object, llvm::StringRef key) {
    const llvm::json::Value *value = object.get(key);
    if (maxContext || !value || value->kind() == llvm::json::Value::Null)
      return success();
    maxContext = value->getAsInteger();
    if (maxContext && *maxContext > 0 && *maxContext < (int64_t(1) << 31))
      return success();
    return fail(key + " in " + folder + " is not a positive number of tokens");
  }

  /// Takes the end tokens (an id or a list of ids) unless an earlier file gave some.
  LogicalResult takeEnds(const llvm::json::Object &object) {
    const llvm::json::Value *value = object.get("eos_token_id");
    if (!ends.empty() || !value || value->kind() == llvm::json::Value::Null)
      return success();
    auto take = [&](const llvm::json::Value &one) {
      std::optional<int64_t> id = one.getAsInteger();
      if (id && *id >= 0)
        ends.push_back(*id);
      return id && *id >= 0;
    };
    bool isRight = true;
    if (const llvm::json::Array *list = value->getAsArray())
      for (const llvm::json::Value &one : *list)
        isRight &= take(one);
    else
      isRight = take(*value);
    return isRight ? success()
                   : fail("eos_token_id in " + folder + " is not a token id or a list of them");
  }

  std::optional<int64_t> maxContext;
  llvm::SmallVector<int64_t> ends;

private:
  LogicalResult fail(const llvm::Twine &message) {
    emitError(UnknownLoc::get(module.getContext())) << message;
    return failure();
  }

  ModuleOp module;
  std::string folder;
};

} // namespace

LogicalResult llmc::onnx::attachModelConfig(ModuleOp module, llvm::StringRef folder) {
  ConfigReader reader(module, folder.empty() ? "." : folder);
  llvm::json::Object genai, generation, config;
  if (failed(reader.read("genai_config.json", genai)) ||
      failed(reader.read("generation_config.json", generation)) ||
      failed(reader.read("config.json", config)))
    return failure();
  if (const llvm::json::Object *model = genai.getObject("model"))
    if (failed(reader.takeContext(*model, "context_length")) || failed(reader.takeEnds(*model)))
      return failure();
  if (failed(reader.takeEnds(generation)) || failed(reader.takeEnds(config)) ||
      failed(reader.takeContext(config, "max_position_embeddings")) ||
      failed(reader.takeContext(config, "n_positions")))
    return failure();

  Builder builder(module.getContext());
  auto known = module->getAttrOfType<DictionaryAttr>("graph.model");
  NamedAttrList entries(known);
  if (reader.maxContext)
    entries.set("max_context", builder.getI64IntegerAttr(*reader.maxContext));
  if (!reader.ends.empty())
    entries.set("eos_ids", builder.getI64ArrayAttr(reader.ends));
  module->setAttr("graph.model", entries.getDictionary(module.getContext()));
  return success();
}
