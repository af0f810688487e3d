//===- CheckedMath.h - arithmetic on numbers from a file ---------------------===//
//
// An unsigned 64-bit value that remembers whether any step that led to it overflowed, so that a
// formula can be written as it stands and asked once at its end.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_PLAN_CHECKEDMATH_H
#define LLMRT_PLAN_CHECKEDMATH_H

#include <cstdint>
#include <optional>

namespace llmrt {

class Checked {
public:
  Checked(uint64_t value) : value_(value) {}
  friend Checked operator+(Checked a, Checked b) {
    Checked r(0);
    r.bad_ = __builtin_add_overflow(a.value_, b.value_, &r.value_) || a.bad_ || b.bad_;
    return r;
  }
  friend Checked operator*(Checked a, Checked b) {
    Checked r(0);
    r.bad_ = __builtin_mul_overflow(a.value_, b.value_, &r.value_) || a.bad_ || b.bad_;
    return r;
  }
  /// Rounds up to a multiple of \p unit, which isn't 0.
  Checked roundUp(uint64_t unit) const {
    Checked up = *this + Checked(unit - 1);
    up.value_ -= up.value_ % unit;
    return up;
  }
  /// Divides by \p by, which isn't 0, rounding up.
  Checked divideUp(uint64_t by) const {
    Checked up = *this + Checked(by - 1);
    up.value_ /= by;
    return up;
  }
  /// The value, or nothing if it doesn't fit.
  std::optional<uint64_t> get() const { return bad_ ? std::nullopt : std::optional(value_); }

private:
  uint64_t value_;
  bool bad_ = false;
};

} // namespace llmrt

#endif // LLMRT_PLAN_CHECKEDMATH_H
