#include "runtime/decode/grammar/GrammarBuilder.h"

#include <algorithm>

namespace llmrt {
namespace {

/// Nodes of a grammar at most: 40 bytes each.
constexpr size_t maxNodes = 400000;
/// Expressions in expressions; parsers limit their own nesting below this.
constexpr int maxDepth = 2000;
constexpr uint32_t lastChar = 0x10ffff;

int encode(uint32_t c, uint8_t *out) {
  if (c < 0x80)
    return out[0] = uint8_t(c), 1;
  if (c < 0x800)
    return out[0] = uint8_t(0xc0 | c >> 6), out[1] = uint8_t(0x80 | (c & 63)), 2;
  if (c < 0x10000)
    return out[0] = uint8_t(0xe0 | c >> 12), out[1] = uint8_t(0x80 | (c >> 6 & 63)),
           out[2] = uint8_t(0x80 | (c & 63)), 3;
  return out[0] = uint8_t(0xf0 | c >> 18), out[1] = uint8_t(0x80 | (c >> 12 & 63)),
         out[2] = uint8_t(0x80 | (c >> 6 & 63)), out[3] = uint8_t(0x80 | (c & 63)), 4;
}

} // namespace

std::vector<CharRange> normalized(std::vector<CharRange> ranges) {
  std::vector<CharRange> parts;
  for (CharRange r : ranges) { // without surrogates
    r.second = std::min(r.second, lastChar);
    if (r.first <= r.second && r.first < 0xd800)
      parts.push_back({r.first, std::min(r.second, 0xd7ffu)});
    if (r.second > 0xdfff && r.first <= r.second)
      parts.push_back({std::max(r.first, 0xe000u), r.second});
  }
  std::sort(parts.begin(), parts.end());
  std::vector<CharRange> merged;
  for (const CharRange &r : parts)
    if (!merged.empty() && r.first <= merged.back().second + 1)
      merged.back().second = std::max(merged.back().second, r.second);
    else
      merged.push_back(r);
  return merged;
}

std::vector<CharRange> complement(const std::vector<CharRange> &ranges) {
  std::vector<CharRange> rest;
  uint32_t next = 0;
  for (const CharRange &r : normalized(ranges)) {
    if (r.first > next)
      rest.push_back({next, r.first - 1});
    next = r.second + 1;
  }
  if (next <= lastChar)
    rest.push_back({next, lastChar});
  return normalized(rest);
}

GrammarBuilder::GrammarBuilder() = default;

GrammarBuilder::Expr GrammarBuilder::add(Expression e) {
  if (expressions_.size() >= maxNodes) {
    tooLarge_ = true;
    return 0;
  }
  expressions_.push_back(std::move(e));
  return static_cast<Expr>(expressions_.size() - 1);
}

GrammarBuilder::Expr GrammarBuilder::literal(std::string_view text) {
  Expression e{Kind::Literal, std::string(text), {}, {}};
  return add(std::move(e));
}
GrammarBuilder::Expr GrammarBuilder::characters(std::vector<CharRange> ranges) {
  Expression e{Kind::Characters, {}, normalized(std::move(ranges)), {}};
  return add(std::move(e));
}
GrammarBuilder::Expr GrammarBuilder::sequence(std::vector<Expr> parts) {
  if (parts.size() == 1)
    return parts[0];
  Expression e{Kind::Sequence, {}, {}, std::move(parts)};
  return add(std::move(e));
}
GrammarBuilder::Expr GrammarBuilder::either(std::vector<Expr> parts) {
  if (parts.size() == 1)
    return parts[0];
  Expression e{Kind::Either, {}, {}, std::move(parts)};
  return add(std::move(e));
}
GrammarBuilder::Expr GrammarBuilder::repeat(Expr part, int64_t least, int64_t most) {
  Expression e{Kind::Repeat, {}, {}, {part}, least, most};
  return add(std::move(e));
}
GrammarBuilder::Expr GrammarBuilder::call(uint32_t rule) {
  Expression e{Kind::Call, {}, {}, {}, 0, 0, rule};
  return add(std::move(e));
}

uint32_t GrammarBuilder::addRule(std::string name) {
  rules_.push_back({std::move(name)});
  return static_cast<uint32_t>(rules_.size() - 1);
}

uint32_t GrammarBuilder::newNode() {
  if (out_.size() >= maxNodes) {
    tooLarge_ = true;
    return 0;
  }
  out_.emplace_back();
  ends_.push_back(false);
  return static_cast<uint32_t>(out_.size() - 1);
}

void GrammarBuilder::edge(uint32_t from, Grammar::Edge edge) {
  if (!tooLarge_)
    out_[from].push_back(edge);
}

void GrammarBuilder::emptyEdge(uint32_t from, uint32_t to) {
  edge(from, {Grammar::EdgeKind::Empty, 0, 0, 0, to});
}

/// All byte strings of \p n bytes between low and high: the first byte alone decides where the
/// others are free, so that at most three branches are needed at each byte.
void GrammarBuilder::emitByteRange(uint32_t from, uint32_t to, const uint8_t *low,
                                   const uint8_t *high, int n) {
  static const uint8_t least[] = {0x80, 0x80, 0x80}, most[] = {0xbf, 0xbf, 0xbf};
  auto branch = [&](uint8_t a, uint8_t b, const uint8_t *lowRest, const uint8_t *highRest) {
    if (n == 1)
      return edge(from, {Grammar::EdgeKind::Bytes, a, b, 0, to});
    uint32_t next = newNode();
    edge(from, {Grammar::EdgeKind::Bytes, a, b, 0, next});
    emitByteRange(next, to, lowRest, highRest, n - 1);
  };
  if (n == 1)
    return branch(low[0], high[0], nullptr, nullptr);
  if (low[0] == high[0])
    return branch(low[0], low[0], low + 1, high + 1);
  uint8_t first = low[0], last = high[0];
  if (!std::equal(low + 1, low + n, least)) {
    branch(first, first, low + 1, most);
    ++first;
  }
  bool cutLast = !std::equal(high + 1, high + n, most);
  if (cutLast)
    --last;
  if (first <= last)
    branch(first, last, least, most);
  if (cutLast)
    branch(high[0], high[0], least, high + 1);
}

void GrammarBuilder::emitCharacters(const std::vector<CharRange> &ranges, uint32_t from,
                                    uint32_t to) {
  constexpr uint32_t lengthEnds[] = {0x7f, 0x7ff, 0xffff, lastChar};
  for (CharRange r : ranges)
    for (uint32_t end : lengthEnds) {
      if (r.first > end || r.first > r.second)
        continue;
      uint8_t low[4], high[4];
      int n = encode(r.first, low);
      encode(std::min(r.second, end), high);
      emitByteRange(from, to, low, high, n);
      r.first = end + 1;
    }
}

uint32_t GrammarBuilder::emit(Expr index, uint32_t from, int depth) {
  if (depth > maxDepth)
    tooLarge_ = true;
  if (tooLarge_)
    return from;
  const Expression &e = expressions_[index];
  switch (e.kind) {
  case Kind::Literal:
    for (char c : e.text) {
      uint32_t next = newNode();
      edge(from, {Grammar::EdgeKind::Bytes, uint8_t(c), uint8_t(c), 0, next});
      from = next;
    }
    return from;
  case Kind::Characters: {
    uint32_t to = newNode();
    emitCharacters(e.ranges, from, to);
    return to;
  }
  case Kind::Sequence:
    for (Expr part : e.parts)
      from = emit(part, from, depth + 1);
    return from;
  case Kind::Either: {
    uint32_t to = newNode();
    for (Expr part : e.parts) {
      uint32_t start = newNode();
      emptyEdge(from, start);
      emptyEdge(emit(part, start, depth + 1), to);
    }
    return to;
  }
  case Kind::Repeat: {
    for (int64_t i = 0; i < e.least && !tooLarge_; ++i)
      from = emit(e.parts[0], from, depth + 1);
    uint32_t to = newNode();
    if (e.most == unlimited) {
      uint32_t loop = newNode();
      emptyEdge(from, loop);
      emptyEdge(emit(e.parts[0], loop, depth + 1), loop);
      emptyEdge(loop, to);
      return to;
    }
    for (int64_t i = e.least; i < e.most && !tooLarge_; ++i) {
      emptyEdge(from, to);
      // A node of its own: a loop inside the part must not lead back before it.
      uint32_t start = newNode();
      emptyEdge(from, start);
      from = emit(e.parts[0], start, depth + 1);
    }
    emptyEdge(from, to);
    return to;
  }
  case Kind::Call: {
    uint32_t to = newNode();
    edge(from, {Grammar::EdgeKind::Call, 0, 0, e.rule, to});
    return to;
  }
  }
  return from;
}

Status GrammarBuilder::checkLeftRecursion() const {
  // Which rules can be empty, then which a rule can call before it reads a byte.
  size_t count = rules_.size();
  std::vector<bool> nullable(count);
  std::vector<std::vector<uint32_t>> first(count);
  std::vector<uint32_t> seenIn(out_.size());
  uint32_t round = 0;
  auto explore = [&](uint32_t rule, bool &canEnd, std::vector<uint32_t> &calls) {
    std::vector<uint32_t> work;
    ++round;
    auto visit = [&](uint32_t n) {
      if (seenIn[n] != round)
        seenIn[n] = round, work.push_back(n);
    };
    visit(starts_[rule]);
    while (!work.empty()) {
      uint32_t n = work.back();
      work.pop_back();
      canEnd = canEnd || ends_[n];
      for (const Grammar::Edge &e : out_[n]) {
        if (e.kind == Grammar::EdgeKind::Empty)
          visit(e.target);
        if (e.kind != Grammar::EdgeKind::Call)
          continue;
        calls.push_back(e.rule);
        if (nullable[e.rule])
          visit(e.target);
      }
    }
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t rule = 0; rule < count; ++rule) {
      bool canEnd = false;
      first[rule].clear();
      explore(rule, canEnd, first[rule]);
      if (canEnd && !nullable[rule])
        nullable[rule] = changed = true;
    }
  }
  // A cycle among first calls, by depth-first search without recursion.
  std::vector<uint8_t> state(count); // 0 new, 1 on the path, 2 done
  for (uint32_t begin = 0; begin < count; ++begin) {
    std::vector<std::pair<uint32_t, size_t>> path;
    if (state[begin] == 0)
      path.push_back({begin, 0}), state[begin] = 1;
    while (!path.empty()) {
      auto &[rule, next] = path.back();
      if (next == first[rule].size()) {
        state[rule] = 2;
        path.pop_back();
        continue;
      }
      uint32_t called = first[rule][next++];
      if (state[called] == 1)
        return invalidArgument("the rule '" + rules_[called].name +
                               "' calls itself before it reads anything (left recursion); put what "
                               "it reads first");
      if (state[called] == 0)
        state[called] = 1, path.push_back({called, 0});
    }
  }
  return Status::ok();
}

