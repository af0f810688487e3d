// EncodeFile TOKENIZER.json TEXT [IDS]: encodes a file three times, writes the ids a line, prints
// the best speed.
#include "runtime/text/Tokenizer.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>

using namespace llmrt;

static std::string readFile(const char *path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    std::fprintf(stderr, "%s: can't read\n", path);
  return {std::istreambuf_iterator<char>(in), {}};
}

int main(int argc, char **argv) {
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: EncodeFile TOKENIZER.json TEXT [IDS]\n");
    return 2;
  }
  auto tokenizer = Tokenizer::fromTokenizerJson(readFile(argv[1]));
  const std::string text = readFile(argv[2]);
  if (!tokenizer) {
    std::fprintf(stderr, "%s: %s\n", argv[1], tokenizer.status().message().c_str());
    return 1;
  }
  double best = 0;
  std::vector<int32_t> ids;
  for (int i = 0; i < 3; ++i) {
    const std::clock_t begin = std::clock();
    auto encoded = (*tokenizer)->encode(text);
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    if (!encoded) {
      std::fprintf(stderr, "%s: %s\n", argv[2], encoded.status().message().c_str());
      return 1;
    }
    ids = std::move(*encoded);
    best = std::max(best, static_cast<double>(text.size()) * 1e-6 / seconds);
  }
  std::printf("%.1f\n", best);
  if (argc == 4) {
    std::ofstream out(argv[3]);
    for (int32_t id : ids)
      out << id << '\n';
    out.close();
    if (!out) {
      std::fprintf(stderr, "%s: can't write\n", argv[3]);
      return 1;
    }
  }
  return 0;
}
