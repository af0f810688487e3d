#include "compiler/import/huggingface/QuantizedCheckpoint.h"

#include "compiler/import/common/CheckpointForm.h"

#include <algorithm>
#include <cstring>

using namespace llmrt;

namespace llmc {
namespace {

constexpr const char *kMethods =
    "gptq, awq (gemm), bitsandbytes (nf4, fp4, int8), fp8, fbgemm_fp8, compressed-tensors "
    "(pack-quantized, float-quantized), mxfp4";

class ConfigReader {
public:
  ConfigReader(const JsonFile &file, JsonValue root) : file_(file), root_(root) {}

  Result<QuantizationConfig> read() {
    LLMRT_ASSIGN_OR_RETURN(const auto method, file_.string(root_, "quant_method"));
    config_.method = method.value_or("");
    LLMRT_RETURN_IF_ERROR(readMethod());
    if (config_.bits != 4 && config_.bits != 8)
      return refuse("has weights of " + std::to_string(config_.bits) + " bits; 4 and 8 are read");
    return config_;
  }

private:
  Status refuse(const std::string &why) const {
    return unsupported("config.json: quantization_config " + why);
  }

  Status readMethod() {
    const std::string &method = config_.method;
    if (method == "gptq" || method == "awq")
      return readWords(method == "awq");
    if (method == "bitsandbytes" || method == "fbgemm_fp8") {
      config_.bits = 8; // the tensors say the rest
      config_.block = 1;
      return Status::ok();
    }
    if (method == "mxfp4") {
      config_.block = 32;
      return Status::ok();
    }
    if (method == "fp8")
      return readFp8();
    if (method == "compressed-tensors")
      return readCompressed();
    return refuse("has the quant_method '" + method +
                  "', which is not supported; supported: " + kMethods);
  }

  /// A whole number under the first of \p keys that is there; -1 stands for a row.
  Result<uint64_t> groupSize(JsonValue in, std::initializer_list<const char *> keys) {
    for (const char *key : keys) {
      LLMRT_ASSIGN_OR_RETURN(const std::optional<double> size, file_.number(in, key));
      if (!size)
        continue;
      if (*size == -1)
        return uint64_t(0);
      if (*size < 1 || *size != static_cast<double>(static_cast<uint64_t>(*size)) || *size > 1e9)
        return file_.fail(std::string("'") + key + "' is " + std::to_string(*size) +
                          "; a whole number from 1 on, or -1, is needed");
      return static_cast<uint64_t>(*size);
    }
    return uint64_t(0);
  }

  Status readWords(bool awq) {
    LLMRT_ASSIGN_OR_RETURN(auto bits, file_.unsignedInteger(root_, "bits"));
    if (!bits) {
      LLMRT_ASSIGN_OR_RETURN(bits, file_.unsignedInteger(root_, "w_bit"));
    }
    config_.bits = bits.value_or(4);
    LLMRT_ASSIGN_OR_RETURN(config_.group, groupSize(root_, {"group_size", "q_group_size"}));
    LLMRT_ASSIGN_OR_RETURN(const auto format, file_.string(root_, "checkpoint_format"));
    LLMRT_ASSIGN_OR_RETURN(const auto version, file_.string(root_, "version"));
    if (awq) {
      std::string name = version.value_or("gemm");
      for (char &c : name)
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
      if (name != "gemm")
        return refuse("has awq weights of the version '" + *version + "'; 'gemm' is read");
      return Status::ok();
    }
    const std::string form = format.value_or("gptq");
    if (form != "gptq" && form != "gptq_v2")
      return refuse("has the checkpoint_format '" + form + "'; 'gptq' and 'gptq_v2' are read");
    config_.v2 = form == "gptq_v2";
    return Status::ok();
  }

  Status readFp8() {
    config_.bits = 8;
    config_.block = 1;
    LLMRT_ASSIGN_OR_RETURN(const auto format, file_.string(root_, "fmt"));
    if (format && *format != "e4m3")
      return refuse("has fp8 values of the form '" + *format + "'; 'e4m3' is read");
    const JsonValue block = root_["weight_block_size"];
    if (block.isNull())
      return Status::ok();
    std::vector<int64_t> sizes;
    for (JsonValue size : block.elements())
      sizes.push_back(size.asInteger().value_or(0));
    if (sizes.size() != 2 || sizes[0] != sizes[1] || sizes[0] < 2)
      return refuse("has a weight_block_size that is not two equal numbers from 2 on");
    config_.block = static_cast<uint64_t>(sizes[0]);
    return Status::ok();
  }

