//===- TempFolder.h - a folder that a test may fill ---------------------------===//
#ifndef LLMC_TEST_TEMPFOLDER_H
#define LLMC_TEST_TEMPFOLDER_H

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace llmc::test {

/// A fresh folder, removed with all that is in it at the end of the scope.
class TempFolder {
public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "llmc-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder &) = delete;
  TempFolder &operator=(const TempFolder &) = delete;

  std::string path() const { return path_.string(); }
  std::string file(const std::string &name) const { return (path_ / name).string(); }
  /// Writes a file (and the folders above it) and gives its path.
  std::string write(const std::string &name, std::string_view contents) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary).write(contents.data(), contents.size());
    return file(name);
  }

private:
  std::filesystem::path path_;
};

} // namespace llmc::test

#endif // LLMC_TEST_TEMPFOLDER_H
