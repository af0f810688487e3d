#include "compiler/import/huggingface/ModelConfig.h"

#include "compiler/import/huggingface/families/Families.h"

using namespace llmrt;

namespace llmc {

std::string supportedFamilies() {
  std::string names;
  for (const Family &family : families())
    names += (names.empty() ? "" : ", ") + std::string(family.modelType);
  return names;
}

Result<DecoderConfig> readModelConfig(const JsonFile &file, std::vector<std::string> &notes,
                                      uint64_t maxModelLen) {
  ConfigReader config(file, notes);
  DecoderConfig model;
  LLMRT_ASSIGN_OR_RETURN(const std::optional<std::string> type, config.text("model_type"));
  if (!type)
    return config.fail("has no 'model_type'");
  model.architecture = *type;
  const Family *family = nullptr;
  for (const Family &one : families())
    if (*type == one.modelType)
      family = &one;
  if (!family)
    return unsupported("config.json: model_type '" + *type + "' is not supported; supported: " +
                       supportedFamilies() + ". Its ONNX export may work");
  (void)config.value("quantization_config"); // honoured by QuantizedCheckpoint

  LLMRT_ASSIGN_OR_RETURN(const std::optional<std::string> name, config.text("_name_or_path"));
  model.name = name.value_or("");
  LLMRT_RETURN_IF_ERROR(family->read(config, model));
  LLMRT_RETURN_IF_ERROR(config.checkHonoured(*type));
  for (RopeParameters &rope : model.ropes)
    limitLongRope(rope, maxModelLen, model.maxContext, notes);
  LLMRT_RETURN_IF_ERROR(model.check());
  return model;
}

} // namespace llmc
