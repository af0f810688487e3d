//===- ParseExpression.cpp - the expression half of the parser -------------------===//
#include "runtime/text/chat/jinja/Filters.h"
#include "runtime/text/chat/jinja/Parser.h"
#include "runtime/text/chat/jinja/Tests.h"

namespace llmrt::jinja {

Expr *Parser::parseExpression(bool withConditional) {
  Nesting nesting(*this);
  return withConditional ? parseConditional() : parseOr();
}

Expr *Parser::parseConditional() {
  int line = current().line;
  const size_t firstUnknown = unknown_.size();
  Expr *value = parseOr();
  while (skipName("if")) {
    Expr *condition = parseOr();
    Expr *otherwise = nullptr;
    if (skipName("else")) {
      Nesting nesting(*this);
      otherwise = parseConditional();
    }
    value = make<ConditionalExpr>(line, condition, value, otherwise);
    unknown_.resize(firstUnknown);
    line = current().line;
  }
  return value;
}

Expr *Parser::parseOr() {
  int line = current().line;
  Expr *left = parseAnd();
  while (skipName("or")) {
    Expr *right = parseAnd();
    left = make<LogicExpr>(ExprKind::Or, line, left, right);
    line = current().line;
  }
  return left;
}

Expr *Parser::parseAnd() {
  int line = current().line;
  Expr *left = parseNot();
  while (skipName("and")) {
    Expr *right = parseNot();
    left = make<LogicExpr>(ExprKind::And, line, left, right);
    line = current().line;
  }
  return left;
}

Expr *Parser::parseNot() {
  if (!current().isName("not"))
    return parseCompare();
  int line = current().line;
  next();
  Nesting nesting(*this);
  return make<NotExpr>(line, parseNot());
}

Expr *Parser::parseCompare() {
  static constexpr std::pair<std::string_view, Operator> operators[] = {
      {"==", Operator::Equal},     {"!=", Operator::NotEqual}, {"<", Operator::Less},
      {"<=", Operator::LessEqual}, {">", Operator::Greater},   {">=", Operator::GreaterEqual}};
  int line = current().line;
  Expr *first = parseSum();
  CompareExpr *chain = nullptr;
  for (;;) {
    const Operator *op = nullptr;
    static constexpr Operator in = Operator::In, notIn = Operator::NotIn;
    for (const auto &[text, value] : operators)
      if (current().isOperator(text))
        op = &value;
    if (current().isName("in")) {
      op = &in;
    } else if (current().isName("not") && look().isName("in")) {
      op = &notIn;
      next();
    }
    if (!op)
      return chain ? chain : first;
    next();
    Expr *right = parseSum();
    if (!chain)
      chain = make<CompareExpr>(line, first);
    chain->rest.emplace_back(*op, right);
  }
}

Expr *Parser::parseSum() {
  int line = current().line;
  Expr *left = parseConcat();
  while (current().isOperator("+") || current().isOperator("-")) {
    Operator op = current().text == "+" ? Operator::Add : Operator::Subtract;
    next();
    Expr *right = parseConcat();
    left = make<BinaryExpr>(line, op, left, right);
    line = current().line;
  }
  return left;
}

Expr *Parser::parseConcat() {
  int line = current().line;
  Expr *first = parseProduct();
  if (!current().isOperator("~"))
    return first;
  auto *concat = make<ConcatExpr>(line);
  concat->parts.push_back(first);
  while (skipOperator("~"))
    concat->parts.push_back(parseProduct());
  return concat;
}

Expr *Parser::parseProduct() {
  static constexpr std::pair<std::string_view, Operator> operators[] = {
      {"*", Operator::Multiply},
      {"/", Operator::Divide},
      {"//", Operator::FloorDivide},
      {"%", Operator::Modulo}};
  int line = current().line;
  Expr *left = parsePower();
  for (;;) {
    const Operator *op = nullptr;
    for (const auto &[text, value] : operators)
      if (current().isOperator(text))
        op = &value;
    if (!op)
      return left;
    next();
    Expr *right = parsePower();
    left = make<BinaryExpr>(line, *op, left, right);
    line = current().line;
  }
}

Expr *Parser::parsePower() {
  int line = current().line;
  Expr *left = parseUnary();
  while (skipOperator("**")) { // from the left, as Jinja has it
    Expr *right = parseUnary();
    left = make<BinaryExpr>(line, Operator::Power, left, right);
    line = current().line;
  }
  return left;
}

Expr *Parser::parseUnary(bool withFilter) {
  int line = current().line;
  Expr *node;
  if (current().isOperator("-") || current().isOperator("+")) {
    bool negate = current().text == "-";
    next();
    Nesting nesting(*this);
    node = make<UnaryExpr>(line, negate, parseUnary(false));
  } else {
    node = parsePrimary();
  }
  node = parsePostfix(node);
  return withFilter ? parseFilterExpr(node) : node;
}

Expr *Parser::parsePrimary() {
  const Token &token = current();
  const int line = token.line;
  switch (token.kind) {
  case TokenKind::Name: {
    std::string name = token.text;
    next();
    if (name == "true" || name == "True" || name == "false" || name == "False")
      return make<ConstantExpr>(line, Value::boolean(name[0] == 't' || name[0] == 'T'));
    if (name == "none" || name == "None")
      return make<ConstantExpr>(line, Value::none());
    for (MacroDefinition *macro : macros_) {
      macro->usesCaller |= name == "caller";
      macro->usesVarargs |= name == "varargs";
      macro->usesKwargs |= name == "kwargs";
    }
    return make<NameExpr>(line, intern(name));
  }
  case TokenKind::String: {
    std::string text;
    for (; current().kind == TokenKind::String; next())
      text += current().text;
    return make<ConstantExpr>(line, Value::literal(std::move(text)));
  }
  case TokenKind::Integer: {
    Value value = Value::integer(token.integer);
    next();
    return make<ConstantExpr>(line, value);
  }
  case TokenKind::Float: {
    Value value = Value::real(token.real);
    next();
    return make<ConstantExpr>(line, value);
  }
  default:
    break;
  }
  if (skipOperator("(")) {
    Expr *inside = parseTuple(true, {}, true);
    expectOperator(")");
    return inside;
  }
  if (token.isOperator("["))
    return parseListLiteral();
  if (token.isOperator("{"))
    return parseMappingLiteral();
  failUnexpected("an expression");
}

bool Parser::atTupleEnd(std::string_view endName) const {
  return current().kind == TokenKind::VariableEnd || current().kind == TokenKind::BlockEnd ||
         current().isOperator(")") || (!endName.empty() && current().isName(endName));
}

Expr *Parser::parseTuple(bool withConditional, std::string_view endName, bool inParentheses) {
  const int line = current().line;
  std::vector<Expr *> items;
  bool isTuple = false;
  for (;;) {
    if (!items.empty())
      expectOperator(",");
    if (atTupleEnd(endName))
      break;
    items.push_back(parseExpression(withConditional));
    if (!current().isOperator(","))
      break;
    isTuple = true;
  }
  if (!isTuple && !items.empty())
    return items[0];
  if (!isTuple && !inParentheses)
    failUnexpected("an expression");
  auto *tuple = make<SequenceExpr>(line, true);
  tuple->items = std::move(items);
  return tuple;
}

Expr *Parser::parseListLiteral() {
  auto *list = make<SequenceExpr>(current().line, false);
  expectOperator("[");
  while (!current().isOperator("]")) {
    if (!list->items.empty())
      expectOperator(",");
    if (current().isOperator("]"))
      break;
    list->items.push_back(parseExpression());
  }
  expectOperator("]");
  return list;
}

Expr *Parser::parseMappingLiteral() {
  auto *mapping = make<MappingExpr>(current().line);
  expectOperator("{");
  while (!current().isOperator("}")) {
    if (!mapping->items.empty())
      expectOperator(",");
    if (current().isOperator("}"))
      break;
    Expr *key = parseExpression();
    expectOperator(":");
    Expr *value = parseExpression();
    mapping->items.emplace_back(key, value);
  }
  expectOperator("}");
  return mapping;
}

Expr *Parser::parsePostfix(Expr *node) {
  for (;;) {
    if (current().isOperator(".") || current().isOperator("["))
      node = parseSubscript(node);
    else if (current().isOperator("("))
      node = make<CallExpr>(current().line, node, parseCallArguments());
    else
      return node;
  }
}

Expr *Parser::parseFilterExpr(Expr *node) {
  for (;;) {
    if (current().isOperator("|"))
      node = parseFilter(node, false);
    else if (current().isName("is"))
      node = parseTest(node);
    else if (current().isOperator("("))
      node = make<CallExpr>(current().line, node, parseCallArguments());
    else
      return node;
  }
}

Expr *Parser::parseSubscript(Expr *node) {
  const int line = current().line;
  if (skipOperator(".")) {
    if (current().kind == TokenKind::Integer) {
      Expr *key = make<ConstantExpr>(line, Value::integer(current().integer));
      next();
      return make<ItemExpr>(line, node, key);
    }
    return make<AttributeExpr>(line, node, expectName("a name or a number"));
  }
  expectOperator("[");
  std::vector<Expr *> keys;
  SliceExpr *slice = nullptr;
  while (!current().isOperator("]")) {
    if (!keys.empty() || slice)
      expectOperator(",");
    if (slice)
      fail("a slice can't be one of several subscripts");
    Expr *start = current().isOperator(":") ? nullptr : parseExpression();
    if (!skipOperator(":")) {
      keys.push_back(start);
      continue;
    }
    if (!keys.empty())
      fail("a slice can't be one of several subscripts");
    slice = make<SliceExpr>(line, node);
    slice->start = start;
    auto atEnd = [&] { return current().isOperator("]") || current().isOperator(","); };
    if (!atEnd() && !current().isOperator(":"))
      slice->stop = parseExpression();
    if (skipOperator(":") && !atEnd())
      slice->step = parseExpression();
  }
  expectOperator("]");
  if (slice)
    return slice;
  if (keys.size() == 1)
    return make<ItemExpr>(line, node, keys[0]);
  auto *tuple = make<SequenceExpr>(line, true);
  tuple->items = std::move(keys);
  return make<ItemExpr>(line, node, tuple);
}

std::string Parser::parseDottedName() {
  std::string name = expectName();
  while (skipOperator("."))
    name += "." + expectName();
  return name;
}

FilterExpr *Parser::parseFilter(Expr *input, bool first) {
  FilterExpr *filter = nullptr;
  while (first || current().isOperator("|")) {
    if (!first)
      next();
    first = false;
    const int line = current().line;
    std::string name = parseDottedName();
    CallArguments arguments;
    if (current().isOperator("("))
      arguments = parseCallArguments();
    const FilterEntry *entry = findFilter(name);
    if (!entry)
      unknown_.push_back({line, "there is no filter '" + name + "'"});
    filter = make<FilterExpr>(line, filter ? filter : input, name, entry, std::move(arguments));
  }
  return filter;
}

Expr *Parser::parseTest(Expr *input) {
  const int line = current().line;
  next(); // is
  const bool negated = skipName("not");
  std::string name = parseDottedName();
  CallArguments arguments;
  const Token &token = current();
  if (token.isOperator("(")) {
    arguments = parseCallArguments();
  } else if ((token.kind == TokenKind::Name && !token.isName("else") && !token.isName("or") &&
              !token.isName("and")) ||
             token.kind == TokenKind::String || token.kind == TokenKind::Integer ||
             token.kind == TokenKind::Float || token.isOperator("[") || token.isOperator("{")) {
    if (token.isName("is"))
      fail("tests can't be chained with 'is'");
    arguments.positional.push_back(parsePostfix(parsePrimary()));
  }
  const TestEntry *entry = findTest(name);
  if (!entry)
    unknown_.push_back({line, "there is no test '" + name + "'"});
  Expr *test = make<TestExpr>(line, input, name, entry, std::move(arguments));
  return negated ? make<NotExpr>(line, test) : test;
}

CallArguments Parser::parseCallArguments() {
  Nesting nesting(*this);
  const int line = current().line;
  CallArguments out;
  bool needComma = false;
  auto require = [&](bool ok) {
    if (!ok)
      fail("the arguments of the call are in the wrong order", line);
  };
  expectOperator("(");
  while (!current().isOperator(")")) {
    if (needComma) {
      expectOperator(",");
      if (current().isOperator(")"))
        break;
    }
    if (skipOperator("*")) {
      require(!out.positionalRest && !out.keywordRest);
      out.positionalRest = parseExpression();
    } else if (skipOperator("**")) {
      require(!out.keywordRest);
      out.keywordRest = parseExpression();
    } else if (current().kind == TokenKind::Name && look().isOperator("=")) {
      require(!out.keywordRest);
      std::string name = expectName();
      next();
      for (const auto &[other, value] : out.keyword)
        if (other == name)
          fail("the argument '" + name + "' is given twice");
      out.keyword.emplace_back(std::move(name), parseExpression());
    } else {
      require(!out.positionalRest && !out.keywordRest && out.keyword.empty());
      out.positional.push_back(parseExpression());
    }
    needComma = true;
  }
  expectOperator(")");
  return out;
}

} // namespace llmrt::jinja
