//===- GrammarBuilder.h - from expressions to the automata of a grammar -----===//
#ifndef LLMRT_DECODE_GRAMMAR_GRAMMARBUILDER_H
#define LLMRT_DECODE_GRAMMAR_GRAMMARBUILDER_H

#include "runtime/decode/grammar/Grammar.h"

#include <string>
#include <utility>
#include <vector>

namespace llmrt {

/// Code points, both ends included.
using CharRange = std::pair<uint32_t, uint32_t>;

/// Sorted, without overlaps; surrogates, which UTF-8 can't write, left out.
std::vector<CharRange> normalized(std::vector<CharRange> ranges);
std::vector<CharRange> complement(const std::vector<CharRange> &ranges);

/// Makes expressions, which are numbers, and rules of them. Expressions may be used several times.
class GrammarBuilder {
public:
  using Expr = uint32_t;
  static constexpr int64_t unlimited = -1;

  GrammarBuilder();
  Expr empty() { return sequence({}); }
  /// The bytes of \p text.
  Expr literal(std::string_view text);
  /// One character of \p ranges; of none, nothing matches.
  Expr characters(std::vector<CharRange> ranges);
  Expr sequence(std::vector<Expr> parts);
  Expr either(std::vector<Expr> parts);
  Expr repeat(Expr part, int64_t least, int64_t most = unlimited);
  Expr optional(Expr part) { return repeat(part, 0, 1); }
  Expr call(uint32_t rule);

  /// A rule to be defined; \p name is for messages. The first one made is the root.
  uint32_t addRule(std::string name);
  void define(uint32_t rule, Expr body) { rules_[rule].body = body; }
  bool isDefined(uint32_t rule) const { return rules_[rule].body != none; }
  const std::string &ruleName(uint32_t rule) const { return rules_[rule].name; }

  /// InvalidArgument: a rule that is undefined or left-recursive; ResourceExhausted: too large.
  Result<std::shared_ptr<const Grammar>> build();

private:
  static constexpr Expr none = UINT32_MAX;
  enum class Kind : uint8_t { Literal, Characters, Sequence, Either, Repeat, Call };
  struct Expression {
    Kind kind;
    std::string text;
    std::vector<CharRange> ranges;
    std::vector<Expr> parts;
    int64_t least = 0, most = 0;
    uint32_t rule = 0;
  };
  struct Rule {
    std::string name;
    Expr body = none;
  };
  Expr add(Expression e);
  uint32_t newNode();
  void edge(uint32_t from, Grammar::Edge edge);
  void emptyEdge(uint32_t from, uint32_t to);
  /// Adds what \p e reads after node \p from; returns the node behind it.
  uint32_t emit(Expr e, uint32_t from, int depth);
  void emitCharacters(const std::vector<CharRange> &ranges, uint32_t from, uint32_t to);
  void emitByteRange(uint32_t from, uint32_t to, const uint8_t *low, const uint8_t *high, int n);
  Status checkLeftRecursion() const;
  void markTails(Grammar &grammar) const;

  std::vector<Expression> expressions_;
  std::vector<Rule> rules_;
  std::vector<std::vector<Grammar::Edge>> out_; ///< edges by node
  std::vector<bool> ends_;
  std::vector<uint32_t> starts_;
  bool tooLarge_ = false;
};

} // namespace llmrt

#endif // LLMRT_DECODE_GRAMMAR_GRAMMARBUILDER_H
