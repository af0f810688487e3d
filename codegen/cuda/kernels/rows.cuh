//===- rows.cuh - what every kernel knows of the step and its memory ----------===//
#ifndef LLMC_CUDA_ROWS_CUH
#define LLMC_CUDA_ROWS_CUH

#include "device.cuh"

/// The values of the plan's ElementType and Packing.
enum Element { kF32 = 0, kF16 = 1, kBF16 = 2, kI8 = 3, kI4 = 4 };
enum Packing { kRows = 0, kN16 = 1, kN16K4 = 2 };

/// What a kernel's rows are.
enum class RowsOf { Tokens, Logits };

template <RowsOf Rows> LLMC_FN long long countRows(const LlmrtCudaStep *step) {
  return Rows == RowsOf::Logits ? step->R : step->T;
}

template <class T> LLMC_FN T *binding(const LlmrtCudaBindings &b, int index) {
  return static_cast<T *>(b.pointers[index]);
}

/// The bytes of an int8 row: K values, K / Group f32 scales, K / Group int32 sums; K is padded to
/// the group. Rows follow each other without padding, so their parts are 4-byte aligned only.
template <int K, int Group> struct Int8Row {
  static constexpr int kPadded = (K + Group - 1) / Group * Group;
  static constexpr int kGroups = kPadded / Group;
  static constexpr int kBytes = kPadded + 8 * kGroups;
};

/// Element \p i of memory that holds elements of type \p E, as f32.
template <int E> LLMC_FN float loadElement(const void *p, long long i) {
  if constexpr (E == kF32)
    return static_cast<const float *>(p)[i];
  else if constexpr (E == kF16)
    return f16ToFloat(static_cast<const f16 *>(p)[i]);
  else
    return bf16ToFloat(static_cast<const bf16 *>(p)[i]);
}
template <int E> LLMC_FN void storeElement(void *p, long long i, float v) {
  if constexpr (E == kF32)
    static_cast<float *>(p)[i] = v;
  else if constexpr (E == kF16)
    static_cast<f16 *>(p)[i] = floatToF16(v);
  else
    static_cast<bf16 *>(p)[i] = floatToBf16(v);
}

template <int E> struct ElementBytes {
  static constexpr int value = E == kF32 ? 4 : E == kI8 ? 1 : 2;
};

/// How a weight lies in memory (compiler/quantize/Pack.h): the fields of WeightFormat.
template <int ElementT, int PackingT, int GroupT, int ScaleT, bool HasMinT, int MinT>
struct WeightFormat {
  static constexpr int kElement = ElementT, kPacking = PackingT, kGroup = GroupT, kScale = ScaleT;
  static constexpr bool kHasMin = HasMinT;
  static constexpr int kMin = MinT;
  static constexpr bool kInteger = kPacking == kN16K4;
  /// Of one tile of 16 rows and one group of columns.
  static constexpr int kValueBytes =
      kInteger ? kGroup * 16 / (kElement == kI4 ? 2 : 1) : 16 * ElementBytes<kElement>::value;
  static constexpr int kScaleBytes = kInteger ? 16 * ElementBytes<kScale>::value : 0;
  static constexpr int kMinBytes = kInteger && kHasMin ? 16 * ElementBytes<kMin>::value : 0;
  static constexpr int kGroupBytes = kValueBytes + kScaleBytes + kMinBytes;

  /// Bytes of a tile of 16 rows and \p columns.
  LLMC_MEMBER constexpr long long tileBytes(long long columns) {
    if constexpr (kInteger)
      return (columns + kGroup - 1) / kGroup * kGroupBytes;
    else
      return (kElement == kBF16 && kPacking == kN16 ? columns + columns % 2 : columns) *
             kValueBytes;
  }

  /// The value at (\p row, \p k), rounded as the CPU's kernels round it.
  LLMC_MEMBER float at(const unsigned char *w, long long row, int k, int columns) {
    if constexpr (kPacking == kRows) {
      return loadElement<kElement>(w, row * columns + k);
    } else {
      const unsigned char *tile = w + row / 16 * tileBytes(columns);
      const int r = static_cast<int>(row % 16);
      if constexpr (kPacking == kN16) {
        return loadElement<kElement>(tile,
                                     kElement == kBF16 ? k / 2 * 32 + r * 2 + k % 2 : k * 16 + r);
      } else {
        const unsigned char *group = tile + static_cast<long long>(k / kGroup) * kGroupBytes;
        const int i = k % kGroup;
        const float scale = loadElement<kScale>(group + kValueBytes, r);
        float offset = kElement == kI4 ? -8.0f * scale : 0.0f;
        if constexpr (kHasMin)
          offset = loadElement<kMin>(group + kValueBytes + kScaleBytes, r);
        int q;
        if constexpr (kElement == kI4)
          q = group[i / 8 * 64 + 4 * r + i % 4] >> (i / 4 % 2 * 4) & 15;
        else
          q = static_cast<signed char>(group[i / 4 * 64 + 4 * r + i % 4]);
        return fmaf(static_cast<float>(q), scale, offset);
      }
    }
  }
};

#endif // LLMC_CUDA_ROWS_CUH
