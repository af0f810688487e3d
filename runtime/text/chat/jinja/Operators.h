//===- Operators.h - arithmetic and comparison, as in Python ------------------------===//
#ifndef LLMRT_TEXT_CHAT_JINJA_OPERATORS_H
#define LLMRT_TEXT_CHAT_JINJA_OPERATORS_H

#include "runtime/text/chat/jinja/Ast.h"
#include "runtime/text/chat/jinja/Session.h"

namespace llmrt::jinja {

/// left op right, for the arithmetic operators. Integers that leave 128 bits, division by zero
/// and types that don't fit are errors.
Value applyBinary(Session &session, Operator op, const Value &left, const Value &right);
bool applyCompare(Session &session, Operator op, const Value &left, const Value &right);
/// -operand, or +operand.
Value applySign(Session &session, bool negate, const Value &operand);

/// Floor division and the remainder with the divisor's sign; \p b isn't 0.
Int floorDivide(Int a, Int b);
inline Int floorModulo(Int a, Int b) { return a - floorDivide(a, b) * b; }

} // namespace llmrt::jinja

#endif // LLMRT_TEXT_CHAT_JINJA_OPERATORS_H
