//===- ImportModel.cpp - one entry for every kind of model ------------------------------===//

#include "compiler/driver/ImportModel.h"
#include "compiler/driver/Driver.h"
#include "compiler/import/gguf/GgufImport.h"
#include "compiler/import/huggingface/FolderText.h"
#include "compiler/import/huggingface/HuggingFaceImport.h"
#include "compiler/import/onnx/Import.h"
#include "compiler/passes/raise/ModelInputs.h"
#include "dialects/llm/LlmDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include <filesystem>
#include <fstream>

using namespace mlir;
using namespace llmc;
namespace fs = std::filesystem;
using llmrt::Result;
using llmrt::Status;

Result<ModelKind> llmc::modelKind(const std::string &path) {
  std::error_code error;
  fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found)
    return llmrt::invalidArgument(path + ": no such file or folder");
  if (status.type() == fs::file_type::directory) {
    if (fs::exists(path + "/config.json", error))
      return ModelKind::HuggingFace;
    return llmrt::invalidArgument(path +
                                  ": the folder has no config.json; a model is an .onnx file, "
                                  "a .gguf file or a Hugging Face folder with config.json "
                                  "and safetensors");
  }
  char magic[4] = {};
  std::ifstream(path, std::ios::binary).read(magic, sizeof magic);
  std::string extension = fs::path(path).extension().string();
  if (std::string_view(magic, 4) == "GGUF" || extension == ".gguf")
    return ModelKind::Gguf;
  if (extension == ".onnx")
    return ModelKind::Onnx;
  if (extension == ".mlir")
    return ModelKind::Mlir;
  if (std::string_view(magic, 4) == "LLMP")
    return llmrt::invalidArgument(path + ": is a plan already; `llmc run` takes it as it is");
  return llmrt::invalidArgument(path + ": unknown kind of model; a model is an .onnx file, a .gguf "
                                       "file or a Hugging Face folder");
}

/// The folder that a model's files are in.
static std::string modelFolder(const std::string &model) {
  std::error_code error;
  if (fs::is_directory(model, error))
    return model;
  std::string folder = fs::path(model).parent_path().string();
  return folder.empty() ? "." : folder;
}

Result<ModelFiles> llmc::openModelFiles(ModuleOp module, const std::string &model) {
  std::vector<std::string> names;
  if (auto files = module->getAttrOfType<ArrayAttr>(llm::kFilesAttr))
    for (Attribute name : files)
      names.push_back(cast<StringAttr>(name).str());
  return ModelFiles::open(modelFolder(model), names);
}

Status llmc::limitContext(ModuleOp module, int64_t maxModelLen) {
  NamedAttrList entries(module->getAttrOfType<DictionaryAttr>(llm::kModelAttr));
  auto known = dyn_cast_or_null<IntegerAttr>(entries.get("max_context"));
  int64_t limit = known ? known.getInt() : 0;
  // A graph with tables of cosines and sines, or a table of positions, ends where they end,
  // whatever a configuration says.
  int64_t tables = INT64_MAX;
  module.walk([&](llm::RopeGatherOp op) {
    // What is read for short contexts only limits none.
    if (!op->use_empty() && llvm::all_of(op->getUses(), [](OpOperand &use) {
          return isa<llm::RopeSelectOp>(use.getOwner()) && use.getOperandNumber() == 0;
        }))
      return;
    tables = std::min(tables, llm::dim(op.getCos(), 0));
  });
  module.walk([&](llm::EmbeddingOp op) {
    if (auto ids = dyn_cast<BlockArgument>(op.getTokens()); ids && ids.getArgNumber() == 1)
      tables = std::min(tables, llm::dim(op.getTable(), 0));
  });
  if (limit > 0)
    limit = std::min(limit, tables);
  else if (tables != INT64_MAX)
    limit = tables;
  if (maxModelLen && limit > 0 && maxModelLen > limit)
    return llmrt::invalidArgument("--max-model-len " + std::to_string(maxModelLen) +
                                  " is more than the model's context of " + std::to_string(limit) +
                                  " tokens");
  if (limit <= 0 && !maxModelLen)
    emitRemark(module.getLoc()) << "the model does not say how long its context is; taking "
                                << kDefaultContext << " tokens (--max-model-len sets it)";
  int64_t chosen = maxModelLen ? maxModelLen : limit > 0 ? limit : kDefaultContext;
  entries.set("max_context", Builder(module.getContext()).getI64IntegerAttr(chosen));
  module->setAttr(llm::kModelAttr, entries.getDictionary(module.getContext()));
  return Status::ok();
}

