//===- weights.cuh - tiles of a weight as operands of the tensor cores ----------===//
//
// A step is 32 columns of a tile of 16 rows. Lane (g, t) = (lane / 4, lane % 4) holds rows 2g and
// 2g + 1 (which the mma numbers g and g + 8): with that numbering every packing of the plan gives a
// lane its values in 8 contiguous bytes, and the warp reads 256 contiguous bytes at a time. The
// columns of an mma are numbered so that a lane's are those it holds; activations follow
// (Columns below).
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CUDA_WEIGHTS_CUH
#define LLMC_CUDA_WEIGHTS_CUH

#include "rows.cuh"

constexpr int kStepColumns = 32;

/// What the tensor cores multiply.
enum class Compute { F16, BF16, F32 };

/// The A operand of one step: two mma.m16n8k16, or four mma.m16n8k8 of TF32 in two parts (the value
/// rounded to TF32, and what that left over).
template <Compute C> struct WeightFragment {
  unsigned a[2][4];
};
template <> struct WeightFragment<Compute::F32> {
  unsigned high[4][4], low[4][4];
};

/// One step of one tile in shared memory: how it gets there, and fragments from there.
template <class F> struct WeightStep {
  static constexpr Compute kCompute = F::kInteger || F::kElement == kF16 ? Compute::F16
                                      : F::kElement == kBF16             ? Compute::BF16
                                                                         : Compute::F32;
  /// Groups that begin in a step: scales of one, or of two where a group has 16 columns.
  static constexpr int kScaleSets = F::kInteger && F::kGroup == 16 ? 2 : 1;
  static constexpr int kValues =
      F::kInteger ? kStepColumns * (F::kElement == kI4 ? 8 : 16) : kStepColumns * F::kValueBytes;
  static constexpr int kScales = kScaleSets * F::kScaleBytes, kMins = kScaleSets * F::kMinBytes;
  static constexpr int kBytes = kValues + kScales + kMins;
  static constexpr int kPieces = kBytes / 16; ///< of 16 bytes

  LLMC_MEMBER constexpr int steps(int columns) {
    return (columns + kStepColumns - 1) / kStepColumns;
  }

  /// Which step of \p count and which piece of it is the \p p-th to be copied: all values before
  /// scales and minimums, so that eight lanes fill one line of the banks.
  LLMC_MEMBER void find(int p, int count, int &at, int &piece) {
    constexpr int kFirst = kValues / 16, kRest = kPieces > kFirst ? kPieces - kFirst : 1;
    if (kPieces == kFirst || p < count * kFirst) {
      at = p / kFirst, piece = p % kFirst;
    } else {
      at = (p - count * kFirst) / kRest, piece = kFirst + (p - count * kFirst) % kRest;
    }
  }

  /// Copies piece \p piece of step \p step of \p tile to its place in \p shared; zeros where \p
  /// keep is false or the matrix has no such columns.
  template <int K>
  LLMC_MEMBER void copyPiece(unsigned char *shared, const unsigned char *tile, int step, int piece,
                             bool keep) {
    if constexpr (!F::kInteger) {
      // Lines of a column (bf16: two columns). So that what half a warp reads lies in different
      // banks, f16 lines swap places, others their halves.
      constexpr int kLine = F::kElement == kF16 ? 32 : 64;
      constexpr int kColumnsALine = F::kElement == kBF16 ? 2 : 1;
      const int line = piece * 16 / kLine, inLine = piece * 16 % kLine;
      const int column = step * kStepColumns + line * kColumnsALine;
      const int place = F::kElement == kF16 ? (line ^ (line >> 2 & 1)) * kLine + inLine
                                            : line * kLine + (inLine ^ (line & 2) * 16);
      const bool exists = keep && column < K;
      copyAsync16(
          shared + place,
          tile + (exists ? static_cast<long long>(column / kColumnsALine) * kLine + inLine : 0),
          exists);
    } else {
      constexpr int kGroups = (K + F::kGroup - 1) / F::kGroup;
      constexpr int kSetValues = kValues / kScaleSets;
      int set, inGroup; // which group of the step, and the byte in it
      int place = piece;
      if (piece * 16 < kValues) {
        place = piece ^ (piece >> 2 & 2); // those of lanes t and t + 2 lie in different banks
        set = piece * 16 / kSetValues;
        const int column = kScaleSets == 1 ? step * kStepColumns % F::kGroup : 0;
        inGroup = column * (F::kElement == kI4 ? 8 : 16) + piece * 16 % kSetValues;
      } else if (piece * 16 < kValues + kScales) {
        const int byte = piece * 16 - kValues;
        set = byte / F::kScaleBytes;
        inGroup = F::kValueBytes + byte % F::kScaleBytes;
      } else {
        const int byte = piece * 16 - kValues - kScales;
        set = byte / (F::kMinBytes > 0 ? F::kMinBytes : 1);
        inGroup = F::kValueBytes + F::kScaleBytes + byte % (F::kMinBytes > 0 ? F::kMinBytes : 1);
      }
      const int group = kScaleSets == 1 ? step * kStepColumns / F::kGroup : step * kScaleSets + set;
      const bool exists = keep && group < kGroups;
      copyAsync16(shared + place * 16,
                  tile + (exists ? static_cast<long long>(group) * F::kGroupBytes + inGroup : 0),
                  exists);
    }
  }

  LLMC_MEMBER void load(WeightFragment<kCompute> &f, const unsigned char *shared, int lane) {
    const int g = lane / 4, t = lane % 4;
    if constexpr (F::kInteger && F::kElement == kI4) {
      // A word: 8 columns of a row, columns 0 to 3 in the low nibbles of its bytes.
      const uint2 words =
          *reinterpret_cast<const uint2 *>(shared + t * 64 + (g * 8 ^ (t & 2) * 16));
      Scales s;
      s.load(shared, g, kScaleSets == 2 ? t / 2 : 0);
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const unsigned even = words.x >> (4 * j) & 0x0f0f0f0fu;
        const unsigned odd = words.y >> (4 * j) & 0x0f0f0f0fu;
        f.a[j][0] = s.even(biased(even, 0));
        f.a[j][1] = s.odd(biased(odd, 0));
        f.a[j][2] = s.even(biased(even, 1));
        f.a[j][3] = s.odd(biased(odd, 1));
      }
    } else if constexpr (F::kInteger) {
      // A word: 4 columns of a row, a byte each; 128 more is unsigned.
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const uint2 words =
            *reinterpret_cast<const uint2 *>(shared + j * 256 + t * 64 + (g * 8 ^ (t & 2) * 16));
        Scales s;
        s.load(shared, g, kScaleSets == 2 ? j : 0);
        f.a[j][0] = s.even(biased(words.x ^ 0x80808080u, 0));
        f.a[j][1] = s.odd(biased(words.y ^ 0x80808080u, 0));
        f.a[j][2] = s.even(biased(words.x ^ 0x80808080u, 1));
        f.a[j][3] = s.odd(biased(words.y ^ 0x80808080u, 1));
      }
    } else if constexpr (F::kElement == kF16) {
      // A word: one column of rows 2g and 2g + 1.
      auto word = [&](int column) -> unsigned {
        return *reinterpret_cast<const unsigned *>(shared + (column ^ (column >> 2 & 1)) * 32 +
                                                   g * 4);
      };
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const unsigned first = word(16 * j + 8 * h + 2 * t);
          const unsigned second = word(16 * j + 8 * h + 2 * t + 1);
          f.a[j][2 * h] = __byte_perm(first, second, 0x5410);
          f.a[j][2 * h + 1] = __byte_perm(first, second, 0x7632);
        }
    } else if constexpr (F::kElement == kBF16) {
      // A word: two columns of a row.
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const uint2 words = *reinterpret_cast<const uint2 *>(shared + (8 * j + 4 * h + t) * 64 +
                                                               (g * 8 ^ (t & 2) * 16));
          f.a[j][2 * h] = words.x;
          f.a[j][2 * h + 1] = words.y;
        }
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const float2 values = *reinterpret_cast<const float2 *>(
              shared + (8 * i + 4 * h + t) * 64 + (g * 8 ^ (t & 2) * 16));
          splitTf32(values.x, f.high[i][2 * h], f.low[i][2 * h]);
          splitTf32(values.y, f.high[i][2 * h + 1], f.low[i][2 * h + 1]);
        }
    }
  }

  /// A value as the sum of two of TF32.
  LLMC_MEMBER void splitTf32(float v, unsigned &high, unsigned &low) {
    high = floatToTf32(v);
    low = floatToTf32(v - __uint_as_float(high));
  }

