//===- Grammar.h - which texts an answer may be -----------------------------===//
//
// JSON schema, regular expression and GBNF all become one thing: rules over bytes. A rule is a
// small automaton (Node); beside bytes and empty edges it has calls of other rules, so recursion is
// possible and regular parts stay regular. Characters are UTF-8, written out as byte ranges.
//
// A grammar is checked when it is made: every rule is defined, none is left-recursive (such a rule
// would call itself for ever before it reads a byte), and it stays below a size.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_DECODE_GRAMMAR_GRAMMAR_H
#define LLMRT_DECODE_GRAMMAR_GRAMMAR_H

#include "runtime/support/Status.h"

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace llmrt {

class Grammar {
public:
  /// A JSON text that \p schema (draft 2020-12, see README.md for what is supported) accepts. An
  /// error names the place in the schema and the keyword.
  static Result<std::shared_ptr<const Grammar>> fromJsonSchema(std::string_view schema);
  /// Any JSON object: `response_format: json_object`.
  static Result<std::shared_ptr<const Grammar>> anyJsonObject();
  /// A text that \p regex matches as a whole. An error names the position.
  static Result<std::shared_ptr<const Grammar>> fromRegex(std::string_view regex);
  /// llama.cpp's grammar format; the text is what the rule `root` says. An error names the line.
  static Result<std::shared_ptr<const Grammar>> fromGbnf(std::string_view text);

  enum class EdgeKind : uint8_t { Bytes, Empty, Call };
  struct Edge {
    EdgeKind kind;
    uint8_t low, high; ///< of Bytes
    uint32_t rule;     ///< of Call
    uint32_t target;   ///< where it goes on, for a call after the rule's end
  };
  struct Node {
    uint32_t firstEdge = 0, edgeCount = 0;
    bool ends = false; ///< of its rule
    bool onlyEnds =
        false; ///< nothing but the rule's end can follow: a call to here needs no return
  };

  uint32_t root() const { return starts_[0]; }
  uint32_t start(uint32_t rule) const { return starts_[rule]; }
  const Node &node(uint32_t n) const { return nodes_[n]; }
  const Edge *edges(const Node &n) const { return &edges_[n.firstEdge]; }
  size_t size() const { return nodes_.size(); }

private:
  friend class GrammarBuilder;
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  std::vector<uint32_t> starts_; ///< of the rules; rule 0 is the root
};

} // namespace llmrt

#endif // LLMRT_DECODE_GRAMMAR_GRAMMAR_H
