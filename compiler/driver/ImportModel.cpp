//===- ImportModel.cpp - one entry for every kind of model ------------------------------===//

#include "compiler/driver/ImportModel.h"
#include "compiler/driver/Driver.h"
#include "compiler/import/onnx/Import.h"
#include "dialects/llm/LlmDialect.h"
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

/// Maps the files that the module names, beside the model.
static Result<ModelFiles> openFiles(ModuleOp module, const std::string &folder) {
  std::vector<std::string> names;
  if (auto files = module->getAttrOfType<ArrayAttr>(llm::kFilesAttr))
    for (Attribute name : files)
      names.push_back(cast<StringAttr>(name).str());
  return ModelFiles::open(folder, names);
}

Result<ImportedModel> llmc::importModel(const CompileOptions &options, MLIRContext &context,
                                        DiagnosticCollector &diagnostics) {
  LLMRT_ASSIGN_OR_RETURN(ModelKind kind, modelKind(options.model));
  ImportedModel result;
  std::string folder = kind == ModelKind::HuggingFace
                           ? options.model
                           : fs::path(options.model).parent_path().string();
  if (folder.empty())
    folder = ".";
  switch (kind) {
  case ModelKind::Onnx:
    result.module = importOnnx(options.model, &context);
    break;
  case ModelKind::Mlir:
    result.module = parseSourceFile<ModuleOp>(options.model, &context);
    break;
  case ModelKind::Gguf:
  case ModelKind::HuggingFace:
    break;
  }
  if (!result.module)
    return llmrt::invalidFile(diagnostics.error("the model could not be imported"));
  LLMRT_ASSIGN_OR_RETURN(result.files, openFiles(*result.module, folder));
  return result;
}