private:
  /// Bytes 2 \p half and 2 half + 1 of \p word as f16, plus 1024: 0x6400 + q is 1024 + q.
  LLMC_MEMBER unsigned biased(unsigned word, int half) {
    return __byte_perm(word, 0x64646464u, half == 0 ? 0x4140 : 0x4342);
  }

  /// Scales (and minimums) of rows 2g and 2g + 1, each as a pair of equal f16.
  struct Scales {
    unsigned evenScale, oddScale, evenMin, oddMin;

    LLMC_METHOD void load(const unsigned char *shared, int g, int set) {
      pair<F::kScale>(shared + kValues + set * F::kScaleBytes, g, evenScale, oddScale);
      evenMin = oddMin = 0;
      if constexpr (F::kHasMin)
        pair<F::kMin>(shared + kValues + kScales + set * F::kMinBytes, g, evenMin, oddMin);
    }
    LLMC_METHOD unsigned even(unsigned biasedValues) const {
      return scaled(biasedValues, evenScale, evenMin);
    }
    LLMC_METHOD unsigned odd(unsigned biasedValues) const {
      return scaled(biasedValues, oddScale, oddMin);
    }

  private:
    template <int E>
    LLMC_MEMBER void pair(const unsigned char *at, int g, unsigned &even, unsigned &odd) {
      unsigned both;
      if constexpr (E == kF16) {
        both = *reinterpret_cast<const unsigned *>(at + g * 4);
      } else {
        const float2 values = *reinterpret_cast<const float2 *>(at + g * 8);
        both = packF16(values.x, values.y);
      }
      even = __byte_perm(both, both, 0x1010);
      odd = __byte_perm(both, both, 0x3232);
    }
    /// scale * (q - zero), or scale * q + min: the subtraction is exact, the rest rounds once.
    LLMC_MEMBER unsigned scaled(unsigned biasedValues, unsigned scale, unsigned min) {
      // 1024, and what was added to make q unsigned: 8 for i4 without a minimum, 128 for i8.
      constexpr unsigned kBias = F::kElement == kI8 ? 0x6480u : F::kHasMin ? 0x6400u : 0x6408u;
      const unsigned q = subtractF16(biasedValues, kBias << 16 | kBias);
      if constexpr (F::kHasMin)
        return fmaF16(q, scale, min);
      else
        return multiplyF16(q, scale);
    }
  };
};

/// Which columns of a step lane t holds, as runs of consecutive ones: column(t, i) is the first of
/// the i-th run of kRun; fragment registers take them in that order.
template <class F> struct Columns {
  static constexpr int kRun = F::kInteger ? 4 : F::kElement == kF32 ? 1 : 2;
  static constexpr int kRuns = 8 / kRun;
  LLMC_MEMBER int column(int t, int i) {
    if constexpr (F::kInteger && F::kElement == kI4)
      return 8 * t + 4 * i;
    else if constexpr (F::kInteger)
      return 16 * i + 4 * t;
    else if constexpr (F::kElement == kF32)
      return 4 * i + t;
    else
      return 8 * i + 2 * t;
  }
};

#endif // LLMC_CUDA_WEIGHTS_CUH
