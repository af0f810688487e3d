#include "runtime/text/chat/jinja/Session.h"

#include "runtime/text/chat/jinja/Unicode.h"
#include "runtime/text/chat/jinja/ValueText.h"

namespace llmrt::jinja {

void Session::failUndefined(const Value &v) const {
  fail(v.undefinedInfo() ? v.undefinedInfo()->message() : "the value is undefined");
}

Value Session::makeString(std::string text, bool markup) {
  stepBytes(text.size());
  checkRoom(text.size() + sizeof(Str));
  return Value::string(std::make_shared<const Str>(std::move(text), markup, &account_));
}

Value Session::makeList(std::vector<Value> items, Kind kind) {
  List *list = make<List>(kind);
  charge(items.size() * sizeof(Value));
  list->items = std::move(items);
  return Value::object(list);
}

Value Session::makePair(Value first, Value second) {
  List *pair = make<List>(Kind::Tuple);
  charge(2 * sizeof(Value));
  pair->items.reserve(2);
  pair->items.push_back(std::move(first));
  pair->items.push_back(std::move(second));
  return Value::object(pair);
}

Value Session::undefinedVariable(std::string_view name) {
  Undefined *u = make<Undefined>();
  u->name = makeString(name);
  return Value::undefined(u);
}

Value Session::undefinedMember(const Value &owner, const Value &key) {
  Undefined *u = make<Undefined>();
  u->ownerType = owner.isNone() ? "None" : std::string(typeName(owner)) + " object";
  u->name = key;
  return Value::undefined(u);
}

Value Session::undefinedHint(std::string hint) {
  Undefined *u = make<Undefined>();
  u->hint = std::move(hint);
  return Value::undefined(u);
}

void Session::outOfSteps() const {
  throw TemplateError(StatusCode::ResourceExhausted, line,
                      "the template runs too long (more than " + std::to_string(limits_.steps) +
                          " steps)");
}

void Session::outOfMemory() const {
  throw TemplateError(StatusCode::ResourceExhausted, line,
                      "the template needs too much memory (more than " +
                          std::to_string(limits_.memoryBytes >> 20) + " MiB)");
}

void Session::tooDeep() const {
  throw TemplateError(StatusCode::ResourceExhausted, line,
                      "the template recurses too deeply (more than " +
                          std::to_string(limits_.depth) + " levels)");
}

TextBuilder &TextBuilder::repeat(std::string_view piece, Int count) {
  if (count <= 0 || piece.empty())
    return *this;
  Int total = static_cast<Int>(piece.size()) * (count > (Int(1) << 62) ? (Int(1) << 62) : count);
  session_.checkRoom(total > (Int(1) << 62) ? UINT64_MAX / 2
                                            : static_cast<uint64_t>(total) + text_.size());
  if (piece.size() == 1) {
    text_.append(static_cast<size_t>(count), piece[0]);
    return *this;
  }
  text_.reserve(text_.size() + static_cast<size_t>(total));
  for (Int i = 0; i < count; ++i)
    text_ += piece;
  return *this;
}

Str::Str(std::string t, bool m, MemoryAccount *account)
    : text(std::move(t)), length(countCodePoints(text)), markup(m), account_(account) {
  if (account_)
    account_->used += text.size() + sizeof(Str);
}

Str::~Str() {
  if (account_)
    account_->used -= text.size() + sizeof(Str);
}

std::string Undefined::message() const {
  if (!hint.empty())
    return hint;
  std::string shown = name.isString() ? "'" + name.text() + "'" : shortRepr(name);
  if (shown.size() > 200)
    shown = shown.substr(0, 200) + "...";
  if (ownerType.empty())
    return shown + " is undefined";
  return "'" + ownerType + "' has no " + (name.isString() ? "attribute " : "element ") + shown;
}

bool Value::identical(const Value &o) const {
  if (kind() != o.kind())
    return false;
  switch (kind()) {
  case Kind::Undefined:
    return undefinedInfo() == o.undefinedInfo();
  case Kind::None:
    return true;
  case Kind::Bool:
    return asBool() == o.asBool();
  case Kind::Int: // CPython shares the small ones
    return asInt() == o.asInt() && asInt() >= -5 && asInt() <= 256;
  case Kind::Float:
    return false;
  case Kind::String:
    return strRef() == o.strRef();
  default:
    return objectPtr() == o.objectPtr();
  }
}

const char *typeName(const Value &v) {
  switch (v.kind()) {
  case Kind::Undefined:
    return "Undefined";
  case Kind::None:
    return "NoneType";
  case Kind::Bool:
    return "bool";
  case Kind::Int:
    return "int";
  case Kind::Float:
    return "float";
  case Kind::String:
    return v.str().markup ? "Markup" : "str";
  case Kind::List:
    return "list";
  case Kind::Tuple:
    return "tuple";
  case Kind::Dict:
    return "dict";
  case Kind::Range:
    return "range";
  case Kind::View:
    switch (v.as<View>().what) {
    case View::What::Keys:
      return "dict_keys";
    case View::What::Values:
      return "dict_values";
    case View::What::Items:
      return "dict_items";
    }
    return "view";
  case Kind::Generator:
    return v.as<Generator>().type;
  case Kind::Function:
    return "function";
  case Kind::Macro:
    return "Macro";
  case Kind::Namespace:
    return "Namespace";
  case Kind::Loop:
    return "LoopContext";
  case Kind::Cycler:
    return "Cycler";
  case Kind::Joiner:
    return "Joiner";
  }
  return "object";
}

} // namespace llmrt::jinja
