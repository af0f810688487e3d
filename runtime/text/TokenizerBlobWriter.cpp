#include "runtime/text/Normalizer.h"
#include "runtime/text/PipelineCodec.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace llmrt {

namespace {

/// The tokens of the model and the added ones, in id order.
struct TokenTable {
  struct Row {
    int32_t id;
    std::string_view text;
    double score;
    bool searchable;
  };
  std::vector<Row> rows;

  static Result<TokenTable> build(const TokenizerSpec &spec) {
    TokenTable table;
    table.rows.reserve(spec.vocabulary.size() + spec.added.size());
    std::unordered_map<std::string_view, int32_t> byText;
    for (const SpecToken &token : spec.vocabulary) {
      if (token.id < 0 || token.id > kMaxTokenId)
        return invalidFile("token '" + token.text + "' has the id " + std::to_string(token.id));
      table.rows.push_back({token.id, token.text, token.score, token.searchable});
      auto [known, fresh] = byText.emplace(token.text, token.id);
      if (fresh || !token.searchable)
        continue;
      // A Unigram vocabulary may list a text again, to another end; one of them is searchable.
      if (spec.kind != ModelKind::Unigram)
        return invalidFile("token '" + token.text + "' has two ids");
      known->second = token.id;
    }
    table.sort();
    for (size_t i = 1; i < table.rows.size(); ++i)
      if (table.rows[i - 1].id == table.rows[i].id)
        return invalidFile("id " + std::to_string(table.rows[i].id) + " belongs to two tokens, '" +
                           std::string(table.rows[i - 1].text) + "' and '" +
                           std::string(table.rows[i].text) + "'");
    LLMRT_RETURN_IF_ERROR(table.addAdded(spec, byText));
    return table;
  }

  std::optional<uint32_t> indexOf(int64_t id) const {
    auto row = std::lower_bound(rows.begin(), rows.end(), id,
                                [](const Row &r, int64_t wanted) { return r.id < wanted; });
    if (row == rows.end() || row->id != id)
      return std::nullopt;
    return static_cast<uint32_t>(row - rows.begin());
  }

private:
  void sort() {
    std::sort(rows.begin(), rows.end(), [](const Row &a, const Row &b) { return a.id < b.id; });
  }

