#include "runtime/decode/grammar/IntegerRange.h"

#include <algorithm>
#include <string>

namespace llmrt {
namespace {

using Expr = GrammarBuilder::Expr;

/// Digit strings of one length from \p low to \p high: the first digit decides whether the others
/// are bounded by low's, by high's, or free.
Expr sameLength(GrammarBuilder &b, const std::string &low, const std::string &high) {
  if (low == high)
    return b.literal(low);
  auto range = [&](char from, char to) { return b.characters({{uint32_t(from), uint32_t(to)}}); };
  size_t rest = low.size() - 1;
  if (rest == 0)
    return range(low[0], high[0]);
  std::string zeros(rest, '0'), nines(rest, '9');
  if (low[0] == high[0])
    return b.sequence({b.literal(low.substr(0, 1)), sameLength(b, low.substr(1), high.substr(1))});
  std::vector<Expr> parts;
  char from = low[0], to = high[0];
  if (low.substr(1) != zeros) {
    parts.push_back(b.sequence({range(from, from), sameLength(b, low.substr(1), nines)}));
    ++from;
  }
  if (high.substr(1) != nines) {
    parts.push_back(b.sequence({range(to, to), sameLength(b, zeros, high.substr(1))}));
    --to;
  }
  if (from <= to)
    parts.push_back(
        b.sequence({range(from, to), b.repeat(range('0', '9'), int64_t(rest), int64_t(rest))}));
  return b.either(std::move(parts));
}

/// 0 <= low <= high.
void natural(GrammarBuilder &b, int64_t low, int64_t high, const char *sign,
             std::vector<Expr> &parts) {
  for (int64_t start = 0, end = 9; start <= high; start = end + 1, end = end * 10 + 9) {
    int64_t from = std::max(low, start), to = std::min(high, end);
    if (from <= to)
      parts.push_back(
          b.sequence({b.literal(sign), sameLength(b, std::to_string(from), std::to_string(to))}));
  }
}

} // namespace

GrammarBuilder::Expr integerRange(GrammarBuilder &b, int64_t low, int64_t high) {
  std::vector<Expr> parts;
  if (low < 0)
    natural(b, std::max<int64_t>(1, -std::min<int64_t>(high, -1)), -low, "-", parts);
  if (high >= 0)
    natural(b, std::max<int64_t>(low, 0), high, "", parts);
  return b.either(std::move(parts));
}

} // namespace llmrt
