//===- Parser.h - tokens to a Program --------------------------------------------===//
//
// Recursive descent over Jinja's grammar. What a template nests (brackets, tags, `not`, `else`)
// is counted, so that no input can exhaust the stack.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEXT_CHAT_JINJA_PARSER_H
#define LLMRT_TEXT_CHAT_JINJA_PARSER_H

#include "runtime/text/chat/jinja/Ast.h"
#include "runtime/text/chat/jinja/Lexer.h"

#include <initializer_list>

namespace llmrt::jinja {

class Parser {
public:
  Parser(Program &program, std::vector<Token> tokens);
  /// Fills the program's body. Throws TemplateError.
  void run();

private:
  // Parser.cpp: tokens, nodes, names
  const Token &current() const { return tokens_[pos_]; }
  const Token &look() const { return tokens_[std::min(pos_ + 1, tokens_.size() - 1)]; }
  void next() {
    if (pos_ + 1 < tokens_.size())
      ++pos_;
  }
  bool skipOperator(std::string_view op);
  bool skipName(std::string_view name);
  void expectOperator(std::string_view op);
  std::string expectName(const char *what = "a name");
  void expectBlockEnd();
  [[noreturn]] void fail(const std::string &message, int line = 0) const;
  [[noreturn]] void failUnexpected(const char *wanted) const;
  template <typename T, typename... A> T *make(A &&...args) {
    auto node = std::make_unique<T>(std::forward<A>(args)...);
    T *raw = node.get();
    program_.nodes.push_back(std::move(node));
    return raw;
  }
  NameId intern(const std::string &name);

  /// Counts one level of nesting while it lives.
  struct Nesting {
    explicit Nesting(Parser &p);
    ~Nesting() { --parser.depth_; }
    Parser &parser;
  };

  // ParseExpression.cpp
  Expr *parseExpression(bool withConditional = true);
  Expr *parseConditional();
  Expr *parseOr();
  Expr *parseAnd();
  Expr *parseNot();
  Expr *parseCompare();
  Expr *parseSum();
  Expr *parseConcat();
  Expr *parseProduct();
  Expr *parsePower();
  Expr *parseUnary(bool withFilter = true);
  Expr *parsePrimary();
  Expr *parsePostfix(Expr *node);
  Expr *parseFilterExpr(Expr *node);
  Expr *parseSubscript(Expr *node);
  Expr *parseListLiteral();
  Expr *parseMappingLiteral();
  FilterExpr *parseFilter(Expr *input, bool first);
  Expr *parseTest(Expr *input);
  CallArguments parseCallArguments();
  std::string parseDottedName();
  /// One expression, or several with commas as a tuple. \p endName ends it, beside the tags.
  Expr *parseTuple(bool withConditional, std::string_view endName = {}, bool inParentheses = false);
  bool atTupleEnd(std::string_view endName) const;

  // ParseStatement.cpp
  Body parseBody(std::initializer_list<std::string_view> endTags);
  /// The rest of an opening tag, the body, and the name of the tag that ends it (left current).
  Body parseBlockBody(std::initializer_list<std::string_view> endTags);
  /// As above, and skips the end tag's name.
  Body parseBlockBodyTo(std::string_view endTag);
  void parseStatement(Body &out);
  Stmt *parseIf();
  Stmt *parseFor();
  Stmt *parseSet();
  Stmt *parseMacro();
  Stmt *parseCallBlock();
  Stmt *parseFilterBlock();
  Stmt *parseWith();
  Stmt *parseNamedBlock();
  Stmt *parseRefused();
  void parseSignature(MacroDefinition &definition);
  /// The body of a macro or call block, which is a function of its own.
  void parseFunctionBody(MacroDefinition &definition, std::string_view endTag);
  Target *parseTarget(bool withAttribute, std::string_view endName = {});
  Target *parseTargetItem(bool withAttribute);
  NameId parseTargetName();

  // A filter or test that doesn't exist is an error at once, except directly inside `if`: there
  // it is one only when it is reached, so that templates can ask first.
  struct Unknown {
    int line;
    std::string message;
  };
  void failOnUnknown(size_t from) const;

  Program &program_;
  std::vector<Token> tokens_;
  size_t pos_ = 0;
  unsigned depth_ = 0;
  unsigned loops_ = 0; ///< loops around the current statement, within its macro
  std::vector<Unknown> unknown_;
  std::vector<MacroDefinition *> macros_; ///< the macros around the current expression
  std::vector<std::string_view> openTags_;
  std::vector<std::string> blockNames_;
  bool sawClosure_ = false;
};

} // namespace llmrt::jinja

#endif // LLMRT_TEXT_CHAT_JINJA_PARSER_H
