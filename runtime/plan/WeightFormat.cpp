#include "runtime/plan/WeightFormat.h"

#include "runtime/plan/CheckedMath.h"

namespace llmrt {

using fbs::ElementType;
using fbs::Packing;

unsigned elementBits(ElementType type) {
  switch (type) {
  case ElementType::F32:
  case ElementType::I32:
    return 32;
  case ElementType::F16:
  case ElementType::BF16:
    return 16;
  case ElementType::I8:
  case ElementType::U8:
  case ElementType::E8M0:
    return 8;
  case ElementType::I4:
  case ElementType::E2M1:
    return 4;
  case ElementType::I64:
    return 64;
  }
  return 0;
}

const char *elementName(ElementType type) {
  switch (type) {
  case ElementType::F32:
    return "f32";
  case ElementType::F16:
    return "f16";
  case ElementType::BF16:
    return "bf16";
  case ElementType::I8:
    return "i8";
  case ElementType::I4:
    return "i4";
  case ElementType::I32:
    return "i32";
  case ElementType::U8:
    return "u8";
  case ElementType::I64:
    return "i64";
  case ElementType::E2M1:
    return "e2m1";
  case ElementType::E8M0:
    return "e8m0";
  }
  return "?";
}

std::string WeightFormat::name() const {
  std::string s = elementName(element);
  if (packing == Packing::N16)
    s += ".n16";
  if (packing == Packing::N16K4) {
    s += ".g" + std::to_string(group) + "." + elementName(scale);
    if (hasMin)
      s += min == scale ? ".min" : std::string(".min_") + elementName(min);
  }
  return s;
}

static bool isScaleType(ElementType type) {
  return type == ElementType::F32 || type == ElementType::F16;
}

/// Whether N16K4 has such groups.
static bool isGrouped(const WeightFormat &f) {
  if (f.group == 0 || f.group > kMaxGroup)
    return false;
  if (f.element == ElementType::E2M1)
    return f.group % 8 == 0 && f.scale == ElementType::E8M0 && !f.hasMin;
  return (f.element == ElementType::I8 || f.element == ElementType::I4) &&
         f.group % (f.element == ElementType::I4 ? 8 : 4) == 0 && isScaleType(f.scale) &&
         (!f.hasMin || isScaleType(f.min));
}

std::optional<uint64_t> packedBytes(const WeightFormat &f, uint64_t rows, uint64_t columns) {
  unsigned bits = elementBits(f.element);
  if (bits == 0 || rows == 0 || columns == 0)
    return std::nullopt;
  Checked tiles = Checked(rows).divideUp(kTileRows);
  switch (f.packing) {
  case Packing::Rows:
    if (f.group != 0 || f.hasMin || f.element == ElementType::E2M1 ||
        f.element == ElementType::E8M0)
      return std::nullopt;
    return (Checked(rows) * (Checked(columns) * Checked(bits)).divideUp(8)).get();
  case Packing::N16: {
    if (f.group != 0 || f.hasMin)
      return std::nullopt;
    if (f.element != ElementType::F32 && f.element != ElementType::F16 &&
        f.element != ElementType::BF16)
      return std::nullopt;
    Checked k = Checked(columns).roundUp(f.element == ElementType::BF16 ? 2 : 1);
    return (tiles * k * Checked(kTileRows * bits / 8)).get();
  }
  case Packing::N16K4: {
    if (!isGrouped(f))
      return std::nullopt;
    Checked group = Checked(f.group) * Checked(kTileRows * bits / 8) +
                    Checked(kTileRows * elementBits(f.scale) / 8) +
                    Checked(f.hasMin ? kTileRows * elementBits(f.min) / 8 : 0);
    return (tiles * Checked(columns).divideUp(f.group) * group).get();
  }
  }
  return std::nullopt;
}

} // namespace llmrt
