#include "runtime/text/SentencePieceModel.h"

#include "runtime/text/CharsMap.h"
#include "runtime/text/TokenDecoder.h"
#include "runtime/text/TokenizerJson.h"
#include "runtime/text/Utf8.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace llmrt {

namespace {

Status damaged(const std::string &why) {
  return invalidFile("it is no SentencePiece model: " + why);
}

/// The fields of one protobuf message, in order.
class Message {
public:
  explicit Message(std::string_view bytes) : bytes(bytes) {}
  uint64_t field = 0;
  uint64_t number = 0;   ///< of a varint or fixed field
  std::string_view data; ///< of a length-delimited field
  bool isData = false;

  /// Moves to the next field; false at the end or if the bytes make no sense (see failed).
  bool next() {
    uint64_t key = 0;
    if (at == bytes.size() || !varint(key))
      return false;
    field = key >> 3;
    isData = (key & 7) == 2;
    data = {};
    switch (key & 7) {
    case 0:
      return varint(number);
    case 1:
      return fixed(8);
    case 5:
      return fixed(4);
    case 2: {
      uint64_t size = 0;
      if (!varint(size))
        return false;
      if (size > bytes.size() - at)
        return fail();
      data = bytes.substr(at, size);
      at += size;
      return true;
    }
    default:
      return fail();
    }
  }
  bool failed = false;

private:
  bool fail() {
    failed = true;
    return false;
  }
  bool varint(uint64_t &value) {
    value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at == bytes.size())
        return fail();
      auto byte = static_cast<uint8_t>(bytes[at++]);
      value |= uint64_t(byte & 127) << shift;
      if (byte < 128)
        return true;
    }
    return fail();
  }
  bool fixed(size_t size) {
    if (bytes.size() - at < size)
      return fail();
    number = 0;
    std::memcpy(&number, bytes.data() + at, size);
    at += size;
    return true;
  }
  std::string_view bytes;
  size_t at = 0;
};

enum class PieceType {
  Normal = 1,
  Unknown = 2,
  Control = 3,
  UserDefined = 4,
  Unused = 5,
  Byte = 6
};
enum class ModelType { Unigram = 1, Bpe = 2 };

struct Model {
  TokenizerSpec spec;
  std::vector<PieceType> types;
  SentencePieceRules rules;
  uint64_t type = static_cast<uint64_t>(ModelType::Unigram);
  bool byteFallback = false;
  int64_t bos = 1, eos = 2, pad = -1;
};

Status readPiece(std::string_view bytes, Model &model) {
  SpecToken token;
  token.id = static_cast<int32_t>(model.types.size());
  uint64_t type = static_cast<uint64_t>(PieceType::Normal);
  Message message(bytes);
  while (message.next()) {
    if (message.field == 1 && message.isData)
      token.text = message.data;
    else if (message.field == 2 && !message.isData)
      token.score = std::bit_cast<float>(static_cast<uint32_t>(message.number));
    else if (message.field == 3 && !message.isData)
      type = message.number;
  }
  std::string place = "piece " + std::to_string(token.id);
  if (message.failed)
    return damaged(place + " is cut off");
  if (firstInvalidUtf8(token.text))
    return damaged(place + " is not UTF-8");
  if (!std::isfinite(token.score))
    return damaged(place + " has a score that is no finite number");
  if (type < 1 || type > 6)
    return damaged(place + " has the type " + std::to_string(type) + "; known: 1 to 6");
  if (token.id == kMaxTokenId)
    return damaged("it has too many pieces");
  auto kind = static_cast<PieceType>(type);
  token.searchable =
      !token.text.empty() && (kind == PieceType::Normal || kind == PieceType::UserDefined);
  model.types.push_back(kind);
  model.spec.vocabulary.push_back(std::move(token));
  return Status::ok();
}

Status readTrainer(std::string_view bytes, Model &model) {
  Message message(bytes);
  while (message.next()) {
    if (message.isData)
      continue;
    auto id = static_cast<int64_t>(static_cast<int32_t>(message.number));
    switch (message.field) {
    case 3:
      model.type = message.number;
      break;
    case 24:
      model.rules.markAsSuffix = message.number != 0;
      break;
    case 35:
      model.byteFallback = message.number != 0;
      break;
    case 41:
      model.bos = id;
      break;
    case 42:
      model.eos = id;
      break;
    case 43:
      model.pad = id;
      break;
    default:
      break;
    }
  }
  return message.failed ? damaged("trainer_spec is cut off") : Status::ok();
}

Status readNormalizerSpec(std::string_view bytes, Model &model) {
  Message message(bytes);
  while (message.next()) {
    bool flag = message.number != 0;
    if (message.field == 2 && message.isData)
      model.rules.charsMap = message.data;
    else if (message.field == 3 && !message.isData)
      model.rules.addDummyPrefix = flag;
    else if (message.field == 4 && !message.isData)
      model.rules.removeExtraSpaces = flag;
    else if (message.field == 5 && !message.isData)
      model.rules.escapeSpaces = flag;
  }
  return message.failed ? damaged("normalizer_spec is cut off") : Status::ok();
}

