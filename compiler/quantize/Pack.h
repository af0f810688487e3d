//===- Pack.h - weights in the order in which the kernels read them ----------===//
//
// A matrix [N, K] is packed 16 rows (a tile) at a time, so that a tensor can be streamed: tile t
// holds rows [16 t, 16 t + 16) and lies at t * packedTileBytes. Rows beyond N are zeros.
//
//   N16    f32, f16: [K][16]          bf16: [K/2][16][2], K padded to 2 with a zero
//   N16K4  for each group along K, K padded to the group:
//            i4: for each pair of quads (4 along K): 64 bytes; byte 4*r+i holds row r, element i
//                of the quad, the even quad in the low nibble, the odd one in the high nibble
//            e2m1: codes in i4's places
//            i8: for each quad 64 bytes in the same order
//            then 16 scales, then 16 minimums where the format has them
//
// `unpack` is the exact inverse and the oracle of the kernels' tests. Plain C++, no MLIR.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_COMPILER_QUANTIZE_PACK_H
#define LLMC_COMPILER_QUANTIZE_PACK_H

#include <cstdint>
#include <optional>
#include <span>

namespace llmc {

/// The values of ElementType in plan.fbs.
enum class Element : uint8_t {
  F32 = 0,
  F16 = 1,
  BF16 = 2,
  I8 = 3,
  I4 = 4,
  I32 = 5,
  U8 = 6,
  I64 = 7,
  E2M1 = 8,
  E8M0 = 9
};

/// The values of Packing in plan.fbs.
enum class Packing : uint8_t { Rows = 0, N16 = 1, N16K4 = 2 };

/// How a weight lies in a plan: the fields of WeightFormat in plan.fbs. A value of an N16K4 weight
/// is scale * q + min with a minimum; without, scale * (q - 8) for i4 and scale * q for i8. Of
/// e2m1, q is twice the value and the scale half the power of two that e8m0 stores: what an i8
/// would hold.
struct WeightFormat {
  Element element = Element::F32;
  Packing packing = Packing::N16;
  uint32_t group = 0;           ///< along K; N16K4 only: a multiple of 8 (i4, e2m1) or 4 (i8)
  Element scale = Element::F32; ///< F32 or F16; E8M0 with e2m1; N16K4 only
  bool hasMin = false;
  Element min = Element::F32; ///< F32 or F16

  bool operator==(const WeightFormat &) const = default;
};

inline constexpr uint64_t kTileRows = 16;

/// Twice the value of an e2m1 code, 0 to 15 (OCP Microscaling 1.0), a whole number.
int8_t doubledE2m1(int code);
/// Half of the power of two that \p exponent stands for in e8m0: 2^(e - 128), a NaN for 255.
float halfPowerOfTwo(uint8_t exponent);

/// Bits of one value: 4 to 64.
uint64_t elementBits(Element element);

/// True for every combination that the kernels know: Rows and N16 of f32, f16, bf16; N16K4 of i8,
/// i4, e2m1.
bool isValidFormat(const WeightFormat &format);

/// Bytes of one 16-row tile of a matrix with \p columns; nullopt for a format that isn't valid or
/// a size beyond 64 bits. For Rows: the bytes of 16 rows.
std::optional<uint64_t> packedTileBytes(const WeightFormat &format, uint64_t columns);

/// Bytes of a whole matrix; nullopt as above. Rows are not padded with Packing::Rows.
std::optional<uint64_t> packedBytes(const WeightFormat &format, uint64_t rows, uint64_t columns);

/// Packs 1 to 16 rows of f32 values into a tile of an N16 format; f16 and bf16 are rounded to
/// nearest even (exact where the source had that type). \p rows: each of \p columns values.
void packTile(const WeightFormat &format, uint64_t columns, std::span<const float *const> rows,
              uint8_t *tile);

/// One row of a quantized matrix. \p q: a value a byte, columns of them (i4: 0..15; i8 and e2m1:
/// two's complement). \p scales, \p mins: one a group, ceil(columns / group) of them.
struct QuantizedRow {
  const uint8_t *q = nullptr;
  const float *scales = nullptr;
  const float *mins = nullptr; ///< null without minimums
};

/// Packs 1 to 16 quantized rows into a tile of an N16K4 format. Padding along K has the value zero
/// (with minimums q 0, which meets only zero activations). Scales narrower than f32 are rounded to
/// nearest even: give values that fit where exactness matters.
void packTile(const WeightFormat &format, uint64_t columns, std::span<const QuantizedRow> rows,
              uint8_t *tile);

/// Writes row \p row (0 .. 15) of a tile as f32 values: exactly what the kernels multiply with.
void unpackRow(const WeightFormat &format, uint64_t columns, const uint8_t *tile, unsigned row,
               float *values);

/// The parts of a quantized row of an N16K4 tile, in the form of QuantizedRow. \p mins may be null.
void unpackQuantizedRow(const WeightFormat &format, uint64_t columns, const uint8_t *tile,
                        unsigned row, uint8_t *q, float *scales, float *mins);

} // namespace llmc

#endif // LLMC_COMPILER_QUANTIZE_PACK_H
