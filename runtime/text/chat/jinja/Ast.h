//===- Ast.h - a parsed template -------------------------------------------------===//
//
// Nodes refer to each other by plain pointers; the Program owns them all in one flat list, so
// that a deep tree costs no stack when it goes.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEXT_CHAT_JINJA_AST_H
#define LLMRT_TEXT_CHAT_JINJA_AST_H

#include "runtime/text/chat/jinja/Value.h"

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace llmrt::jinja {

struct FilterEntry;
struct TestEntry;

/// An index into Program::names.
using NameId = uint32_t;

struct Node {
  explicit Node(int line) : line(line) {}
  virtual ~Node() = default;
  int line;
};

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

enum class ExprKind : uint8_t {
  Constant,
  Name,
  Sequence,
  Mapping,
  Attribute,
  Item,
  Slice,
  Call,
  Filter,
  Test,
  Unary,
  Binary,
  Concat,
  Compare,
  And,
  Or,
  Not,
  Conditional
};

enum class Operator : uint8_t {
  Add,
  Subtract,
  Multiply,
  Divide,
  FloorDivide,
  Modulo,
  Power,
  Equal,
  NotEqual,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  In,
  NotIn
};

struct Expr : Node {
  Expr(ExprKind kind, int line) : Node(line), kind(kind) {}
  const ExprKind kind;
};

struct ConstantExpr : Expr {
  ConstantExpr(int line, Value value) : Expr(ExprKind::Constant, line), value(std::move(value)) {}
  Value value;
};

struct NameExpr : Expr {
  NameExpr(int line, NameId name) : Expr(ExprKind::Name, line), name(name) {}
  NameId name;
};

/// [a, b] or (a, b).
struct SequenceExpr : Expr {
  SequenceExpr(int line, bool tuple) : Expr(ExprKind::Sequence, line), tuple(tuple) {}
  bool tuple;
  std::vector<Expr *> items;
};

struct MappingExpr : Expr {
  explicit MappingExpr(int line) : Expr(ExprKind::Mapping, line) {}
  std::vector<std::pair<Expr *, Expr *>> items;
};

/// object.name
struct AttributeExpr : Expr {
  AttributeExpr(int line, Expr *object, std::string name)
      : Expr(ExprKind::Attribute, line), object(object), name(std::move(name)),
        key(Value::literal(this->name)) {}
  Expr *object;
  std::string name;
  Value key;
};

/// object[key]
struct ItemExpr : Expr {
  ItemExpr(int line, Expr *object, Expr *key)
      : Expr(ExprKind::Item, line), object(object), key(key) {}
  Expr *object, *key;
};

/// object[start:stop:step]; absent parts are null.
struct SliceExpr : Expr {
  SliceExpr(int line, Expr *object) : Expr(ExprKind::Slice, line), object(object) {}
  Expr *object;
  Expr *start = nullptr, *stop = nullptr, *step = nullptr;
};

struct CallArguments {
  std::vector<Expr *> positional;
  std::vector<std::pair<std::string, Expr *>> keyword;
  Expr *positionalRest = nullptr; ///< *expr
  Expr *keywordRest = nullptr;    ///< **expr
};

struct CallExpr : Expr {
  CallExpr(int line, Expr *callee, CallArguments arguments)
      : Expr(ExprKind::Call, line), callee(callee), arguments(std::move(arguments)) {}
  Expr *callee;
  CallArguments arguments;
};

/// input | name(...). The input is null in `{% filter name %}`.
struct FilterExpr : Expr {
  FilterExpr(int line, Expr *input, std::string name, const FilterEntry *filter, CallArguments a)
      : Expr(ExprKind::Filter, line), input(input), name(std::move(name)), filter(filter),
        arguments(std::move(a)) {}
  Expr *input;
  std::string name;
  const FilterEntry *filter; ///< null if there is none of that name
  CallArguments arguments;
};

/// input is name(...)
struct TestExpr : Expr {
  TestExpr(int line, Expr *input, std::string name, const TestEntry *test, CallArguments a)
      : Expr(ExprKind::Test, line), input(input), name(std::move(name)), test(test),
        arguments(std::move(a)) {}
  Expr *input;
  std::string name;
  const TestEntry *test; ///< null if there is none of that name
  CallArguments arguments;
};

/// -operand or +operand
struct UnaryExpr : Expr {
  UnaryExpr(int line, bool negate, Expr *operand)
      : Expr(ExprKind::Unary, line), negate(negate), operand(operand) {}
  bool negate;
  Expr *operand;
};

struct BinaryExpr : Expr {
  BinaryExpr(int line, Operator op, Expr *left, Expr *right)
      : Expr(ExprKind::Binary, line), op(op), left(left), right(right) {}
  Operator op;
  Expr *left, *right;
};

/// a ~ b ~ c
struct ConcatExpr : Expr {
  explicit ConcatExpr(int line) : Expr(ExprKind::Concat, line) {}
  std::vector<Expr *> parts;
};

/// a < b <= c
struct CompareExpr : Expr {
  CompareExpr(int line, Expr *first) : Expr(ExprKind::Compare, line), first(first) {}
  Expr *first;
  std::vector<std::pair<Operator, Expr *>> rest;
};

struct LogicExpr : Expr {
  LogicExpr(ExprKind kind, int line, Expr *left, Expr *right)
      : Expr(kind, line), left(left), right(right) {}
  Expr *left, *right;
};

struct NotExpr : Expr {
  NotExpr(int line, Expr *operand) : Expr(ExprKind::Not, line), operand(operand) {}
  Expr *operand;
};

/// then if condition else otherwise; the last may be null.
struct ConditionalExpr : Expr {
  ConditionalExpr(int line, Expr *condition, Expr *then, Expr *otherwise)
      : Expr(ExprKind::Conditional, line), condition(condition), then(then), otherwise(otherwise) {}
  Expr *condition, *then, *otherwise;
};

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

enum class StmtKind : uint8_t {
  Text,
  Print,
  If,
  For,
  Set,
  SetBlock,
  Macro,
  CallBlock,
  FilterBlock,
  Scoped,
  With,
  Break,
  Continue,
  Autoescape,
  Refused
};

struct Stmt : Node {
  Stmt(StmtKind kind, int line) : Node(line), kind(kind) {}
  const StmtKind kind;
};
using Body = std::vector<Stmt *>;

/// What an assignment writes to: a name, `namespace.attribute`, or a tuple of targets.
struct Target : Node {
  explicit Target(int line) : Node(line) {}
  enum class Kind { Name, Attribute, Tuple } kind = Kind::Name;
  NameId name = 0;
  std::string attribute;
  std::vector<Target *> items;
};

struct TextStmt : Stmt {
  TextStmt(int line, std::string text) : Stmt(StmtKind::Text, line), text(std::move(text)) {}
  std::string text;
};

struct PrintStmt : Stmt {
  PrintStmt(int line, Expr *value) : Stmt(StmtKind::Print, line), value(value) {}
  Expr *value;
};

struct IfStmt : Stmt {
  explicit IfStmt(int line) : Stmt(StmtKind::If, line) {}
  std::vector<std::pair<Expr *, Body>> branches; ///< if, elif, ...
  Body otherwise;
};

struct ForStmt : Stmt {
  explicit ForStmt(int line) : Stmt(StmtKind::For, line) {}
  Target *target = nullptr;
  Expr *iterable = nullptr;
  Expr *condition = nullptr; ///< for x in y if condition
  bool recursive = false;
  bool hasClosures = false; ///< a macro or call block inside may keep the variables of a round
  Body body, otherwise;
};

struct SetStmt : Stmt {
  SetStmt(int line, Target *target, Expr *value)
      : Stmt(StmtKind::Set, line), target(target), value(value) {}
  Target *target;
  Expr *value;
};

struct SetBlockStmt : Stmt {
  SetBlockStmt(int line, Target *target) : Stmt(StmtKind::SetBlock, line), target(target) {}
  Target *target;
  FilterExpr *filter = nullptr; ///< {% set x | filter %}; the innermost has no input
  Body body;
};

/// The parameters and the body of a macro or call block.
struct MacroDefinition {
  std::string name;
  std::vector<std::pair<NameId, std::string>> parameters;
  std::vector<Expr *> defaults; ///< of the last parameters
  bool usesCaller = false, usesVarargs = false, usesKwargs = false;
  bool hasClosures = false; ///< a macro or call block inside may keep the variables of a call
  Body body;
};

struct MacroStmt : Stmt {
  MacroStmt(int line, NameId name) : Stmt(StmtKind::Macro, line), name(name) {}
  NameId name;
  MacroDefinition definition;
};

/// {% call(args) callee(...) %} body {% endcall %}
struct CallBlockStmt : Stmt {
  explicit CallBlockStmt(int line) : Stmt(StmtKind::CallBlock, line) {}
  CallExpr *call = nullptr;
  MacroDefinition caller;
};

struct FilterBlockStmt : Stmt {
  FilterBlockStmt(int line, FilterExpr *filter)
      : Stmt(StmtKind::FilterBlock, line), filter(filter) {}
  FilterExpr *filter;
  Body body;
};

/// A body with variables of its own: {% generation %}, or {% block %} (which sees only the
/// variables of the outermost level).
struct ScopedStmt : Stmt {
  ScopedStmt(int line, bool fromRoot) : Stmt(StmtKind::Scoped, line), fromRoot(fromRoot) {}
  bool fromRoot;
  Body body;
};

struct WithStmt : Stmt {
  explicit WithStmt(int line) : Stmt(StmtKind::With, line) {}
  std::vector<std::pair<Target *, Expr *>> variables;
  Body body;
};

struct AutoescapeStmt : Stmt {
  AutoescapeStmt(int line, Expr *enabled) : Stmt(StmtKind::Autoescape, line), enabled(enabled) {}
  Expr *enabled;
  Body body;
};

/// break, continue.
struct JumpStmt : Stmt {
  using Stmt::Stmt;
};

/// include, import, from, extends: fails when it is reached, since there is nothing to load from.
struct RefusedStmt : Stmt {
  RefusedStmt(int line, std::string tag) : Stmt(StmtKind::Refused, line), tag(std::move(tag)) {}
  std::string tag;
};

struct Program {
  std::string source;
  Body body;
  std::vector<std::string> names;
  std::unordered_map<std::string, NameId> nameIds;
  std::vector<std::unique_ptr<Node>> nodes;
};

} // namespace llmrt::jinja

#endif // LLMRT_TEXT_CHAT_JINJA_AST_H