Result<Model> readModelProto(std::string_view bytes) {
  Model model;
  Message message(bytes);
  while (message.next()) {
    if (!message.isData)
      continue;
    if (message.field == 1)
      LLMRT_RETURN_IF_ERROR(readPiece(message.data, model));
    else if (message.field == 2)
      LLMRT_RETURN_IF_ERROR(readTrainer(message.data, model));
    else if (message.field == 3)
      LLMRT_RETURN_IF_ERROR(readNormalizerSpec(message.data, model));
  }
  if (message.failed)
    return damaged("its bytes are no protobuf message");
  if (model.types.empty())
    return damaged("it has no pieces");
  return model;
}

/// Control and user-defined pieces are found in the text, byte pieces stand for bytes.
Status addPieceKinds(Model &model) {
  TokenizerSpec &spec = model.spec;
  if (model.byteFallback)
    spec.byteTokens.assign(256, -1);
  for (size_t i = 0; i < model.types.size(); ++i) {
    const std::string &text = spec.vocabulary[i].text;
    PieceType type = model.types[i];
    if (type == PieceType::Byte && model.byteFallback) {
      int byte = byteOfToken(text);
      if (byte < 0)
        return damaged("piece " + std::to_string(i) + " '" + text +
                       "' has the type BYTE, but is not written <0x00> to <0xFF>");
      spec.byteTokens[byte] = static_cast<int32_t>(i);
    }
    if (type == PieceType::Unknown && !spec.modelUnknown)
      spec.modelUnknown = static_cast<int32_t>(i);
    bool control = type == PieceType::Control || type == PieceType::Unknown;
    if ((!control && type != PieceType::UserDefined) || text.empty())
      continue;
    AddedToken token;
    token.id = static_cast<int32_t>(i);
    token.content = token.pattern = text;
    token.special = control;
    token.normalized = !control;
    spec.added.push_back(std::move(token));
  }
  return Status::ok();
}

} // namespace

void addSentencePieceSteps(SentencePieceRules rules, TokenizerSpec &spec) {
  PipelineStep step;
  step.kind = StepKind::SentencePiece;
  step.content = std::move(rules.charsMap);
  step.left = rules.addDummyPrefix;
  step.right = rules.removeExtraSpaces;
  step.split = rules.escapeSpaces;
  step.invert = rules.markAsSuffix;
  spec.normalizers.push_back(std::move(step));
  auto decode = [&](StepKind kind) -> PipelineStep & {
    spec.decoders.emplace_back().kind = kind;
    return spec.decoders.back();
  };
  if (spec.modelUnknown) {
    // SentencePiece's way to show a character that it does not know.
    for (const SpecToken &token : spec.vocabulary) {
      if (token.id != *spec.modelUnknown || token.text.empty())
        continue;
      PipelineStep &unknown = decode(StepKind::Replace);
      unknown.pattern = token.text;
      unknown.content = " \u2047 ";
    }
  }
  decode(StepKind::ByteFallback);
  decode(StepKind::Fuse);
  const std::string mark = rules.escapeSpaces ? "\u2581" : " ";
  if (rules.addDummyPrefix || rules.removeExtraSpaces) {
    PipelineStep &strip = decode(StepKind::StripChars);
    strip.content = mark;
    strip.start = 1;
  }
  if (rules.escapeSpaces) {
    PipelineStep &marks = decode(StepKind::Replace);
    marks.pattern = mark;
    marks.content = " ";
  }
}

Result<TokenizerSpec> specFromSentencePiece(std::string_view bytes,
                                            std::string_view tokenizerConfigJson,
                                            std::string_view specialTokensMapJson) {
  auto read = [&]() -> Result<TokenizerSpec> {
    LLMRT_ASSIGN_OR_RETURN(Model model, readModelProto(bytes));
    TokenizerSpec &spec = model.spec;
    if (model.type == static_cast<uint64_t>(ModelType::Unigram))
      spec.kind = ModelKind::Unigram;
    else if (model.type == static_cast<uint64_t>(ModelType::Bpe))
      spec.kind = ModelKind::ScoredBpe;
    else
      return unsupported("model type " + std::to_string(model.type) +
                         " is not supported; supported: 1 (unigram), 2 (bpe)");
    spec.fuseUnknown = true;
    LLMRT_RETURN_IF_ERROR(addPieceKinds(model));
    auto named = [&](int64_t id) {
      return id >= 0 && id < static_cast<int64_t>(model.types.size())
                 ? std::optional(static_cast<int32_t>(id))
                 : std::nullopt;
    };
    spec.bos = named(model.bos);
    spec.eos = named(model.eos);
    spec.pad = named(model.pad);
    spec.unknown = spec.modelUnknown;
    addSentencePieceSteps(std::move(model.rules), spec);
    return std::move(spec);
  };
  Result<TokenizerSpec> spec = read();
  if (!spec)
    return spec.status().withContext("tokenizer.model");
  LLMRT_RETURN_IF_ERROR(
      readSentencePieceCompanions(tokenizerConfigJson, specialTokensMapJson, *spec));
  return spec;
}

} // namespace llmrt
