//===- TempFolder.h - a folder that goes away with the test -------------------===//
#ifndef LLMC_TEST_ONNX_TEMPFOLDER_H
#define LLMC_TEST_ONNX_TEMPFOLDER_H

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace onnxtest {

class TempFolder {
public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "llmc-onnx-XXXXXX").string();
    if (char *made = ::mkdtemp(pattern.data()))
      folder = made;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  const std::string &path() const { return folder; }
  /// Writes \p text to \p name and returns the path.
  std::string write(const std::string &name, const std::string &text) const {
    std::string path = folder + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

private:
  std::string folder;
};

} // namespace onnxtest

#endif // LLMC_TEST_ONNX_TEMPFOLDER_H
