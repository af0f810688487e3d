#include "compiler/passes/raise/ModelInputs.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::raise;

/// The last run of digits in a name, or -1.
static int64_t numberIn(StringRef name) {
  size_t end = name.find_last_of("0123456789");
  if (end == StringRef::npos)
    return -1;
  StringRef digits = name.take_front(end + 1);
  size_t before = digits.find_last_not_of("0123456789");
  digits = before == StringRef::npos ? digits : digits.drop_front(before + 1);
  int64_t value;
  return digits.getAsInteger(10, value) || value > 100000 ? -1 : value;
}

Binding llmc::raise::bindName(StringRef name) {
  if (name == "input_ids" || name == "tokens")
    return {Role::TokenIds, -1};
  if (name == "attention_mask")
    return {Role::AttentionMask, -1};
  if (name == "position_ids" || name == "positions")
    return {Role::PositionIds, -1};
  if (name == "logits" || name == "lm_logits")
    return {Role::Logits, -1};
  bool isPast = name.starts_with("past"), isPresent = name.starts_with("present");
  int64_t layer = numberIn(name);
  if ((isPast || isPresent) && layer >= 0) {
    // The prefix itself holds "key" and "value" ("past_key_values"), so only what follows it
    // counts.
    StringRef rest = name;
    if (!rest.consume_front("past_key_values") && !rest.consume_front("present_key_values"))
      rest.consume_front(isPast ? "past" : "present");
    if (rest.contains("key"))
      return {isPast ? Role::PastKey : Role::PresentKey, layer};
    if (rest.contains("value"))
      return {isPast ? Role::PastValue : Role::PresentValue, layer};
  }
  return {};
}

StringRef llmc::raise::argumentName(func::FuncOp func, unsigned index) {
  auto name = func.getArgAttrOfType<StringAttr>(index, graph::kNameAttr);
  return name ? name.getValue() : StringRef();
}

StringRef llmc::raise::resultName(func::FuncOp func, unsigned index) {
  auto name = func.getResultAttrOfType<StringAttr>(index, graph::kNameAttr);
  return name ? name.getValue() : StringRef();
}
