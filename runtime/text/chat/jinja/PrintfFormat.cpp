#include "runtime/text/chat/jinja/PrintfFormat.h"

#include "runtime/text/chat/jinja/NumberFormat.h"
#include "runtime/text/chat/jinja/Unicode.h"
#include "runtime/text/chat/jinja/ValueText.h"

#include <cmath>

namespace llmrt::jinja {

namespace {

class Printf {
public:
  Printf(Session &session, const Str &format, const Value &values)
      : session_(session), format_(format), values_(values), out_(session) {}

  Value run() {
    std::string_view text = format_.text;
    while (pos_ < text.size()) {
      size_t percent = text.find('%', pos_);
      out_.append(text.substr(pos_, percent - pos_));
      if (percent == text.npos)
        break;
      pos_ = percent + 1;
      convert();
    }
    const bool isTuple = values_.is(Kind::Tuple);
    const bool mayStay = mapping_ || values_.is(Kind::Dict) || values_.is(Kind::List) ||
                         values_.is(Kind::Range) || values_.isUndefined();
    if (isTuple ? next_ < values_.as<List>().items.size() : next_ == 0 && !mayStay)
      session_.fail("not all values are used by the format");
    return out_.value(format_.markup);
  }

private:
  char take() {
    if (pos_ >= format_.text.size())
      session_.fail("the format ends inside a '%' conversion");
    return format_.text[pos_++];
  }
  char peek() const { return pos_ < format_.text.size() ? format_.text[pos_] : 0; }

  Value nextValue() {
    if (values_.is(Kind::Tuple)) {
      const auto &items = values_.as<List>().items;
      if (next_ >= items.size())
        session_.fail("the format needs more values");
      return items[next_++];
    }
    if (next_++ > 0)
      session_.fail("the format needs more values");
    return values_;
  }

  Int number() {
    if (peek() == '*') {
      take();
      Value v = nextValue();
      if (!v.isIntegral())
        session_.fail("'*' in a format needs a whole number");
      return v.asInt();
    }
    Int n = 0;
    while (peek() >= '0' && peek() <= '9') {
      n = n * 10 + (take() - '0');
      if (n > (Int(1) << 40))
        session_.fail("a number in a format is too large");
    }
    return n;
  }

  void convert() {
    session_.step();
    const size_t start = pos_;
    std::optional<Value> keyed;
    if (peek() == '(') {
      take();
      std::string key;
      for (int open = 1;;) {
        char c = take();
        open += (c == '(') - (c == ')');
        if (open == 0)
          break;
        key += c;
      }
      if (!values_.is(Kind::Dict))
        session_.fail("the format needs a mapping");
      const Value *found = values_.as<Dict>().find(key);
      if (!found)
        session_.fail("the format needs a value for '" + key + "'");
      keyed = *found;
      mapping_ = true;
    }
    FormatSpec spec;
    bool left = false, zero = false;
    for (;; take()) {
      char c = peek();
      if (c == '-')
        left = true;
      else if (c == '0')
        zero = true;
      else if (c == '+')
        spec.sign = '+';
      else if (c == ' ')
        spec.sign = spec.sign == '+' ? '+' : ' ';
      else if (c == '#')
        spec.alternate = true;
      else
        break;
    }
    spec.width = number();
    if (spec.width < 0) {
      left = true;
      spec.width = -spec.width;
    }
    if (peek() == '.') {
      take();
      spec.precision = std::max(number(), Int(0));
    }
    while (peek() == 'l' || peek() == 'h' || peek() == 'L')
      take();
    const char type = take();
    if (type == '%') {
      if (pos_ - start != 1)
        nextValue(); // Python takes a value for all but the plain "%%"
      out_.append('%');
      return;
    }
    Value value = keyed ? *keyed : nextValue();
    spec.align = left ? '<' : 0;
    if (zero && !left) {
      spec.align = '=';
      spec.fill = "0";
    }
    append(type, spec, value);
  }

  void append(char type, FormatSpec spec, const Value &value) {
    switch (type) {
    case 's':
    case 'r':
    case 'a':
      appendText(type, spec, value);
      return;
    case 'c':
      if (value.isString() && value.str().length == 1) {
        appendText('s', spec, value);
        return;
      }
      if (!value.isIntegral())
        session_.fail("'%c' needs a whole number or one character");
      [[fallthrough]];
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X':
      appendInteger(type, spec, value);
      return;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
      if (!value.isNumber())
        needNumber(type, value);
      spec.type = type;
      out_.append(formatNumber(session_, spec, Value::real(value.asDouble())));
      return;
    default:
      session_.fail(std::string("'%") + type + "' is no conversion of a format");
    }
  }

  [[noreturn]] void needNumber(char type, const Value &value) {
    if (value.isUndefined())
      session_.failUndefined(value);
    session_.fail(std::string("'%") + type + "' needs a number, not a " + typeName(value));
  }

  void appendText(char type, FormatSpec spec, const Value &value) {
    TextBuilder text(session_);
    if (type == 's')
      appendStr(text, session_, value);
    else if (type == 'a' && value.isString())
      appendQuoted(text, value.text(), true);
    else
      appendRepr(text, session_, value);
    std::string plain = text.take();
    if (format_.markup && !(type == 's' && value.isString() && value.str().markup))
      plain = escapeHtml(session_, plain);
    if (spec.align != '<')
      spec.align = '>'; // text goes to the right here, and zeros don't fill it
    spec.fill = " ";
    out_.append(formatText(session_, spec, plain));
  }

  void appendInteger(char type, FormatSpec spec, const Value &value) {
    if (!value.isNumber())
      needNumber(type, value);
    Value whole = value;
    if (value.is(Kind::Float)) {
      double d = value.asDouble();
      if ((type == 'o' || type == 'x' || type == 'X') || std::fabs(d) >= 0x1p126 || std::isnan(d))
        session_.fail(std::string("'%") + type + "' needs a whole number");
      whole = Value::integer(static_cast<Int>(d));
    }
    spec.type = type == 'i' || type == 'u' ? 'd' : type;
    if (spec.precision) {
      // At least that many digits.
      FormatSpec digits;
      digits.type = spec.type;
      digits.alternate = spec.alternate;
      digits.sign = spec.sign;
      digits.align = '=';
      digits.fill = "0";
      digits.width = *spec.precision + (whole.asInt() < 0 || spec.sign != '-') +
                     (spec.alternate && spec.type != 'd' ? 2 : 0);
      std::string text = formatNumber(session_, digits, whole);
      char align = spec.align ? spec.align : '>';
      out_.append(pad(session_, text, spec.width, spec.fill, align == '=' ? '>' : align));
      return;
    }
    out_.append(formatNumber(session_, spec, whole));
  }

  Session &session_;
  const Str &format_;
  const Value &values_;
  TextBuilder out_;
  size_t pos_ = 0;
  size_t next_ = 0;
  bool mapping_ = false;
};

} // namespace

Value formatPrintf(Session &session, const Value &format, const Value &values) {
  return Printf(session, format.str(), values).run();
}

} // namespace llmrt::jinja
