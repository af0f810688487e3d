//===- ParseStatement.cpp - the statement half of the parser ---------------------===//
#include "runtime/text/chat/jinja/Parser.h"

#include <algorithm>

namespace llmrt::jinja {

Body Parser::parseBody(std::initializer_list<std::string_view> endTags) {
  Body body;
  for (;;) {
    const Token &token = current();
    switch (token.kind) {
    case TokenKind::Data:
      body.push_back(make<TextStmt>(token.line, token.text));
      next();
      break;
    case TokenKind::VariableBegin: {
      next();
      const int line = current().line;
      body.push_back(make<PrintStmt>(line, parseTuple(true)));
      if (current().kind != TokenKind::VariableEnd)
        failUnexpected("'}}'");
      next();
      break;
    }
    case TokenKind::BlockBegin:
      next();
      for (std::string_view end : endTags)
        if (current().isName(end))
          return body;
      parseStatement(body);
      expectBlockEnd();
      break;
    case TokenKind::End:
      if (endTags.size() != 0) {
        std::string wanted;
        for (std::string_view end : endTags)
          wanted += (wanted.empty() ? "'" : " or '") + std::string(end) + "'";
        fail("the template ends inside '" + std::string(openTags_.back()) + "': " + wanted +
             " is missing");
      }
      return body;
    default:
      failUnexpected("text or a tag");
    }
  }
}

Body Parser::parseBlockBody(std::initializer_list<std::string_view> endTags) {
  skipOperator(":"); // as in Python
  expectBlockEnd();
  return parseBody(endTags);
}

Body Parser::parseBlockBodyTo(std::string_view endTag) {
  Body body = parseBlockBody({endTag});
  next();
  return body;
}

void Parser::parseStatement(Body &out) {
  Nesting nesting(*this);
  if (current().kind != TokenKind::Name)
    failUnexpected("a tag's name");
  const Token token = current();
  openTags_.push_back(token.text);
  const std::string &tag = token.text;
  if (tag == "if") {
    out.push_back(parseIf());
  } else if (tag == "for") {
    out.push_back(parseFor());
  } else if (tag == "set") {
    out.push_back(parseSet());
  } else if (tag == "macro") {
    out.push_back(parseMacro());
  } else if (tag == "call") {
    out.push_back(parseCallBlock());
  } else if (tag == "filter") {
    out.push_back(parseFilterBlock());
  } else if (tag == "with") {
    out.push_back(parseWith());
  } else if (tag == "block") {
    out.push_back(parseNamedBlock());
  } else if (tag == "generation") {
    next();
    MacroDefinition function; // the body can't break out of a loop around it
    parseFunctionBody(function, "endgeneration");
    auto *scoped = make<ScopedStmt>(token.line, false);
    scoped->body = std::move(function.body);
    out.push_back(scoped);
  } else if (tag == "print") {
    next();
    for (bool first = true; current().kind != TokenKind::BlockEnd; first = false) {
      if (!first)
        expectOperator(",");
      out.push_back(make<PrintStmt>(token.line, parseExpression()));
    }
  } else if (tag == "autoescape") {
    next();
    auto *autoescape = make<AutoescapeStmt>(token.line, parseExpression());
    autoescape->body = parseBlockBodyTo("endautoescape");
    out.push_back(autoescape);
  } else if (tag == "break" || tag == "continue") {
    next();
    if (loops_ == 0)
      fail("'" + tag + "' outside of a loop", token.line);
    out.push_back(
        make<JumpStmt>(tag == "break" ? StmtKind::Break : StmtKind::Continue, token.line));
  } else if (tag == "include" || tag == "import" || tag == "from" || tag == "extends") {
    out.push_back(parseRefused());
  } else {
    openTags_.pop_back();
    std::string message = "unknown tag '" + tag + "'";
    if (!openTags_.empty())
      message += " inside '" + std::string(openTags_.back()) + "'";
    fail(message);
  }
  openTags_.pop_back();
}

Stmt *Parser::parseIf() {
  const size_t firstUnknown = unknown_.size();
  auto *node = make<IfStmt>(current().line);
  do {
    next(); // if, elif
    Expr *condition = parseTuple(false);
    Body body = parseBlockBody({"elif", "else", "endif"});
    node->branches.emplace_back(condition, std::move(body));
  } while (current().isName("elif"));
  if (skipName("else"))
    node->otherwise = parseBlockBodyTo("endif");
  else
    next();
  unknown_.resize(firstUnknown);
  return node;
}

Stmt *Parser::parseFor() {
  auto *node = make<ForStmt>(current().line);
  next();
  node->target = parseTarget(false, "in");
  if (!skipName("in"))
    failUnexpected("'in'");
  node->iterable = parseTuple(false, "recursive");
  if (skipName("if"))
    node->condition = parseExpression();
  node->recursive = skipName("recursive");

  const size_t firstUnknown = unknown_.size();
  const bool closuresBefore = std::exchange(sawClosure_, false);
  ++loops_;
  node->body = parseBlockBody({"endfor", "else"});
  --loops_;
  node->hasClosures = sawClosure_;
  sawClosure_ |= closuresBefore;
  if (skipName("else"))
    node->otherwise = parseBlockBodyTo("endfor");
  else
    next();
  failOnUnknown(firstUnknown);
  return node;
}

Stmt *Parser::parseSet() {
  const int line = current().line;
  next();
  Target *target = parseTarget(true);
  if (skipOperator("="))
    return make<SetStmt>(line, target, parseTuple(true));
  auto *node = make<SetBlockStmt>(line, target);
  const size_t firstUnknown = unknown_.size();
  if (current().isOperator("|"))
    node->filter = parseFilter(nullptr, false);
  node->body = parseBlockBodyTo("endset");
  failOnUnknown(firstUnknown);
  return node;
}

void Parser::parseSignature(MacroDefinition &definition) {
  expectOperator("(");
  while (!current().isOperator(")")) {
    if (!definition.parameters.empty())
      expectOperator(",");
    const std::string name = current().text;
    NameId id = parseTargetName();
    for (const auto &[other, text] : definition.parameters)
      if (other == id)
        fail("the parameter '" + name + "' occurs twice");
    if (skipOperator("="))
      definition.defaults.push_back(parseExpression());
    else if (!definition.defaults.empty())
      fail("the parameter '" + name + "' needs a default, as the one before it has one");
    definition.parameters.emplace_back(id, name);
  }
  expectOperator(")");
}

void Parser::parseFunctionBody(MacroDefinition &definition, std::string_view endTag) {
  const size_t firstUnknown = unknown_.size();
  const unsigned loopsOutside = std::exchange(loops_, 0u);
  const bool closuresBefore = std::exchange(sawClosure_, false);
  macros_.push_back(&definition);
  definition.body = parseBlockBodyTo(endTag);
  macros_.pop_back();
  definition.hasClosures = sawClosure_;
  for (const auto &parameter : definition.parameters) { // declared ones are plain parameters
    const std::string &name = parameter.second;
    definition.usesVarargs &= name != "varargs";
    definition.usesKwargs &= name != "kwargs";
    const size_t index = static_cast<size_t>(&parameter - definition.parameters.data());
    if (name == "caller" && definition.usesCaller &&
        index < definition.parameters.size() - definition.defaults.size())
      fail("the parameter 'caller' needs a default, as not every call has a block");
  }
  sawClosure_ |= closuresBefore;
  loops_ = loopsOutside;
  failOnUnknown(firstUnknown);
}

Stmt *Parser::parseMacro() {
  const int line = current().line;
  next();
  const std::string name = current().text;
  auto *node = make<MacroStmt>(line, parseTargetName());
  node->definition.name = name;
  parseSignature(node->definition);
  parseFunctionBody(node->definition, "endmacro");
  sawClosure_ = true;
  return node;
}

Stmt *Parser::parseCallBlock() {
  auto *node = make<CallBlockStmt>(current().line);
  next();
  node->caller.name = "caller";
  if (current().isOperator("("))
    parseSignature(node->caller);
  Expr *call = parseExpression();
  if (call->kind != ExprKind::Call)
    fail("'call' needs a call of a macro", node->line);
  node->call = static_cast<CallExpr *>(call);
  parseFunctionBody(node->caller, "endcall");
  sawClosure_ = true;
  return node;
}

Stmt *Parser::parseFilterBlock() {
  const int line = current().line;
  next();
  const size_t firstUnknown = unknown_.size();
  auto *node = make<FilterBlockStmt>(line, parseFilter(nullptr, true));
  node->body = parseBlockBodyTo("endfilter");
  failOnUnknown(firstUnknown);
  return node;
}

Stmt *Parser::parseWith() {
  auto *node = make<WithStmt>(current().line);
  next();
  const size_t firstUnknown = unknown_.size();
  while (current().kind != TokenKind::BlockEnd) {
    if (!node->variables.empty())
      expectOperator(",");
    Target *target = parseTarget(false);
    expectOperator("=");
    node->variables.emplace_back(target, parseExpression());
  }
  node->body = parseBlockBodyTo("endwith");
  failOnUnknown(firstUnknown);
  return node;
}

Stmt *Parser::parseNamedBlock() {
  const int line = current().line;
  next();
  std::string name = expectName("the block's name");
  if (std::find(blockNames_.begin(), blockNames_.end(), name) != blockNames_.end())
    fail("the block '" + name + "' is defined twice");
  blockNames_.push_back(name);
  const bool scoped = skipName("scoped");
  skipName("required");
  const size_t firstUnknown = unknown_.size();
  const unsigned loopsOutside = std::exchange(loops_, 0u);
  auto *node = make<ScopedStmt>(line, !scoped);
  node->body = parseBlockBodyTo("endblock");
  loops_ = loopsOutside;
  failOnUnknown(firstUnknown);
  skipName(name);
  return node;
}

Stmt *Parser::parseRefused() {
  auto *node = make<RefusedStmt>(current().line, current().text);
  // The tag fails when it is reached, whatever it says, so its words need no parsing.
  while (current().kind != TokenKind::BlockEnd && current().kind != TokenKind::End)
    next();
  return node;
}

NameId Parser::parseTargetName() {
  static constexpr std::string_view constants[] = {"true",  "True", "false",
                                                   "False", "none", "None"};
  for (std::string_view constant : constants)
    if (current().isName(constant))
      fail("can't assign to '" + current().text + "'");
  return intern(expectName());
}

Target *Parser::parseTargetItem(bool withAttribute) {
  Nesting nesting(*this);
  auto *target = make<Target>(current().line);
  if (skipOperator("(")) {
    Target *inside = parseTarget(withAttribute);
    expectOperator(")");
    return inside;
  }
  if (current().kind != TokenKind::Name)
    failUnexpected("a name to assign to");
  target->name = parseTargetName();
  if (withAttribute && skipOperator(".")) {
    target->kind = Target::Kind::Attribute;
    target->attribute = expectName("an attribute's name");
  }
  return target;
}

Target *Parser::parseTarget(bool withAttribute, std::string_view endName) {
  const int line = current().line;
  std::vector<Target *> items;
  bool isTuple = false;
  for (;;) {
    if (!items.empty())
      expectOperator(",");
    if (atTupleEnd(endName))
      break;
    items.push_back(parseTargetItem(withAttribute));
    if (!current().isOperator(","))
      break;
    isTuple = true;
  }
  if (items.empty())
    failUnexpected("a name to assign to");
  if (!isTuple)
    return items[0];
  auto *tuple = make<Target>(line);
  tuple->kind = Target::Kind::Tuple;
  tuple->items = std::move(items);
  return tuple;
}

} // namespace llmrt::jinja