  Status readCompressed() {
    LLMRT_ASSIGN_OR_RETURN(const auto format, file_.string(root_, "format"));
    const JsonValue groups = root_["config_groups"];
    if (!groups.isObject() || groups.size() != 1)
      return refuse("must have one entry in 'config_groups'");
    JsonValue weights;
    std::string own;
    for (auto [name, entry] : groups.members()) {
      weights = entry["weights"];
      LLMRT_ASSIGN_OR_RETURN(const auto inGroup, file_.string(entry, "format"));
      own = inGroup.value_or(format.value_or(""));
    }
    if (!weights.isObject())
      return refuse("has no 'weights' in its config group");
    LLMRT_ASSIGN_OR_RETURN(const auto bits, file_.unsignedInteger(weights, "num_bits"));
    LLMRT_ASSIGN_OR_RETURN(const auto strategy, file_.string(weights, "strategy"));
    config_.bits = bits.value_or(8);
    LLMRT_ASSIGN_OR_RETURN(config_.group, groupSize(weights, {"group_size"}));
    config_.block = 1;
    if (own == "pack-quantized" && strategy.value_or("group") != "tensor")
      return Status::ok();
    if (own == "float-quantized" && strategy.value_or("tensor") != "block")
      return Status::ok();
    return refuse("has compressed-tensors of the format '" + own + "' with the strategy '" +
                  strategy.value_or("") +
                  "'; pack-quantized by group or channel and float-quantized by tensor or channel "
                  "are read");
  }

  const JsonFile &file_;
  JsonValue root_;
  QuantizationConfig config_;
};

/// Joins the tensors of one matrix after the other.
class Joiner {
public:
  Joiner(const Checkpoint &checkpoint, const QuantizationConfig &config, TensorTable &table,
         std::set<std::string> &taken)
      : checkpoint_(checkpoint), config_(config), table_(table), taken_(taken) {}
  size_t integers = 0, floats = 0;

  Status run() {
    for (const Checkpoint::Tensor &tensor : checkpoint_.tensors()) {
      const std::string &name = tensor.name;
      if (name.ends_with(".qweight"))
        LLMRT_RETURN_IF_ERROR(joinWords(tensor, name.substr(0, name.size() - 8)));
      else if (name.ends_with("_blocks") && config_.method == "mxfp4")
        LLMRT_RETURN_IF_ERROR(joinMicroscaled(tensor, name.substr(0, name.size() - 7)));
      else if (name.ends_with(".weight_packed"))
        LLMRT_RETURN_IF_ERROR(joinPacked(tensor, name.substr(0, name.size() - 14)));
      else if (name.ends_with(".weight"))
        LLMRT_RETURN_IF_ERROR(joinWeight(tensor, name.substr(0, name.size() - 7)));
    }
    return Status::ok();
  }

private:
  using Tensor = Checkpoint::Tensor;

  Status fail(const Tensor &tensor, const std::string &why) const {
    return invalidFile(checkpoint_.files()[tensor.file].path() + ": tensor '" + tensor.name + "' " +
                       why);
  }

  /// A tensor that belongs to \p tensor, or null.
  const Tensor *part(const std::string &name) {
    const Tensor *found = checkpoint_.find(name);
    if (found)
      taken_.insert(name);
    return found;
  }
  Result<const Tensor *> need(const Tensor &tensor, const std::string &name) {
    if (const Tensor *found = part(name))
      return found;
    return fail(tensor, "needs '" + name + "', which is missing");
  }

  std::span<const uint8_t> bytesOf(const Tensor &tensor) const {
    return checkpoint_.files()[tensor.file].bytes().subspan(tensor.offset, tensor.size);
  }

  Result<WeightEncoding> floatEncoding(const Tensor &tensor) const {
    if (tensor.dtype == "F32")
      return WeightEncoding::F32;
    if (tensor.dtype == "F16")
      return WeightEncoding::F16;
    if (tensor.dtype == "BF16")
      return WeightEncoding::BF16;
    return fail(tensor, "is of dtype " + tensor.dtype + "; F32, F16 and BF16 are supported");
  }

