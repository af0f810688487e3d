#include "runtime/text/chat/jinja/Parser.h"

#include "runtime/text/chat/jinja/TemplateError.h"

namespace llmrt::jinja {

/// Published templates nest less than 20 levels; one level takes up to 1.5 KiB of stack here.
static constexpr unsigned maxNesting = 200;

Parser::Parser(Program &program, std::vector<Token> tokens)
    : program_(program), tokens_(std::move(tokens)) {}

void Parser::run() {
  program_.body = parseBody({});
  failOnUnknown(0);
}

void Parser::fail(const std::string &message, int line) const {
  throw TemplateError(StatusCode::InvalidFile, line ? line : current().line, message);
}

void Parser::failUnexpected(const char *wanted) const {
  fail("expected " + std::string(wanted) + ", found " + describe(current()));
}

bool Parser::skipOperator(std::string_view op) {
  if (!current().isOperator(op))
    return false;
  next();
  return true;
}

bool Parser::skipName(std::string_view name) {
  if (!current().isName(name))
    return false;
  next();
  return true;
}

void Parser::expectOperator(std::string_view op) {
  if (!skipOperator(op))
    failUnexpected(("'" + std::string(op) + "'").c_str());
}

std::string Parser::expectName(const char *what) {
  if (current().kind != TokenKind::Name)
    failUnexpected(what);
  std::string name = current().text;
  next();
  return name;
}

void Parser::expectBlockEnd() {
  if (current().kind != TokenKind::BlockEnd)
    failUnexpected("'%}'");
  next();
}

NameId Parser::intern(const std::string &name) {
  auto [it, isNew] = program_.nameIds.try_emplace(name, static_cast<NameId>(program_.names.size()));
  if (isNew)
    program_.names.push_back(name);
  return it->second;
}

Parser::Nesting::Nesting(Parser &p) : parser(p) {
  if (parser.depth_ >= maxNesting)
    parser.fail("the template nests more than " + std::to_string(maxNesting) + " levels deep");
  ++parser.depth_;
}

void Parser::failOnUnknown(size_t from) const {
  if (unknown_.size() > from)
    fail(unknown_[from].message, unknown_[from].line);
}

} // namespace llmrt::jinja
