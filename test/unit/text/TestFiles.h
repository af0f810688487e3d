//===- TestFiles.h - reads the vocabularies that tests use --------------------===//
#ifndef LLMC_TEST_UNIT_TEXT_TESTFILES_H
#define LLMC_TEST_UNIT_TEXT_TESTFILES_H

#include "runtime/text/GgufTokenizer.h"
#include "runtime/text/Json.h"
#include "runtime/text/Tokenizer.h"

#include <gtest/gtest.h>

namespace llmrt::test {

/// The text of a file under the unpacked test data; fails the test if it can't be read.
std::string readFile(const std::string &name);

/// The tokenizer metadata of a GGUF file under the test data. For well-formed files only: the
/// reader of models is not a part of the runtime.
GgufTokenizerData readGguf(const std::string &name);

/// The tokenizer made from \p json; a failure fails the test.
std::shared_ptr<Tokenizer> makeTokenizer(std::string_view json, std::string_view config = {});

/// The text of a tokenizer.json with a BPE model; the members are JSON.
struct BpeJson {
  std::string vocab = "{}", merges = "[]",
              model = ""; ///< model: further members, each with a comma
  std::string added = "[]", normalizer = "null", preTokenizer = "null", postProcessor = "null",
              decoder = "null";
  std::string text() const;
};

/// The message of the failure that \p result must be.
template <typename T> std::string failureOf(const Result<T> &result) {
  EXPECT_FALSE(result.isOk());
  return result.status().message();
}

/// The ids of a JSON array.
std::vector<int32_t> idsOf(JsonValue array);

/// encode() without the ids put around.
std::vector<int32_t> encode(const Tokenizer &tokenizer, std::string_view text,
                            EncodeOptions options = {.parseSpecial = true, .addSpecial = false});
std::string decode(const Tokenizer &tokenizer, const std::vector<int32_t> &ids,
                   DecodeOptions options = {.skipSpecial = false});

} // namespace llmrt::test

#endif // LLMC_TEST_UNIT_TEXT_TESTFILES_H