  Status needDtype(const Tensor &tensor, const char *dtype, size_t dimensions) const {
    if (tensor.dtype != dtype || tensor.shape.size() != dimensions)
      return fail(tensor, "is of dtype " + tensor.dtype + " with " +
                              std::to_string(tensor.shape.size()) + " dimensions; " + dtype +
                              " with " + std::to_string(dimensions) + " is needed");
    return Status::ok();
  }

  /// Checks the whole by the reader that will read it, and adds the entry.
  Status add(const Tensor &data, const std::string &base, WeightSource source,
             const std::vector<const Tensor *> &parts) {
    return addNamed(data, base + ".weight", std::move(source), parts);
  }
  Status addNamed(const Tensor &data, std::string name, WeightSource source,
                  const std::vector<const Tensor *> &parts, std::vector<int64_t> shape = {}) {
    source.name = std::move(name);
    source.data = bytesOf(data);
    if (Status status = source.check(); !status)
      return status.withContext(checkpoint_.files()[data.file].path());
    (source.quantizedFormat() ? integers : floats) += 1;
    TensorEntry entry;
    entry.name = source.name;
    if (shape.empty())
      shape = {static_cast<int64_t>(source.rows), static_cast<int64_t>(source.columns)};
    entry.shape.assign(shape.begin(), shape.end());
    entry.encoding = source.encoding;
    entry.file = data.file;
    entry.offset = data.offset;
    entry.size = data.size;
    for (const Tensor *tensor : parts)
      entry.parts.push_back({tensor->file, tensor->offset, tensor->size});
    entry.block = static_cast<int64_t>(source.block);
    entry.bits = source.bits;
    entry.scaleEncoding = source.scaleEncoding;
    entry.scaleOffset = source.scaleOffset;
    taken_.insert(data.name);
    table_.add(std::move(entry));
    return Status::ok();
  }

  /// gptq and awq.
  Status joinWords(const Tensor &data, const std::string &base) {
    const bool awq = config_.method == "awq";
    if (!awq && config_.method != "gptq")
      return Status::ok(); // an unknown tensor: an error elsewhere
    LLMRT_ASSIGN_OR_RETURN(const Tensor *scales, need(data, base + ".scales"));
    LLMRT_ASSIGN_OR_RETURN(const Tensor *zeros, need(data, base + ".qzeros"));
    LLMRT_RETURN_IF_ERROR(needDtype(data, "I32", 2));
    LLMRT_RETURN_IF_ERROR(needDtype(*zeros, "I32", 2));
    WeightSource source;
    LLMRT_ASSIGN_OR_RETURN(source.scaleEncoding, floatEncoding(*scales));
    if (scales->shape.size() != 2)
      return fail(*scales, "must be a matrix");
    source.encoding = awq          ? WeightEncoding::Awq
                      : config_.v2 ? WeightEncoding::GptqV2
                                   : WeightEncoding::Gptq;
    source.bits = static_cast<uint32_t>(config_.bits);
    source.rows = scales->shape[1];
    source.columns = data.shape[0] * (awq ? 1 : 32 / config_.bits);
    source.block = config_.group ? config_.group : source.columns;
    source.scales = bytesOf(*scales);
    source.zeroPoints = bytesOf(*zeros);
    std::vector<const Tensor *> parts = {scales, zeros};
    if (const Tensor *index = part(base + ".g_idx"); index && !awq) {
      LLMRT_RETURN_IF_ERROR(needDtype(*index, "I32", 1));
      if (!isInOrder(bytesOf(*index), source.block)) {
        source.groupIndex = bytesOf(*index);
        parts.push_back(index);
      }
    }
    return add(data, base, source, parts);
  }

  /// Whether column k is in group k / block, so that the index says nothing.
  static bool isInOrder(std::span<const uint8_t> index, uint64_t block) {
    for (uint64_t k = 0; k != index.size() / 4; ++k) {
      int32_t group;
      std::memcpy(&group, index.data() + 4 * k, 4);
      if (group < 0 || static_cast<uint64_t>(group) != k / block)
        return false;
    }
    return true;
  }