void llmc::nameModel(ModuleOp module, const std::string &path) {
  fs::path normal = fs::absolute(path).lexically_normal();
  if (!normal.has_filename())
    normal = normal.parent_path();
  std::string name = fs::is_directory(normal) ? normal.filename().string() : normal.stem().string();
  if (name == "model") // what exporters call every model
    name = normal.parent_path().filename().string();
  NamedAttrList entries(module->getAttrOfType<DictionaryAttr>(llm::kModelAttr));
  for (auto [key, value] :
       {std::pair<StringRef, StringRef>{"name", name}, {"architecture", "decoder"}})
    if (auto known = dyn_cast_or_null<StringAttr>(entries.get(key));
        !known || known.getValue().empty())
      entries.set(key, StringAttr::get(module.getContext(), value));
  module->setAttr(llm::kModelAttr, entries.getDictionary(module.getContext()));
}

/// Rows of the embeddings, as the model or the shape of its logits says; 0 where neither does.
static uint64_t vocabularyOf(ModuleOp module) {
  if (auto model = module->getAttrOfType<DictionaryAttr>(llm::kModelAttr))
    if (auto rows = model.getAs<IntegerAttr>("vocab_size"))
      return static_cast<uint64_t>(rows.getInt());
  auto main = module.lookupSymbol<func::FuncOp>("main");
  for (unsigned i = 0; main && i < main.getNumResults(); ++i) {
    if (raise::bindName(raise::resultName(main, i)).role != raise::Role::Logits)
      continue;
    auto type = dyn_cast<RankedTensorType>(main.getResultTypes()[i]);
    if (type && type.getRank() > 0 && !type.isDynamicDim(type.getRank() - 1))
      return static_cast<uint64_t>(type.getShape().back());
  }
  return 0;
}

Result<ImportedModel> llmc::importModel(const CompileOptions &options, MLIRContext &context,
                                        DiagnosticCollector &diagnostics) {
  LLMRT_ASSIGN_OR_RETURN(ModelKind kind, modelKind(options.model));
  ImportedModel result;
  // What the model itself says about text, unless another tokenizer is given.
  ImportedText *ownText = options.tokenizer.empty() ? &result.text : nullptr;
  switch (kind) {
  case ModelKind::Onnx:
    result.module = importOnnx(options.model, &context);
    break;
  case ModelKind::Mlir:
    result.module = parseSourceFile<ModuleOp>(options.model, &context);
    break;
  case ModelKind::Gguf:
    result.module =
        importGguf(options.model, &context, ownText, static_cast<uint64_t>(options.maxModelLen));
    break;
  case ModelKind::HuggingFace:
    result.module = importHuggingFace(options.model, &context, ownText,
                                      static_cast<uint64_t>(options.maxModelLen));
    break;
  }
  if (!result.module)
    return llmrt::invalidFile(diagnostics.error("the model could not be imported"));
  if (!ownText) {
    LLMRT_ASSIGN_OR_RETURN(result.text,
                           readFolderText(options.tokenizer, vocabularyOf(*result.module)));
  } else if (kind == ModelKind::Onnx) { // what lies beside the graph
    LLMRT_ASSIGN_OR_RETURN(
        result.text, readFolderText(modelFolder(options.model), vocabularyOf(*result.module)));
  }
  for (const std::string &note : result.text.notes)
    emitRemark(result.module->getLoc()) << note;
  return result;
}
