//===- GgufFuzzer.cpp - any bytes as a GGUF file -----------------------------------===//
//
// Metadata, tensors of every block form, and the tokenizer in it.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/gguf/GgufFile.h"
#include "compiler/import/gguf/GgufText.h"
#include "test/fuzz/InputFile.h"

using namespace llmc;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const fuzz::InputFile input(data, size);
  auto file = GgufFile::open(input.path());
  if (!file)
    return 0;
  for (const GgufTensor &tensor : file->tensors()) {
    auto source = file->source(tensor);
    if (!source || !source->check() || source->rows == 0 || source->columns > 4096)
      continue;
    std::vector<float> row(source->columns);
    (void)source->readRows(source->rows - 1, source->rows, row.data());
    if (const std::optional<WeightFormat> format = source->quantizedFormat()) {
      QuantizedRows rows;
      (void)source->readQuantizedRows(0, 1, *format, rows);
    }
  }
  (void)readGgufText(*file, 1000);
  return 0;
}
