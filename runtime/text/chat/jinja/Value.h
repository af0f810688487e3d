//===- Value.h - the values that templates work on ----------------------------===//
//
// A Value is small and copied freely. Strings are shared and counted; every other composite
// lives in the Session of one rendering, which frees all of them at once. So no template, however
// it nests or ties its values into a ring, can leak them or make a destructor recurse.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEXT_CHAT_JINJA_VALUE_H
#define LLMRT_TEXT_CHAT_JINJA_VALUE_H

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace llmrt::jinja {

class Session;
class Evaluator;
class Args;
struct Undefined;

/// Python's int, as far as templates need it: arithmetic that leaves 128 bits is an error.
using Int = __int128;

enum class Kind : uint8_t {
  Undefined,
  None,
  Bool,
  Int,
  Float,
  String,
  List,
  Tuple,
  Dict,
  Range,
  View,
  Generator,
  Function,
  Macro,
  Namespace,
  Loop,
  Cycler,
  Joiner
};

/// What a string's bytes are charged to; see Session.
struct MemoryAccount {
  uint64_t used = 0;
};

struct Str {
  Str(std::string text, bool markup, MemoryAccount *account);
  ~Str();
  Str(const Str &) = delete;
  Str &operator=(const Str &) = delete;

  const std::string text;
  const size_t length; ///< in code points
  const bool markup;   ///< marked as HTML-safe (the filters `safe` and `escape`)
  bool ascii() const { return length == text.size(); }

private:
  MemoryAccount *account_;
};
using StrRef = std::shared_ptr<const Str>;

/// Base of everything that a Session owns.
struct Owned {
  virtual ~Owned() = default;
};

/// What a Value can point to.
struct Object : Owned {
  explicit Object(Kind kind) : kind(kind) {}
  const Kind kind;
};

class Value {
public:
  /// An undefined value without a story.
  Value() : v_(static_cast<Undefined *>(nullptr)) {}
  static Value undefined(Undefined *why) { return Value(Payload(why)); }
  static Value none() { return Value(Payload(std::monostate())); }
  static Value boolean(bool b) { return Value(Payload(b)); }
  static Value integer(Int i) { return Value(Payload(i)); }
  static Value real(double d) { return Value(Payload(d)); }
  static Value string(StrRef s) { return Value(Payload(std::move(s))); }
  /// A string that no session pays for: literals of the template and the caller's context.
  static Value literal(std::string text) {
    return string(std::make_shared<const Str>(std::move(text), false, nullptr));
  }
  static Value object(Object *o) { return Value(Payload(o)); }

  Kind kind() const {
    // The order of Payload's alternatives is that of the first kinds.
    return v_.index() < 6 ? static_cast<Kind>(v_.index()) : std::get<Object *>(v_)->kind;
  }
  bool is(Kind k) const { return kind() == k; }
  bool isUndefined() const { return v_.index() == 0; }
  bool isNone() const { return v_.index() == 1; }
  bool isString() const { return v_.index() == 5; }
  /// Bool, Int or Float.
  bool isNumber() const { return v_.index() >= 2 && v_.index() <= 4; }
  bool isIntegral() const { return v_.index() == 2 || v_.index() == 3; }
  bool isSequence() const { return is(Kind::List) || is(Kind::Tuple); }

  Undefined *undefinedInfo() const { return std::get<0>(v_); }
  bool asBool() const { return std::get<2>(v_); }
  /// The integer of a Bool or Int.
  Int asInt() const { return v_.index() == 2 ? Int(asBool()) : std::get<3>(v_); }
  /// The number of a Bool, Int or Float.
  double asDouble() const {
    return v_.index() == 4 ? std::get<4>(v_) : static_cast<double>(asInt());
  }
  const Str &str() const { return *std::get<5>(v_); }
  const StrRef &strRef() const { return std::get<5>(v_); }
  const std::string &text() const { return str().text; }
  template <typename T> T &as() const { return *static_cast<T *>(std::get<Object *>(v_)); }
  Object *objectPtr() const { return std::get<Object *>(v_); }
  /// Python's `is`.
  bool identical(const Value &o) const;

private:
  using Payload = std::variant<Undefined *, std::monostate, bool, Int, double, StrRef, Object *>;
  explicit Value(Payload p) : v_(std::move(p)) {}
  Payload v_;
};

/// Why a value is undefined; the message is made when something fails because of it.
struct Undefined : Object {
  Undefined() : Object(Kind::Undefined) {}
  std::string hint;      ///< the whole message, or empty
  std::string ownerType; ///< "dict object" when an attribute or item was missing
  Value name;            ///< the variable, attribute or key
  std::string message() const;
};

struct List : Object {
  explicit List(Kind kind = Kind::List) : Object(kind) {}
  std::vector<Value> items;
  bool isGroup = false; ///< a (grouper, list) pair of the filter `groupby`
};

/// A mapping in insertion order. Keys are any hashable values.
struct Dict : Object {
  Dict() : Object(Kind::Dict) {}
  std::vector<std::pair<Value, Value>> entries;
  /// The JSON text that the mapping was read from, when templates may also print it as text.
  StrRef text;

  const Value *find(Session &session, const Value &key) const;
  const Value *find(std::string_view key) const;
  void set(Session &session, const Value &key, Value value);
  /// Appends a string key that is not there yet, without charge.
  void add(const Value &key, Value value);

private:
  void append(size_t hash, const Value &key, Value value);
  long indexOf(Session &session, const Value &key, size_t hash) const;
  std::vector<size_t> hashes_;                      ///< of the entries
  std::unordered_multimap<size_t, uint32_t> index_; ///< filled once there are more than 8 entries
};

struct Range : Object {
  Range(Int start, Int stop, Int step)
      : Object(Kind::Range), start(start), stop(stop), step(step) {}
  Int start, stop, step;
  Int size() const {
    if (step > 0)
      return stop > start ? (stop - start - 1) / step + 1 : 0;
    return stop < start ? (start - stop - 1) / -step + 1 : 0;
  }
};

/// dict.keys(), dict.values(), dict.items().
struct View : Object {
  enum class What { Keys, Values, Items };
  View(Dict *dict, What what) : Object(Kind::View), dict(dict), what(what) {}
  Dict *dict;
  What what;
};

/// Puts the next item into its argument and returns true, or returns false at the end.
using NextFn = std::function<bool(Value &)>;

/// Items that are made on demand and can be read once.
struct Generator : Object {
  explicit Generator(NextFn next, const char *type = "generator")
      : Object(Kind::Generator), next(std::move(next)), type(type) {}
  NextFn next;
  const char *type;
};

/// A callable of ours: a global function or a method bound to \p self.
struct Function : Object {
  using Body = Value (*)(Evaluator &, const Value &self, Args &);
  Function(std::string name, Body body, Value self = {})
      : Object(Kind::Function), name(std::move(name)), body(body), self(std::move(self)) {}
  std::string name;
  Body body;
  Value self;
};

struct Namespace : Object {
  explicit Namespace(Dict *attributes) : Object(Kind::Namespace), attributes(attributes) {}
  Dict *attributes;
};

struct Cycler : Object {
  Cycler() : Object(Kind::Cycler) {}
  std::vector<Value> items;
  size_t position = 0;
};

struct Joiner : Object {
  explicit Joiner(Value separator) : Object(Kind::Joiner), separator(std::move(separator)) {}
  Value separator;
  bool used = false;
};

/// "str", "dict", "NoneType": the name that Python's errors use.
const char *typeName(const Value &v);

} // namespace llmrt::jinja

#endif // LLMRT_TEXT_CHAT_JINJA_VALUE_H
