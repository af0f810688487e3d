//===- TinyModels.h - the random models of every architecture -----------------===//
#ifndef LLMC_TEST_ONNX_TINYMODELS_H
#define LLMC_TEST_ONNX_TINYMODELS_H

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace onnxtest {

/// The folder that the build unpacks the tiny models to; LLMC_TEST_TINY in the environment wins.
inline std::string tinyFolder() {
  if (const char *folder = std::getenv("LLMC_TEST_TINY"))
    return folder;
#ifdef LLMC_TEST_TINY
  return LLMC_TEST_TINY;
#else
  return "";
#endif
}

/// The text of a file of theirs; empty if it isn't there.
inline std::string readTiny(const std::string &name) {
  std::ifstream file(tinyFolder() + "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

} // namespace onnxtest

#endif // LLMC_TEST_ONNX_TINYMODELS_H