  Status addAdded(const TokenizerSpec &spec,
                  const std::unordered_map<std::string_view, int32_t> &byText) {
    std::map<int32_t, std::string_view> fresh;
    std::unordered_map<std::string_view, int32_t> contents;
    for (const AddedToken &token : spec.added) {
      auto clash = [&](std::string_view other) {
        return invalidFile("id " + std::to_string(token.id) + " belongs to two tokens, '" +
                           std::string(other) + "' and the added '" + token.content + "'");
      };
      if (token.id < 0 || token.id > kMaxTokenId)
        return invalidFile("added token '" + token.content + "' has the id " +
                           std::to_string(token.id));
      auto [content, isNew] = contents.emplace(token.content, token.id);
      auto known = byText.find(token.content);
      if ((!isNew && content->second != token.id) ||
          (known != byText.end() && known->second != token.id && !indexOf(token.id)))
        return invalidFile("added token '" + token.content + "' has two ids");
      if (std::optional<uint32_t> index = indexOf(token.id)) {
        if (rows[*index].text != token.content)
          return clash(rows[*index].text);
      } else if (auto [other, added] = fresh.emplace(token.id, token.content);
                 !added && other->second != token.content) {
        return clash(other->second);
      }
    }
    for (auto [id, content] : fresh)
      rows.push_back({id, content, 0, false});
    sort();
    return Status::ok();
  }
};

/// Slots of an open-addressed table for \p entries: a power of two, at most two thirds full.
size_t slotsFor(size_t entries) { return std::bit_ceil(entries + entries / 2 + 1); }

template <typename T> void put(std::string &out, const T &value) {
  out.append(reinterpret_cast<const char *>(&value), sizeof(T));
}

std::string vocabularyTable(const TokenTable &table) {
  size_t entries = std::count_if(table.rows.begin(), table.rows.end(),
                                 [](const auto &row) { return row.searchable; });
  std::vector<uint32_t> slots(slotsFor(entries), 0);
  for (uint32_t i = 0; i < table.rows.size(); ++i) {
    if (!table.rows[i].searchable)
      continue;
    size_t slot = blob::hashText(table.rows[i].text) & (slots.size() - 1);
    while (slots[slot])
      slot = (slot + 1) & (slots.size() - 1);
    slots[slot] = i + 1;
  }
  return std::string(reinterpret_cast<const char *>(slots.data()), slots.size() * 4);
}

/// Each token's place among the different scores, from the highest.
std::string scoreRanks(const TokenTable &table) {
  std::vector<double> scores;
  for (const auto &row : table.rows)
    scores.push_back(row.score);
  std::sort(scores.begin(), scores.end(), std::greater<>());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  std::string out;
  for (const auto &row : table.rows)
    put(out, static_cast<uint32_t>(
                 std::lower_bound(scores.begin(), scores.end(), row.score, std::greater<>()) -
                 scores.begin()));
  return out;
}

std::string unigramScores(const TokenizerSpec &spec, const TokenTable &table) {
  std::vector<double> scores(table.rows.size(), std::numeric_limits<double>::quiet_NaN());
  for (const SpecToken &token : spec.vocabulary)
    scores[*table.indexOf(token.id)] = token.score;
  return std::string(reinterpret_cast<const char *>(scores.data()), scores.size() * 8);
}

std::string trieOf(const TokenTable &table) {
  std::vector<std::string_view> texts;
  for (const auto &row : table.rows)
    texts.push_back(row.searchable ? row.text : std::string_view());
  return TokenTrie::build(texts);
}

Result<std::string> mergeTable(const TokenizerSpec &spec, const TokenTable &table) {
  std::vector<blob::MergeSlot> slots(slotsFor(spec.merges.size()),
                                     {blob::kFree, blob::kFree, 0, 0});
  for (uint32_t rank = 0; rank < spec.merges.size(); ++rank) {
    const SpecMerge &merge = spec.merges[rank];
    auto left = table.indexOf(merge.left), right = table.indexOf(merge.right),
         result = table.indexOf(merge.result);
    if (!left || !right || !result)
      return invalidFile("merge " + std::to_string(rank) + " names a token that is not there");
    size_t slot = blob::hashPair(*left, *right) & (slots.size() - 1);
    while (slots[slot].left != blob::kFree &&
           !(slots[slot].left == *left && slots[slot].right == *right))
      slot = (slot + 1) & (slots.size() - 1);
    slots[slot] = {*left, *right, rank, *result}; // a repeated pair has its last rank
  }
  return std::string(reinterpret_cast<const char *>(slots.data()),
                     slots.size() * sizeof(blob::MergeSlot));
}

Result<std::vector<AddedEntry>> addedEntries(const TokenizerSpec &spec, const TokenTable &table) {
  LLMRT_ASSIGN_OR_RETURN(Normalizer normalizer, Normalizer::create(spec.normalizers));
  PatternScratch scratch;
  bool startKept = true; // of no interest here
  std::vector<AddedEntry> entries;
  std::unordered_set<uint32_t> seen;
  for (const AddedToken &token : spec.added) {
    AddedEntry entry{token, *table.indexOf(token.id), token.content};
    if (!token.pattern.empty()) {
      entry.pattern = token.pattern;
    } else if (token.normalized) {
      LLMRT_ASSIGN_OR_RETURN(entry.pattern, normalizer.apply(token.content, scratch, startKept));
    }
    if (seen.insert(entry.index).second) // the first of two entries for a token counts
      entries.push_back(std::move(entry));
  }
  // Special tokens come before others with the same pattern.
  std::sort(entries.begin(), entries.end(), [](const AddedEntry &a, const AddedEntry &b) {
    return std::tuple(a.token.normalized, std::string_view(a.pattern), !a.token.special,
                      a.token.id) < std::tuple(b.token.normalized, std::string_view(b.pattern),
                                               !b.token.special, b.token.id);
  });
  return entries;
}

} // namespace

