//===- TokenizerFuzzer.cpp - any bytes as a tokenizer ------------------------------===//
//
// The first byte says what the rest is: tokenizer.json, a SentencePiece model, tiktoken ranks, or
// the blob that a plan holds. What opens must encode and decode without harm, and its blob must
// give the same ids.
//
//===----------------------------------------------------------------------===//
#include "runtime/text/TextStream.h"

#include <cstdlib>

using namespace llmrt;

static Result<std::shared_ptr<Tokenizer>> open(uint8_t kind, std::string_view bytes) {
  switch (kind % 4) {
  case 0:
    return Tokenizer::fromSentencePiece(bytes);
  case 1:
    return Tokenizer::fromTiktoken(bytes);
  case 2:
    return Tokenizer::fromBlob({reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()});
  default: // '{' of a plain tokenizer.json is 123, which is 3 modulo 4
    return Tokenizer::fromTokenizerJson(bytes);
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2)
    return 0;
  std::string_view bytes(reinterpret_cast<const char *>(data), size);
  if (bytes[0] != '{')
    bytes.remove_prefix(1);
  Result<std::shared_ptr<Tokenizer>> made = open(data[0], bytes);
  if (!made) {
    if (made.status().message().empty())
      std::abort();
    return 0;
  }
  Result<std::string> blob = (*made)->serialize();
  if (!blob)
    std::abort();
  auto again = Tokenizer::fromBlob({reinterpret_cast<const uint8_t *>(blob->data()), blob->size()});
  if (!again)
    std::abort();
  for (std::string_view text :
       {std::string_view("Hello  world's 123\n你好 a\u0301 \ufb01 <s>"),
        bytes.substr(0, 200).find('\x80') == 0 ? std::string_view()
                                               : std::string_view("aaaaaaaa")}) {
    Result<std::vector<int32_t>> ids = (*made)->encode(text, {.addSpecial = true});
    Result<std::vector<int32_t>> same = (*again)->encode(text, {.addSpecial = true});
    if (ids.isOk() != same.isOk() || (ids && *ids != *same))
      std::abort();
    if (!ids)
      continue;
    (void)(*made)->decode(*ids, {.skipSpecial = false});
    TextStream stream(*made, {.startOfText = true, .stops = {"b"}});
    for (int32_t id : *ids)
      (void)stream.push(id);
    (void)stream.finish();
  }
  return 0;
}
