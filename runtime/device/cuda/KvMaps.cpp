#include "runtime/device/cuda/KvMaps.h"

namespace llmrt::cuda {
namespace {

constexpr uint64_t elementBytes = 2;
/// What a copy takes: 128 bytes, the swizzle's width, of 16 tokens, which every block has.
constexpr unsigned boxElements = 64, pageTokens = 16;

int64_t constant(const fbs::Kernel &k, std::string_view name) {
  for (const fbs::Constant *c : *k.constants())
    if (c->name()->string_view() == name)
      return c->value();
  return 0;
}

} // namespace

bool takesKvMaps(const fbs::Kernel &kernel, std::string_view architecture) {
  const int64_t size = constant(kernel, "key_size"), element = constant(kernel, "kv_element");
  return architecture == "sm_90a" && kernel.kind()->string_view() == "attention" &&
         (size == 64 || size == 128) && size == constant(kernel, "value_size") &&
         (element == 1 || element == 2) && constant(kernel, "latent") == 0;
}

Result<LlmrtKvMaps> encodeKvMaps(const Driver &driver, const fbs::Kernel &kernel, int64_t prefix,
                                 const KvMemory &memory) {
  if (!driver.TensorMapEncodeTiled)
    return unsupported("kernel '" + kernel.symbol()->str() +
                       "' copies by tensor maps, which the NVIDIA driver has from CUDA 12.0 on; "
                       "update the driver");
  const uint64_t size = uint64_t(constant(kernel, "key_size"));
  const uint64_t heads = uint64_t(constant(kernel, "kv_heads"));
  const uint64_t rowBytes = size * elementBytes, tokens = uint64_t(memory.blockTokens);
  const CUdeviceptr keys = memory.address + uint64_t(prefix) * tokens;
  LlmrtKvMaps maps{};
  auto encode = [&](LlmrtTensorMap &map, CUdeviceptr base, unsigned boxTokens) {
    const uint64_t sizes[] = {size, tokens, heads, uint64_t(memory.blocks)};
    const uint64_t strides[] = {rowBytes, 2 * rowBytes * tokens, memory.blockBytes};
    const unsigned box[] = {boxElements, boxTokens, 1, 1}, elementStrides[] = {1, 1, 1, 1};
    return driver.check(
        driver.TensorMapEncodeTiled(
            &map, CU_TENSOR_MAP_DATA_TYPE_UINT16, 4, reinterpret_cast<void *>(base), sizes, strides,
            box, elementStrides, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
            CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
        "the tensor map of the KV cache for kernel '" + kernel.symbol()->str() + "'");
  };
  const CUdeviceptr values = keys + rowBytes * tokens;
  LLMRT_RETURN_IF_ERROR(encode(maps.keyPage, keys, pageTokens));
  LLMRT_RETURN_IF_ERROR(encode(maps.keyToken, keys, 1));
  LLMRT_RETURN_IF_ERROR(encode(maps.valuePage, values, pageTokens));
  LLMRT_RETURN_IF_ERROR(encode(maps.valueToken, values, 1));
  return maps;
}

} // namespace llmrt::cuda
