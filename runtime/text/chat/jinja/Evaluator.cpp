#include "runtime/text/chat/jinja/Evaluator.h"

#include "runtime/text/chat/jinja/Compare.h"
#include "runtime/text/chat/jinja/Globals.h"
#include "runtime/text/chat/jinja/Iterate.h"
#include "runtime/text/chat/jinja/Loop.h"
#include "runtime/text/chat/jinja/ValueText.h"

namespace llmrt::jinja {

Evaluator::Evaluator(Session &session, const Program &program, const CivilTime &now,
                     uint64_t outputBytes)
    : session(session), now(now), program_(program), outputBytes_(outputBytes),
      context_(program.names.size()) {
  defineGlobals(*this);
}

void Evaluator::define(std::string_view name, Value value) {
  auto it = program_.nameIds.find(std::string(name));
  if (it != program_.nameIds.end()) // a name that the template never says needs no place
    context_[it->second] = std::move(value);
}

std::string Evaluator::run() {
  execute(program_.body);
  return std::move(output_);
}

void Evaluator::emit(std::string_view text) {
  session.stepBytes(text.size());
  if (out_ == &output_) {
    if (text.size() > outputBytes_ || output_.size() > outputBytes_ - text.size())
      throw TemplateError(StatusCode::ResourceExhausted, session.line,
                          "the template prints more than " + std::to_string(outputBytes_ >> 20) +
                              " MiB");
  } else {
    session.charge(text.size());
  }
  *out_ += text;
}

void Evaluator::print(const Value &value) {
  if (value.isString())
    emit(value.text());
  else if (!value.isUndefined())
    emit(strOf(session, value));
}

Evaluator::Flow Evaluator::execute(const Body &body) {
  for (const Stmt *statement : body) {
    Flow flow = executeStatement(*statement);
    if (flow != Flow::Normal)
      return flow;
  }
  return Flow::Normal;
}

Evaluator::Flow Evaluator::executeStatement(const Stmt &statement) {
  session.step();
  session.line = statement.line;
  switch (statement.kind) {
  case StmtKind::Text:
    emit(static_cast<const TextStmt &>(statement).text);
    return Flow::Normal;
  case StmtKind::Print:
    print(evaluate(*static_cast<const PrintStmt &>(statement).value));
    return Flow::Normal;
  case StmtKind::If:
    return executeIf(static_cast<const IfStmt &>(statement));
  case StmtKind::For:
    return executeFor(static_cast<const ForStmt &>(statement));
  case StmtKind::Set: {
    const auto &node = static_cast<const SetStmt &>(statement);
    assign(*node.target, evaluate(*node.value), *scope_);
    return Flow::Normal;
  }
  case StmtKind::SetBlock:
    return executeSetBlock(static_cast<const SetBlockStmt &>(statement));
  case StmtKind::Macro: {
    const auto &node = static_cast<const MacroStmt &>(statement);
    scope_->set(session, node.name, Value::object(session.make<Macro>(&node.definition, scope_)));
    return Flow::Normal;
  }
  case StmtKind::CallBlock:
    executeCallBlock(static_cast<const CallBlockStmt &>(statement));
    return Flow::Normal;
  case StmtKind::FilterBlock:
    return executeFilterBlock(static_cast<const FilterBlockStmt &>(statement));
  case StmtKind::Scoped: {
    const auto &node = static_cast<const ScopedStmt &>(statement);
    return executeScoped(node, node.body, node.fromRoot ? &root_ : scope_);
  }
  case StmtKind::With:
    return executeWith(static_cast<const WithStmt &>(statement));
  case StmtKind::Autoescape: {
    const auto &node = static_cast<const AutoescapeStmt &>(statement);
    if (isTrueExpr(*node.enabled))
      session.fail("automatic HTML escaping is not supported in chat templates");
    return executeScoped(node, node.body, scope_);
  }
  case StmtKind::Break:
    return Flow::Break;
  case StmtKind::Continue:
    return Flow::Continue;
  case StmtKind::Refused:
    session.fail("'" + static_cast<const RefusedStmt &>(statement).tag +
                 "' is not possible: a chat template can't load other templates");
  }
  return Flow::Normal;
}

Evaluator::Flow Evaluator::executeIf(const IfStmt &node) {
  Session::Depth depth(session);
  for (const auto &[condition, body] : node.branches)
    if (isTrueExpr(*condition))
      return execute(body);
  return execute(node.otherwise);
}

Evaluator::Flow Evaluator::executeScoped(const Stmt &, const Body &body, Scope *parent) {
  Session::Depth depth(session);
  Restore<Scope *> scope(scope_, session.make<Scope>(parent, true));
  return execute(body);
}

Evaluator::Flow Evaluator::executeWith(const WithStmt &node) {
  Session::Depth depth(session);
  Scope *inner = session.make<Scope>(scope_, true);
  std::vector<Value> values;
  for (const auto &[target, expr] : node.variables)
    values.push_back(evaluate(*expr)); // all of them see the outer variables
  for (size_t i = 0; i < values.size(); ++i)
    assign(*node.variables[i].first, values[i], *inner);
  Restore<Scope *> scope(scope_, inner);
  return execute(node.body);
}

Evaluator::Flow Evaluator::executeSetBlock(const SetBlockStmt &node) {
  Flow flow = Flow::Normal;
  Value text = capture([&] { flow = executeScoped(node, node.body, scope_); });
  if (flow != Flow::Normal)
    return flow;
  session.line = node.line;
  if (node.filter)
    text = evaluateFilter(*node.filter, &text);
  assign(*node.target, text, *scope_);
  return Flow::Normal;
}

Evaluator::Flow Evaluator::executeFilterBlock(const FilterBlockStmt &node) {
  Flow flow = Flow::Normal;
  Value text = capture([&] { flow = executeScoped(node, node.body, scope_); });
  if (flow != Flow::Normal)
    return flow;
  print(evaluateFilter(*node.filter, &text));
  return Flow::Normal;
}

void Evaluator::executeCallBlock(const CallBlockStmt &node) {
  Session::Depth depth(session);
  Value callee = evaluate(*node.call->callee);
  Args args("call");
  evaluateArguments(node.call->arguments, args);
  args.keyword.emplace_back("caller", Value::object(session.make<Macro>(&node.caller, scope_)));
  session.line = node.line;
  print(call(callee, args));
}

Evaluator::Flow Evaluator::executeFor(const ForStmt &node) {
  Session::Depth depth(session);
  Value iterable = evaluate(*node.iterable);
  session.line = node.line;
  return runLoop(node, iterable, scope_, 0);
}

Value Evaluator::filterLoopItems(const ForStmt &node, const Value &iterable, Scope *outer) {
  NextFn source = iterate(session, iterable);
  return Value::object(session.make<Generator>([this, &node, outer, source](Value &item) mutable {
    while (source(item)) {
      session.step();
      Scope inner(outer, false);
      assign(*node.target, item, inner);
      Restore<Scope *> scope(scope_, &inner);
      if (isTrueExpr(*node.condition))
        return true;
    }
    return false;
  }));
}

Evaluator::Flow Evaluator::runLoop(const ForStmt &node, const Value &iterable, Scope *outer,
                                   int depth0) {
  static const std::string loopName = "loop";
  auto loopId = program_.nameIds.find(loopName);
  const bool usesLoop = loopId != program_.nameIds.end();

  Value items = node.condition ? filterLoopItems(node, iterable, outer) : iterable;
  Loop *loop = session.make<Loop>(session, items, &node, outer, depth0);
  Scope reused(outer, false);
  Value item;
  while (loop->advance(item)) {
    session.step();
    Scope *inner = &reused;
    if (node.hasClosures)
      inner = session.make<Scope>(outer, true);
    else
      reused.clear();
    if (usesLoop)
      inner->set(session, loopId->second, Value::object(loop));
    session.line = node.line;
    assign(*node.target, item, *inner);
    Restore<Scope *> scope(scope_, inner);
    if (execute(node.body) == Flow::Break)
      break;
  }
  const bool ran = loop->index0() >= 0;
  loop->finish();
  if (!ran && !node.otherwise.empty()) {
    Restore<Scope *> scope(scope_, outer);
    return executeScoped(node, node.otherwise, outer); // a break here is the outer loop's
  }
  return Flow::Normal;
}

void Evaluator::assign(const Target &target, const Value &value, Scope &scope) {
  switch (target.kind) {
  case Target::Kind::Name:
    scope.set(session, target.name, value);
    return;
  case Target::Kind::Attribute: {
    Value owner = evaluateName(NameExpr(target.line, target.name));
    if (!owner.is(Kind::Namespace))
      session.fail("can't set the attribute '" + target.attribute + "': '" +
                   program_.names[target.name] + "' is no namespace");
    owner.as<Namespace>().attributes->set(session, session.makeString(target.attribute), value);
    return;
  }
  case Target::Kind::Tuple: {
    Session::Depth depth(session);
    NextFn next = iterate(session, value);
    std::vector<Value> parts;
    Value item;
    while (parts.size() <= target.items.size() && next(item))
      parts.push_back(std::move(item));
    if (parts.size() != target.items.size())
      session.fail("can't unpack " +
                   std::string(parts.size() > target.items.size() ? "more than " : "") +
                   std::to_string(std::min(parts.size(), target.items.size())) + " values into " +
                   std::to_string(target.items.size()) + " names");
    for (size_t i = 0; i < parts.size(); ++i)
      assign(*target.items[i], parts[i], scope);
    return;
  }
  }
}

} // namespace llmrt::jinja
