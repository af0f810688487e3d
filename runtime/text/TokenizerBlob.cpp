#include "runtime/text/TokenizerBlob.h"

#include "runtime/text/PipelineCodec.h"

#include <algorithm>

namespace llmrt {

static Status damaged(const std::string &what) {
  return invalidFile("tokenizer data is damaged: " + what);
}

Result<TokenizerTables> TokenizerTables::open(std::span<const uint8_t> bytes) {
  blob::Header header{};
  constexpr size_t kFixedBytes = offsetof(blob::Header, extents);
  if (bytes.size() < kFixedBytes)
    return damaged("it has " + std::to_string(bytes.size()) + " bytes, fewer than its header");
  std::memcpy(&header, bytes.data(), kFixedBytes);
  if (std::memcmp(header.magic, blob::kMagic, sizeof(header.magic)) != 0)
    return damaged("it does not start with LLMTOK01 (another version?)");
  if (header.size != bytes.size())
    return damaged("its header says " + std::to_string(header.size) + " bytes, there are " +
                   std::to_string(bytes.size()));
  if (header.sections != blob::kSectionCount && header.sections != blob::kFirstSectionCount)
    return damaged("it has " + std::to_string(header.sections) + " sections");
  const size_t headerBytes = kFixedBytes + header.sections * sizeof(blob::Extent);
  if (bytes.size() < headerBytes)
    return damaged("it has " + std::to_string(bytes.size()) + " bytes, fewer than its header");
  for (blob::Extent &extent : header.extents)
    extent.offset = headerBytes; // empty, where the blob has none
  std::memcpy(header.extents, bytes.data() + kFixedBytes, headerBytes - kFixedBytes);
  for (const blob::Extent &extent : header.extents)
    if (extent.offset < headerBytes || extent.offset > bytes.size() ||
        extent.size > bytes.size() - extent.offset)
      return damaged("a section lies outside of it");
  TokenizerTables tables;
  tables.bytes = bytes;
  LLMRT_RETURN_IF_ERROR(tables.checkTables(header));
  return tables;
}

Status TokenizerTables::checkTables(const blob::Header &header) {
  auto section = [&](blob::Section s) {
    return bytes.subspan(header.extents[s].offset, header.extents[s].size);
  };
  count = header.tokens;
  pipelineBytes = section(blob::Pipeline);

  auto idBytes = section(blob::Ids);
  if (!idBytes.empty()) {
    if (idBytes.size() != uint64_t(count) * 4)
      return damaged("the Ids section has the wrong size");
    ids = idBytes.data();
    int64_t last = -1;
    for (uint32_t i = 0; i < count; ++i) {
      int64_t id = blob::load<uint32_t>(ids, i);
      if (id <= last || id > kMaxTokenId)
        return damaged("the ids do not ascend");
      last = id;
    }
  } else if (count > kMaxTokenId) {
    return damaged("too many tokens");
  }

  auto offsetBytes = section(blob::Offsets), text = section(blob::Text);
  if (offsetBytes.size() != (uint64_t(count) + 1) * 4)
    return damaged("the Offsets section has the wrong size");
  offsets = offsetBytes.data();
  textBytes = reinterpret_cast<const char *>(text.data());
  uint32_t last = blob::load<uint32_t>(offsets, 0);
  for (uint32_t i = 1; i <= count; ++i) {
    uint32_t next = blob::load<uint32_t>(offsets, i);
    if (next < last)
      return damaged("the offsets of the tokens do not ascend");
    longest = std::max<size_t>(longest, next - last);
    last = next;
  }
  if (last > text.size())
    return damaged("a token lies outside of the Text section");

  auto vocabularyBytes = section(blob::Vocabulary);
  size_t slots = vocabularyBytes.size() / 4;
  if (vocabularyBytes.size() % 4 || !std::has_single_bit(slots) || slots > UINT32_MAX)
    return damaged("the Vocabulary section has the wrong size");
  vocabulary = vocabularyBytes.data();
  vocabularyMask = static_cast<uint32_t>(slots - 1);
  size_t used = 0;
  for (size_t i = 0; i < slots; ++i) {
    uint32_t entry = blob::load<uint32_t>(vocabulary, i);
    if (entry > count)
      return damaged("the Vocabulary section names a token that is not there");
    used += entry != 0;
  }
  if (used == slots)
    return damaged("the Vocabulary section has no free slot");

  auto mergeBytes = section(blob::Merges);
  slots = mergeBytes.size() / sizeof(blob::MergeSlot);
  if (mergeBytes.size() % sizeof(blob::MergeSlot) || !std::has_single_bit(slots) ||
      slots > UINT32_MAX)
    return damaged("the Merges section has the wrong size");
  merges = mergeBytes.data();
  mergesMask = static_cast<uint32_t>(slots - 1);
  used = 0;
  for (size_t i = 0; i < slots; ++i) {
    auto entry = blob::load<blob::MergeSlot>(merges, i);
    if (entry.left == blob::kFree)
      continue;
    if (entry.left >= count || entry.right >= count || entry.result >= count)
      return damaged("the Merges section names a token that is not there");
    if (entry.rank >= slots)
      return damaged("a rank is larger than the number of merges");
    ++used;
  }
  if (used == slots)
    return damaged("the Merges section has no free slot");

  auto rankBytes = section(blob::Ranks);
  if (!rankBytes.empty()) {
    if (rankBytes.size() != uint64_t(count) * 4)
      return damaged("the Ranks section has the wrong size");
    ranks = rankBytes.data();
    for (uint32_t i = 0; i < count; ++i)
      if (rankOf(i) >= count)
        return damaged("a rank is larger than the number of tokens");
  }

  auto scoreBytes = section(blob::Scores);
  if (!scoreBytes.empty()) {
    if (scoreBytes.size() != uint64_t(count) * 8)
      return damaged("the Scores section has the wrong size");
    scores = scoreBytes.data();
  }
  auto trieBytes = section(blob::Trie);
  if (trieBytes.size() % sizeof(TokenTrie::Node) ||
      trieBytes.size() / sizeof(TokenTrie::Node) > UINT32_MAX)
    return damaged("the Trie section has the wrong size");
  tokenTrie = TokenTrie(trieBytes);
  for (size_t i = 0; i < tokenTrie.size(); ++i)
    if (tokenTrie.node(i).token > count)
      return damaged("the Trie section names a token that is not there");
  return Status::ok();
}

std::optional<uint32_t> TokenizerTables::indexOf(int64_t id) const {
  if (id < 0 || id > maxId())
    return std::nullopt;
  if (!ids)
    return static_cast<uint32_t>(id);
  uint32_t low = 0, high = count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (idOf(middle) < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low < count && idOf(low) == id ? std::optional(low) : std::nullopt;
}

Result<PipelineConfig> TokenizerTables::pipeline() const {
  LLMRT_ASSIGN_OR_RETURN(PipelineConfig config, decodePipeline(pipelineBytes));
  if (config.kind == ModelKind::ScoredBpe && !ranks)
    return damaged("the Ranks section is missing");
  if (config.kind == ModelKind::Unigram && !scores && count)
    return damaged("the Scores section is missing");
  if (config.modelUnknown && *config.modelUnknown >= count)
    return damaged("the unknown token is not there");
  if (!config.byteTokens.empty() && config.byteTokens.size() != 256)
    return damaged("the number of byte tokens is not 256");
  for (uint32_t token : config.byteTokens)
    if (token >= count && token != blob::kFree)
      return damaged("a byte token is not there");
  for (const AddedEntry &entry : config.added)
    if (entry.index >= count || idOf(entry.index) != entry.token.id)
      return damaged("an added token is not there");
  for (const auto *list : {&config.prefixIds, &config.suffixIds})
    for (int32_t id : *list)
      if (!indexOf(id))
        return damaged("a token that goes around each text is not there");
  for (const auto &id : {config.bos, config.eos, config.pad, config.unknown})
    if (id && !indexOf(*id))
      return damaged("a special token is not there");
  return config;
}

} // namespace llmrt