  /// compressed-tensors' pack-quantized.
  Status joinPacked(const Tensor &data, const std::string &base) {
    LLMRT_ASSIGN_OR_RETURN(const Tensor *scales, need(data, base + ".weight_scale"));
    LLMRT_ASSIGN_OR_RETURN(const Tensor *shape, need(data, base + ".weight_shape"));
    LLMRT_RETURN_IF_ERROR(needDtype(data, "I32", 2));
    int64_t sizes[2] = {};
    if (shape->dtype == "I64" && shape->size == 16) {
      std::memcpy(sizes, bytesOf(*shape).data(), 16);
    } else if (shape->dtype == "I32" && shape->size == 8) {
      int32_t narrow[2];
      std::memcpy(narrow, bytesOf(*shape).data(), 8);
      sizes[0] = narrow[0];
      sizes[1] = narrow[1];
    }
    if (sizes[0] < 1 || sizes[1] < 1)
      return fail(*shape, "must hold the two sizes of the matrix");
    if (checkpoint_.find(base + ".weight_g_idx"))
      return fail(data, "has group indices (weight_g_idx), which are not supported; actorder "
                        "'static' or none is read");
    WeightSource source;
    LLMRT_ASSIGN_OR_RETURN(source.scaleEncoding, floatEncoding(*scales));
    source.encoding = WeightEncoding::PackedInt;
    source.bits = static_cast<uint32_t>(config_.bits);
    source.rows = static_cast<uint64_t>(sizes[0]);
    source.columns = static_cast<uint64_t>(sizes[1]);
    source.block = config_.group ? config_.group : source.columns;
    source.scales = bytesOf(*scales);
    std::vector<const Tensor *> parts = {scales};
    if (const Tensor *zeros = part(base + ".weight_zero_point")) {
      LLMRT_RETURN_IF_ERROR(needDtype(*zeros, "I32", 2));
      source.zeroPoints = bytesOf(*zeros);
      parts.push_back(zeros);
    }
    return add(data, base, source, parts);
  }

  /// GPT-OSS's experts: [E, N, K / 32, 16] codes and [E, N, K / 32] exponents are [E, N, K].
  Status joinMicroscaled(const Tensor &data, const std::string &base) {
    LLMRT_ASSIGN_OR_RETURN(const Tensor *scales, need(data, base + "_scales"));
    LLMRT_RETURN_IF_ERROR(needDtype(data, "U8", 4));
    LLMRT_RETURN_IF_ERROR(needDtype(*scales, "U8", 3));
    // Sizes whose product exceeds the tensor's own bytes can't be right; no overflow before that.
    if (data.shape[3] != 16 || data.size / 16 != scales->size ||
        !std::equal(scales->shape.begin(), scales->shape.end(), data.shape.begin()))
      return fail(data, "must be [experts, rows, blocks, 16], and '" + scales->name +
                            "' [experts, rows, blocks]");
    WeightSource source;
    source.encoding = WeightEncoding::SplitMXFP4;
    source.rows = data.shape[0] * data.shape[1];
    source.columns = data.shape[2] * 32;
    source.block = 32;
    source.scales = bytesOf(*scales);
    return addNamed(data, base, source, {scales},
                    {static_cast<int64_t>(data.shape[0]), static_cast<int64_t>(data.shape[1]),
                     static_cast<int64_t>(source.columns)});
  }

  /// A "weight" that is not of floats.
  Status joinWeight(const Tensor &data, const std::string &base) {
    if (data.dtype == "U8" && checkpoint_.find(base + ".weight.absmax"))
      return joinLevels(data, base);
    if (data.dtype == "I8" && checkpoint_.find(base + ".SCB")) {
      LLMRT_ASSIGN_OR_RETURN(const Tensor *scales, need(data, base + ".SCB"));
      LLMRT_RETURN_IF_ERROR(needDtype(data, "I8", 2));
      LLMRT_RETURN_IF_ERROR(needDtype(*scales, "F32", 1));
      part(base + ".weight_format");
      WeightSource source;
      source.encoding = WeightEncoding::RowInt8;
      source.bits = 8;
      source.rows = data.shape[0];
      source.columns = source.block = data.shape[1];
      source.scales = bytesOf(*scales);
      return add(data, base, source, {scales});
    }
    return data.dtype == "F8_E4M3" ? joinFp8(data, base) : Status::ok();
  }