void GrammarBuilder::markTails(Grammar &grammar) const {
  for (uint32_t n = 0; n < out_.size(); ++n) {
    // Along single empty edges, which is how sequences and choices end.
    uint32_t at = n;
    for (int hops = 0; hops < 64 && !ends_[at] && out_[at].size() == 1 &&
                       out_[at][0].kind == Grammar::EdgeKind::Empty;
         ++hops)
      at = out_[at][0].target;
    grammar.nodes_[n].onlyEnds = ends_[at] && out_[at].empty();
  }
}

Result<std::shared_ptr<const Grammar>> GrammarBuilder::build() {
  for (uint32_t rule = 0; rule < rules_.size(); ++rule)
    starts_.push_back(newNode());
  for (uint32_t rule = 0; rule < rules_.size() && !tooLarge_; ++rule) {
    if (!isDefined(rule))
      return invalidArgument("the rule '" + rules_[rule].name + "' is used and not defined");
    uint32_t end = newNode();
    emptyEdge(emit(rules_[rule].body, starts_[rule], 0), end);
    ends_[end] = true;
  }
  if (tooLarge_)
    return resourceExhausted("it is too large: more than " + std::to_string(maxNodes) +
                             " states; use smaller repetitions or fewer choices");
  LLMRT_RETURN_IF_ERROR(checkLeftRecursion());
  auto grammar = std::make_shared<Grammar>();
  grammar->nodes_.resize(out_.size());
  for (uint32_t n = 0; n < out_.size(); ++n) {
    grammar->nodes_[n] = {static_cast<uint32_t>(grammar->edges_.size()),
                          static_cast<uint32_t>(out_[n].size()), ends_[n], false};
    grammar->edges_.insert(grammar->edges_.end(), out_[n].begin(), out_[n].end());
  }
  grammar->edges_.push_back({}); // so that the address of a last node's edges is one
  markTails(*grammar);
  grammar->starts_ = starts_;
  return std::shared_ptr<const Grammar>(std::move(grammar));
}

} // namespace llmrt
