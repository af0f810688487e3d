// Long runs: neither the stack nor the time may depend on what a text looks like.
#include "test/unit/text/TestFiles.h"

#include <ctime>
#include <functional>
#include <pthread.h>

using namespace llmrt;
using namespace llmrt::test;

namespace {

std::string repeat(std::string_view part, size_t bytes) {
  std::string out;
  while (out.size() < bytes)
    out += part;
  return out;
}

/// A fixed sequence of numbers below \p bound.
struct Sequence {
  uint32_t state = 1;
  uint32_t below(uint32_t bound) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % bound;
  }
};

std::string base64(size_t bytes) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  Sequence random;
  std::string out;
  for (size_t i = 0; i < bytes; ++i)
    out += kDigits[random.below(64)];
  return out;
}

std::string chinese(size_t bytes) {
  Sequence random;
  std::string out;
  while (out.size() < bytes) {
    uint32_t c = 0x4E00 + random.below(0x5000);
    out += {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 63)),
            static_cast<char>(0x80 | (c & 63))};
  }
  return out;
}

struct Case {
  const char *name;
  std::string text;
};
std::vector<Case> cases(size_t megabyte) {
  return {{"A", std::string(43000 * megabyte / 1000000, 'A')},
          {"newlines", std::string(megabyte / 5, '\n')},
          {"us", repeat("us", megabyte / 5)},
          {"spaces", std::string(megabyte, ' ')},
          {"base64", base64(megabyte)},
          {"chinese", chinese(megabyte)},
          {"combining marks", repeat("\u0301\u0323", megabyte / 5)},
          {"letters", repeat("ab", megabyte)},
          {"open tags", repeat("<|im_", megabyte)}};
}

double cpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Runs \p body on a thread with a stack of 256 KiB.
void onSmallStack(const std::function<void()> &body) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 * 1024), 0);
  pthread_t thread;
  auto start = [](void *argument) -> void * {
    (*static_cast<const std::function<void()> *>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, start, const_cast<std::function<void()> *>(&body)),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

void check(const Tokenizer &tokenizer, bool normalizes) {
  onSmallStack([&] {
    std::vector<Case> once = cases(500000), twice = cases(1000000);
    for (size_t i = 0; i < once.size(); ++i) {
      SCOPED_TRACE(once[i].name);
      double begin = cpuSeconds();
      std::vector<int32_t> ids = encode(tokenizer, once[i].text);
      double first = cpuSeconds() - begin;
      if (!normalizes) {
        EXPECT_EQ(decode(tokenizer, ids), once[i].text);
      }
      begin = cpuSeconds();
      encode(tokenizer, twice[i].text);
      double second = cpuSeconds() - begin;
      // Less than a second a megabyte, and about linear; the slack is for a busy machine, and a
      // quadratic step would need minutes.
      EXPECT_LT(first, 1.0);
      EXPECT_LT(second, 4 * first + 0.1);
    }
  });
}

TEST(LongText, byteLevel) { // case T04
  auto tokenizer = Tokenizer::fromTokenizerJson(readFile("smollm2/tokenizer.json"));
  ASSERT_TRUE(tokenizer.isOk());
  check(**tokenizer, false);
}

TEST(LongText, byteLevelWithNfc) {
  auto tokenizer = Tokenizer::fromGguf(readGguf("ggml-vocab-qwen2.gguf"));
  ASSERT_TRUE(tokenizer.isOk());
  check(**tokenizer, true);
}

TEST(LongText, sentencePiece) {
  auto tokenizer = Tokenizer::fromGguf(readGguf("ggml-vocab-llama-spm.gguf"));
  ASSERT_TRUE(tokenizer.isOk());
  check(**tokenizer, false);
}

TEST(LongText, patternThatBacktracksIsAnError) {
  BpeJson json{.vocab = R"({"a":0})"};
  json.preTokenizer = R"({"type": "Split", "pattern": {"Regex": "(?:a|a|aa)+[bc]"},
                          "behavior": "Isolated", "invert": false})";
  auto tokenizer = makeTokenizer(json.text());
  std::string text(5000, 'a');
  onSmallStack([&] {
    std::string message = failureOf(tokenizer->encode(text));
    EXPECT_NE(message.find("(?:a|a|aa)+[bc]"), std::string::npos) << message;
  });
}

TEST(LongText, tooLongIsAnError) {
  auto tokenizer = makeTokenizer(BpeJson{.vocab = R"({"a":0})"}.text());
  EXPECT_NE(failureOf(tokenizer->encode(std::string((64u << 20) + 1, 'b'))).find("67108864"),
            std::string::npos);
}

} // namespace
