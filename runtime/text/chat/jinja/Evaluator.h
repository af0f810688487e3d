//===- Evaluator.h - runs a Program -------------------------------------------------===//
#ifndef LLMRT_TEXT_CHAT_JINJA_EVALUATOR_H
#define LLMRT_TEXT_CHAT_JINJA_EVALUATOR_H

#include "runtime/text/chat/CivilTime.h"
#include "runtime/text/chat/jinja/Args.h"
#include "runtime/text/chat/jinja/Ast.h"
#include "runtime/text/chat/jinja/Macro.h"
#include "runtime/text/chat/jinja/Scope.h"

#include <optional>

namespace llmrt::jinja {

class Loop;

class Evaluator {
public:
  /// \p outputBytes bounds the text of the whole rendering.
  Evaluator(Session &session, const Program &program, const CivilTime &now, uint64_t outputBytes);

  /// Gives the template a variable.
  void define(std::string_view name, Value value);
  /// Renders. Throws TemplateError.
  std::string run();

  Session &session;
  const CivilTime &now;

  // Calls.cpp
  Value call(const Value &callee, Args &args);
  Value applyFilter(std::string_view name, const Value &input, Args &args);
  bool applyTest(std::string_view name, const Value &input, Args &args);

private:
  enum class Flow { Normal, Break, Continue };

  // Evaluator.cpp: statements
  Flow execute(const Body &body);
  Flow executeStatement(const Stmt &statement);
  Flow executeFor(const ForStmt &node);
  Flow executeIf(const IfStmt &node);
  Flow executeScoped(const Stmt &node, const Body &body, Scope *parent);
  Flow executeWith(const WithStmt &node);
  Flow executeSetBlock(const SetBlockStmt &node);
  Flow executeFilterBlock(const FilterBlockStmt &node);
  void executeCallBlock(const CallBlockStmt &node);
  /// Runs the rounds of \p node over \p iterable.
  Flow runLoop(const ForStmt &node, const Value &iterable, Scope *outer, int depth0);
  Value filterLoopItems(const ForStmt &node, const Value &iterable, Scope *outer);
  void assign(const Target &target, const Value &value, Scope &scope);
  void emit(std::string_view text);
  void print(const Value &value);
  /// Runs \p body and returns what it printed.
  template <typename Run> Value capture(Run run);

  // EvaluateExpression.cpp
  Value evaluate(const Expr &expr);
  Value evaluateComposite(const Expr &expr);
  Value evaluateName(const NameExpr &expr);
  Value evaluateSequence(const SequenceExpr &expr);
  Value evaluateMapping(const MappingExpr &expr);
  Value evaluateSlice(const SliceExpr &expr);
  Value evaluateConcat(const ConcatExpr &expr);
  Value evaluateCompare(const CompareExpr &expr);
  Value evaluateConditional(const ConditionalExpr &expr);
  bool isTrueExpr(const Expr &expr);

  // Calls.cpp
  Value evaluateCall(const CallExpr &expr);
  Value evaluateFilter(const FilterExpr &expr, const Value *blockText);
  Value evaluateTest(const TestExpr &expr);
  void evaluateArguments(const CallArguments &in, Args &out);
  Value callMacro(const Macro &macro, Args &args);
  Value callLoop(Loop &loop, Args &args);

  const Program &program_;
  const uint64_t outputBytes_;
  std::vector<std::optional<Value>> context_; ///< by NameId
  Scope root_{nullptr, true};
  Scope *scope_ = &root_;
  std::string output_;
  std::string *out_ = &output_;
};

/// Puts a value back when it goes out of scope.
template <typename T> class Restore {
public:
  Restore(T &where, T now) : where_(where), before_(std::exchange(where, std::move(now))) {}
  ~Restore() { where_ = std::move(before_); }
  Restore(const Restore &) = delete;

private:
  T &where_;
  T before_;
};

template <typename Run> Value Evaluator::capture(Run run) {
  std::string text;
  {
    Restore<std::string *> out(out_, &text);
    run();
  }
  session.refund(text.size()); // the string is charged for instead
  return session.makeString(std::move(text));
}

} // namespace llmrt::jinja

#endif // LLMRT_TEXT_CHAT_JINJA_EVALUATOR_H
