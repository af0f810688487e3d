// The cache of compiled units.
#include "codegen/cuda/Nvrtc.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace llmc;
using llmrt::Result;
namespace fs = std::filesystem;

std::vector<std::string> llmc::cudaCompileFlags(const std::string &architecture) {
  // -fmad=false: a sum and a product are one rounding only where the text says fmaf, so variants of
  // a kernel have the same bits.
  return {"--gpu-architecture=" + architecture, "--std=c++17",
          "--device-as-default-execution-space", "--fmad=false", "--ptxas-options=-v"};
}

namespace {

std::string keyOf(const Nvrtc &nvrtc, const CudaUnit &unit, const std::string &architecture) {
  llvm::SHA256 hash;
  auto add = [&](llvm::StringRef part) {
    hash.update(std::to_string(part.size()) + ":");
    hash.update(part);
  };
  add("1"); // the format of the file
  add(nvrtc.version());
  for (const std::string &flag : cudaCompileFlags(architecture))
    add(flag);
  for (const CudaHeader &header : cudaHeaders())
    add(header.name), add(header.text);
  add(unit.family);
  add(unit.text);
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}

std::string checksum(llvm::StringRef bytes) {
  llvm::SHA256 hash;
  hash.update(bytes);
  return llvm::toHex(hash.final(), true);
}

/// A line "entry registers spilled stack" each, an empty line, the image.
std::string write(const CudaImage &image) {
  std::string text;
  for (const auto &[entry, r] : image.resources)
    text += entry + " " + std::to_string(r.registers) + " " + std::to_string(r.spillBytes) + " " +
            std::to_string(r.stackBytes) + "\n";
  return text + "\n" + image.bytes;
}

/// Nothing where the file is missing, damaged, or lacks an entry.
bool read(const fs::path &path, const CudaUnit &unit, bool hasResources, CudaImage &image) {
  std::ifstream file(path, std::ios::binary);
  std::string all((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  llvm::StringRef text = all;
  if (text.size() < 65 || checksum(text.drop_front(65)) != text.take_front(64))
    return false;
  text = text.drop_front(65);
  while (!text.empty() && text.front() != '\n') {
    auto [line, rest] = text.split('\n');
    llvm::SmallVector<llvm::StringRef> words;
    line.split(words, ' ');
    CudaResources r;
    if (words.size() != 4 || words[1].getAsInteger(10, r.registers) ||
        words[2].getAsInteger(10, r.spillBytes) || words[3].getAsInteger(10, r.stackBytes))
      return false;
    image.resources[words[0].str()] = r;
    text = rest;
  }
  image.bytes = text.drop_front(std::min<size_t>(1, text.size())).str();
  return !image.bytes.empty() &&
         (!hasResources || llvm::all_of(unit.entries, [&](const CudaEntry &entry) {
           return image.resources.count(entry.name) != 0;
         }));
}

} // namespace

Result<CudaImage> CudaCompiler::compile(const CudaUnit &unit,
                                        const std::string &architecture) const {
  if (folder_.empty())
    return nvrtc_.compile(unit, architecture);
  fs::path path = fs::path(folder_) / "nvrtc" / keyOf(nvrtc_, unit, architecture);
  CudaImage image;
  if (read(path, unit, !llvm::StringRef(architecture).starts_with("compute_"), image))
    return image;
  LLMRT_ASSIGN_OR_RETURN(image, nvrtc_.compile(unit, architecture));
  // Another process may write the same file: each writes its own and renames it. A cache that can't
  // be written only costs time.
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::string body = write(image);
  fs::path temporary = path.string() + "." + std::to_string(getpid()) + ".part";
  std::ofstream file(temporary, std::ios::binary);
  file << checksum(body) << '\n' << body;
  file.close();
  if (file)
    fs::rename(temporary, path, error);
  else
    fs::remove(temporary, error);
  return image;
}