Result<std::string> writeTokenizerBlob(const TokenizerSpec &spec) {
  LLMRT_ASSIGN_OR_RETURN(TokenTable table, TokenTable::build(spec));
  PipelineConfig config;
  config.kind = spec.kind;
  config.maxWordCharacters = spec.maxWordCharacters;
  for (int32_t id : spec.byteTokens)
    config.byteTokens.push_back(table.indexOf(id).value_or(blob::kFree));
  config.fuseUnknown = spec.fuseUnknown;
  config.ignoreMerges = spec.ignoreMerges;
  config.joinWithSpaces = spec.joinWithSpaces;
  config.cleanUpSpaces = spec.cleanUpSpaces;
  config.continuingPrefix = spec.continuingPrefix;
  config.endSuffix = spec.endSuffix;
  if (spec.modelUnknown) {
    config.modelUnknown = table.indexOf(*spec.modelUnknown);
    if (!config.modelUnknown)
      return invalidFile("the unknown token's id " + std::to_string(*spec.modelUnknown) +
                         " belongs to no token");
  }
  for (auto [name, id] : {std::pair("bos", spec.bos), std::pair("eos", spec.eos),
                          std::pair("pad", spec.pad), std::pair("unk", spec.unknown)})
    if (id && !table.indexOf(*id))
      return invalidFile(std::string("the ") + name + " token's id " + std::to_string(*id) +
                         " belongs to no token");
  config.bos = spec.bos;
  config.eos = spec.eos;
  config.pad = spec.pad;
  config.unknown = spec.unknown;
  config.prefixIds = spec.prefixIds;
  config.suffixIds = spec.suffixIds;
  config.normalizers = spec.normalizers;
  config.preTokenizers = spec.preTokenizers;
  config.decoders = spec.decoders;
  LLMRT_ASSIGN_OR_RETURN(config.added, addedEntries(spec, table));

  std::string sections[blob::kSectionCount];
  sections[blob::Pipeline] = encodePipeline(config);
  bool dense = true;
  uint64_t textSize = 0;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    dense &= table.rows[i].id == static_cast<int64_t>(i);
    textSize += table.rows[i].text.size();
  }
  if (textSize > UINT32_MAX)
    return invalidFile("the vocabulary's text is larger than 4 GiB");
  for (const auto &row : table.rows) {
    if (!dense)
      put(sections[blob::Ids], static_cast<uint32_t>(row.id));
    put(sections[blob::Offsets], static_cast<uint32_t>(sections[blob::Text].size()));
    sections[blob::Text] += row.text;
  }
  put(sections[blob::Offsets], static_cast<uint32_t>(sections[blob::Text].size()));
  if (spec.kind == ModelKind::ScoredBpe)
    sections[blob::Ranks] = scoreRanks(table);
  if (spec.kind == ModelKind::Unigram)
    sections[blob::Scores] = unigramScores(spec, table);
  if (spec.kind == ModelKind::Unigram || spec.kind == ModelKind::WordPiece)
    sections[blob::Trie] = trieOf(table);
  sections[blob::Vocabulary] = vocabularyTable(table);
  LLMRT_ASSIGN_OR_RETURN(sections[blob::Merges], mergeTable(spec, table));

  blob::Header header{};
  std::memcpy(header.magic, blob::kMagic, sizeof(header.magic));
  header.tokens = static_cast<uint32_t>(table.rows.size());
  bool first = sections[blob::Scores].empty() && sections[blob::Trie].empty();
  header.sections = first ? blob::kFirstSectionCount : blob::kSectionCount;
  const size_t headerBytes =
      offsetof(blob::Header, extents) + header.sections * sizeof(blob::Extent);
  std::string out(headerBytes, '\0');
  for (uint32_t i = 0; i < header.sections; ++i) {
    out.resize((out.size() + 7) / 8 * 8);
    header.extents[i] = {out.size(), sections[i].size()};
    out += sections[i];
    std::string().swap(sections[i]);
  }
  header.size = out.size();
  std::memcpy(out.data(), &header, headerBytes);
  return out;
}

} // namespace llmrt
