#include "compiler/import/huggingface/Checkpoint.h"

#include "compiler/import/common/ConfinedPath.h"
#include "runtime/text/Json.h"

#include <algorithm>
#include <filesystem>
#include <map>

using namespace llmrt;

namespace llmc {
namespace fs = std::filesystem;

namespace {
constexpr const char *singleName = "model.safetensors";
constexpr const char *indexName = "model.safetensors.index.json";

bool exists(const std::string &folder, const char *name) {
  std::error_code ignored;
  return fs::exists(fs::path(folder) / name, ignored);
}
} // namespace

Result<Checkpoint> Checkpoint::open(const std::string &folder) {
  Checkpoint result;
  if (exists(folder, singleName)) {
    LLMRT_ASSIGN_OR_RETURN(MappedFile file, openConfined(folder, singleName, folder));
    result.names_.push_back(singleName);
    LLMRT_RETURN_IF_ERROR(result.openSingle(std::move(file)));
  } else if (exists(folder, indexName)) {
    LLMRT_ASSIGN_OR_RETURN(const MappedFile index, openConfined(folder, indexName, folder));
    LLMRT_RETURN_IF_ERROR(result.openShards(folder, index));
  } else {
    return invalidFile(folder + ": has no weights: neither " + singleName + " nor " + indexName +
                       (exists(folder, "pytorch_model.bin")
                            ? "; pytorch_model.bin isn't read (it is a program in pickle form): "
                              "convert it to safetensors"
                            : ""));
  }
  result.noteStrayFiles(folder);
  return result;
}

Status Checkpoint::openSingle(MappedFile file) {
  LLMRT_ASSIGN_OR_RETURN(std::vector<SafetensorsTensor> tensors, readSafetensors(file));
  files_.push_back(std::move(file));
  for (SafetensorsTensor &tensor : tensors) {
    index_.emplace(tensor.name, tensors_.size());
    tensors_.push_back({std::move(tensor), 0});
  }
  return Status::ok();
}

Status Checkpoint::openShards(const std::string &folder, const MappedFile &index) {
  const auto fail = [&](const std::string &why) { return invalidFile(index.path() + ": " + why); };
  Result<JsonDocument> document = JsonDocument::parse(
      {reinterpret_cast<const char *>(index.bytes().data()), index.bytes().size()});
  if (!document.isOk())
    return fail(document.status().message());
  const JsonValue map = document->root().isObject() ? document->root()["weight_map"] : JsonValue();
  if (!map.isObject() || map.size() == 0)
    return fail("needs 'weight_map', an object from tensor names to file names");

  // Which tensors each shard must bring; sorted, so that a plan's bytes don't depend on the order.
  std::map<std::string, std::vector<std::string>, std::less<>> shards;
  std::unordered_map<std::string, const std::string *> shardOf;
  for (auto [tensor, file] : map.members()) {
    if (!file.isString())
      return fail("tensor '" + std::string(tensor.substr(0, 80)) + "' is mapped to " +
                  file.typeName() + "; a file name is needed");
    const auto shard = shards.try_emplace(std::string(file.asString())).first;
    shard->second.emplace_back(tensor);
    if (!shardOf.emplace(tensor, &shard->first).second)
      return fail("tensor '" + std::string(tensor.substr(0, 80)) + "' appears twice");
  }
  std::string missing;
  for (const auto &[name, wanted] : shards) {
    LLMRT_RETURN_IF_ERROR(checkRelativePath(name, index.path()));
    if (!exists(folder, name.c_str()))
      missing += (missing.empty() ? "" : ", ") + name;
  }
  if (!missing.empty())
    return fail("names files that aren't in the folder: " + missing);

  for (const auto &[name, wanted] : shards) {
    LLMRT_ASSIGN_OR_RETURN(MappedFile file, openConfined(folder, name, index.path()));
    LLMRT_ASSIGN_OR_RETURN(std::vector<SafetensorsTensor> tensors, readSafetensors(file));
    const uint32_t fileIndex = static_cast<uint32_t>(files_.size());
    size_t unnamed = 0;
    for (SafetensorsTensor &tensor : tensors) {
      const auto owner = shardOf.find(tensor.name);
      if (owner == shardOf.end()) {
        ++unnamed;
        continue;
      }
      if (*owner->second != name)
        return fail("tensor '" + tensor.name + "' is mapped to " + *owner->second + ", but is in " +
                    name + " too");
      index_.emplace(tensor.name, tensors_.size());
      tensors_.push_back({std::move(tensor), fileIndex});
    }
    for (const std::string &tensor : wanted)
      if (!index_.contains(tensor))
        return fail("tensor '" + tensor + "' is mapped to " + name + ", which doesn't have it");
    if (unnamed != 0)
      notes_.push_back(name + ": " + std::to_string(unnamed) +
                       " tensors that the index doesn't name are ignored");
    files_.push_back(std::move(file));
    names_.push_back(name);
  }
  return Status::ok();
}

void Checkpoint::noteStrayFiles(const std::string &folder) {
  std::vector<std::string> stray;
  std::error_code ignored;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".safetensors") && std::ranges::find(names_, name) == names_.end())
      stray.push_back(name);
  }
  std::ranges::sort(stray);
  for (const std::string &name : stray)
    notes_.push_back(name + ": isn't part of the model, ignored");
}

const Checkpoint::Tensor *Checkpoint::find(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

} // namespace llmc
