//===- DecoderNames.h - the tensors of a decoder and what files call them --------===//
#ifndef LLMC_IMPORT_DECODER_DECODERNAMES_H
#define LLMC_IMPORT_DECODER_DECODERNAMES_H

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>

namespace llmc {

/// The tensors of a decoder; which of them a model has follows from its DecoderConfig.
enum class DecoderPart {
  Embedding,
  PositionEmbedding,
  EmbeddingNorm,
  FinalNorm,
  Head,
  // of each layer
  AttentionNorm, ///< before attention
  Query,
  Key,
  Value,
  QueryKeyValue, ///< one matrix for the three
  QueryNorm,
  KeyNorm,
  Output,
  AttentionPostNorm, ///< of what attention gives
  MlpNorm,           ///< before the MLP
  Gate,
  Up,
  GateUp, ///< one matrix for the two
  Down,
  MlpPostNorm, ///< of what the MLP gives
  // of latent attention
  QueryDown,
  QueryDownNorm,
  QueryUp,
  LatentDown, ///< [rank + rope, hidden]
  LatentNorm,
  LatentUp, ///< [heads * (nope + value), rank], or in its place:
  KeyUp,    ///< [heads, rank, nope], whole name
  ValueUp,  ///< [heads, value, rank], whole name
  Sinks,    ///< whole name
  // of a mixture
  Router,
  RouterCorrection, ///< whole name
  SharedGate,
  SharedUp,
  SharedDown,
  SharedWeight, ///< of the shared expert's gate
  // whole names, '@' for an expert's number where it has one; see ExpertStorage
  ExpertGate,
  ExpertUp,
  ExpertDown,
  ExpertGateBias,
  ExpertUpBias,
  ExpertDownBias,
};

/// How a family's files name the parts: without ".weight" or ".bias" where a part doesn't say
/// otherwise, '#' for the layer's number.
class DecoderNames {
public:
  DecoderNames() = default;
  DecoderNames(std::initializer_list<std::pair<const DecoderPart, std::string>> patterns)
      : patterns(patterns) {}

  /// The same with some parts named otherwise, or named in addition.
  DecoderNames with(std::initializer_list<std::pair<const DecoderPart, std::string>> more) const {
    DecoderNames result = *this;
    for (const auto &[part, pattern] : more)
      result.patterns[part] = pattern;
    return result;
  }
  /// \p prefix removed where a name begins with it.
  DecoderNames withoutPrefix(const std::string &prefix) const {
    DecoderNames result = *this;
    for (auto &[part, pattern] : result.patterns)
      if (pattern.starts_with(prefix))
        pattern.erase(0, prefix.size());
    return result;
  }
  /// The name of a part of layer \p layer; empty where the family has no such part.
  std::string of(DecoderPart part, uint64_t layer, uint64_t expert = 0) const {
    auto found = patterns.find(part);
    if (found == patterns.end())
      return {};
    std::string name = found->second;
    for (auto [mark, number] : {std::pair('#', layer), std::pair('@', expert)})
      if (size_t at = name.find(mark); at != std::string::npos)
        name.replace(at, 1, std::to_string(number));
    return name;
  }

private:
  std::map<DecoderPart, std::string> patterns;
};

} // namespace llmc

#endif // LLMC_IMPORT_DECODER_DECODERNAMES_H
