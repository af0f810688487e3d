//===- SafetensorsFuzzer.cpp - any bytes as a .safetensors file --------------------===//
#include "compiler/import/huggingface/SafetensorsFile.h"
#include "test/fuzz/InputFile.h"

using namespace llmc;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const fuzz::InputFile input(data, size);
  auto file = MappedFile::open(input.path());
  if (!file)
    return 0;
  auto tensors = readSafetensors(*file);
  if (!tensors)
    return 0;
  for (const SafetensorsTensor &tensor : *tensors) {
    auto source = safetensorsSource(*file, tensor);
    if (!source || !source->check() || source->rows == 0 || source->columns > 4096)
      continue;
    std::vector<float> row(source->columns);
    (void)source->readRows(source->rows - 1, source->rows, row.data());
  }
  return 0;
}
