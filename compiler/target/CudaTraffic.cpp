#include "compiler/target/CudaTraffic.h"

using namespace llmc;

static constexpr CudaTraffic kTraffic[] = {
#define LLMC_CUDA_TRAFFIC(Kernel, Banks, Sectors) {Kernel, Banks, Sectors},
#include "compiler/target/CudaTraffic.inc"
};

std::span<const CudaTraffic> llmc::cudaTraffic() { return kTraffic; }

const CudaTraffic *llmc::findCudaTraffic(std::string_view name) {
  for (const CudaTraffic &row : kTraffic)
    if (row.kernel == name)
      return &row;
  return nullptr;
}

std::string llmc::cudaTrafficName(std::string_view kind,
                                  const std::function<int64_t(std::string_view)> &constant,
                                  bool isNarrow, bool isWgmma) {
  // Names of ElementType, by number (plan.fbs); a KV cache has the same numbers.
  auto element = [&](std::string_view name) -> std::string {
    static constexpr std::string_view names[] = {"f32", "f16", "bf16", "i8", "i4"};
    const int64_t e = constant(name);
    return std::string(e >= 0 && e < 5 ? names[e] : "?");
  };
  if (kind == "gemm" || kind == "grouped_gemm") {
    std::string name = std::string(kind) + " " + element("w_element");
    if (constant("w_group") != 0)
      name += " g" + std::to_string(constant("w_group")) + " " + element("w_scale");
    if (constant("w_has_min") != 0)
      name += " min " + element("w_min");
    if (constant("x_int8") != 0)
      name += " x int8";
    return name + (isNarrow ? ", few tokens" : ", many tokens");
  }
  if (kind == "attention") {
    const int64_t keys = constant("key_size"), values = constant("value_size");
    std::string name = "attention " + element("kv_element") + " d" + std::to_string(keys);
    if (keys != values)
      name += "/" + std::to_string(values);
    if (constant("latent") != 0)
      name += " latent";
    return name + (isWgmma ? " wgmma" : "") + (isNarrow ? ", decode" : ", prefill");
  }
  return "";
}