  Status joinFp8(const Tensor &data, const std::string &base) {
    LLMRT_RETURN_IF_ERROR(needDtype(data, "F8_E4M3", 2));
    const Tensor *scales = part(base + ".weight_scale_inv");
    if (!scales) {
      LLMRT_ASSIGN_OR_RETURN(scales, need(data, base + ".weight_scale"));
    }
    // How activations were quantized; ours are as the plan says.
    for (const char *name : {".input_scale", ".activation_scale", ".input_scale_ub"})
      part(base + name);
    WeightSource source;
    LLMRT_ASSIGN_OR_RETURN(source.scaleEncoding, floatEncoding(*scales));
    source.encoding = WeightEncoding::FP8;
    source.bits = 8;
    source.rows = data.shape[0];
    source.columns = data.shape[1];
    source.block = config_.block;
    source.scales = bytesOf(*scales);
    return add(data, base, source, {scales});
  }

  /// bitsandbytes' nf4 and fp4, which store their levels.
  Status joinLevels(const Tensor &data, const std::string &base) {
    const std::string own = base + ".weight";
    LLMRT_ASSIGN_OR_RETURN(const Tensor *scales, need(data, own + ".absmax"));
    LLMRT_ASSIGN_OR_RETURN(const Tensor *levels, need(data, own + ".quant_map"));
    const Tensor *state = part(own + ".quant_state.bitsandbytes__nf4");
    if (!state) {
      LLMRT_ASSIGN_OR_RETURN(state, need(data, own + ".quant_state.bitsandbytes__fp4"));
    }
    Result<JsonDocument> document =
        JsonDocument::parse({reinterpret_cast<const char *>(bytesOf(*state).data()), state->size});
    if (!document)
      return fail(*state, "is not JSON: " + document.status().message());
    const JsonValue root = document->root();
    std::vector<int64_t> shape;
    if (root.isObject())
      for (JsonValue size : root["shape"].elements())
        shape.push_back(size.asInteger().value_or(0));
    const std::optional<int64_t> block =
        root.isObject() ? root["blocksize"].asInteger() : std::nullopt;
    if (shape.size() != 2 || shape[0] < 1 || shape[1] < 1 || !block || *block < 1)
      return fail(*state, "must have a 'shape' of two sizes and a 'blocksize'");
    WeightSource source;
    source.encoding = WeightEncoding::NF4;
    source.rows = static_cast<uint64_t>(shape[0]);
    source.columns = static_cast<uint64_t>(shape[1]);
    source.block = static_cast<uint64_t>(*block);
    source.scales = bytesOf(*scales);
    source.zeroPoints = bytesOf(*levels);
    std::vector<const Tensor *> parts = {scales, levels};
    if (const Tensor *nested = part(own + ".nested_absmax")) {
      LLMRT_ASSIGN_OR_RETURN(const Tensor *map, need(data, own + ".nested_quant_map"));
      const std::optional<double> offset = jsonNumber(root["nested_offset"]);
      if (!offset || root["nested_blocksize"].asInteger() != 256)
        return fail(*state, "must have a 'nested_offset' and a 'nested_blocksize' of 256");
      source.scaleOffset = static_cast<float>(*offset);
      source.nestedScales = bytesOf(*nested);
      source.nestedLevels = bytesOf(*map);
      parts.push_back(nested);
      parts.push_back(map);
    }
    return add(data, base, source, parts);
  }

  const Checkpoint &checkpoint_;
  const QuantizationConfig &config_;
  TensorTable &table_;
  std::set<std::string> &taken_;
};

} // namespace

Result<QuantizationConfig> readQuantizationConfig(const JsonFile &config) {
  const JsonValue root = config.root()["quantization_config"];
  if (root.isNull())
    return QuantizationConfig();
  if (!root.isObject())
    return config.wrongType("quantization_config", root, "an object");
  return ConfigReader(config, root).read();
}

Status addQuantizedTensors(const Checkpoint &checkpoint, const QuantizationConfig &config,
                           TensorTable &table, std::set<std::string> &taken,
                           std::vector<std::string> &notes) {
  if (config.method.empty())
    return Status::ok();
  Joiner joiner(checkpoint, config, table, taken);
  LLMRT_RETURN_IF_ERROR(joiner.run());
  if (joiner.integers)
    notes.push_back(config.method + ": " + std::to_string(joiner.integers) +
                    " matrices are kept as the integers they are stored as");
  if (joiner.floats)
    notes.push_back(config.method + ": " + std::to_string(joiner.floats) +
                    " matrices have no grouped integer form and are read as f32; --int8 or --int4 "
                    "quantizes them again");
  return Status::ok();
}

} // namespace llmc
