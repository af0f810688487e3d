//===- PlanHead.cpp - from the plan dialect to the head of a plan file ----------------===//

#include "compiler/driver/PlanEmitter.h"
#include "compiler/passes/plan/KernelFormat.h"
#include "runtime/device/cpu/KernelAbi.h"

using namespace mlir;
using namespace llmc;
namespace fbs = llmrt::fbs;
using llmrt::Result;
using llmrt::Status;

static std::unique_ptr<fbs::Affine> affine(plan::AffineAttr a) {
  return std::make_unique<fbs::Affine>(a.getConstant(), a.getPerToken(), a.getPerSequence(),
                                       a.getPerRow(), a.getPerTile());
}

static fbs::Affine largest(const fbs::Affine &a, const fbs::Affine &b) {
  return {std::max(a.constant(), b.constant()), std::max(a.per_token(), b.per_token()),
          std::max(a.per_sequence(), b.per_sequence()), std::max(a.per_row(), b.per_row()),
          std::max(a.per_tile(), b.per_tile())};
}

static std::unique_ptr<fbs::ModelT> buildModel(DictionaryAttr dictionary) {
  auto model = std::make_unique<fbs::ModelT>();
  auto text = [&](StringRef key) {
    auto attr = dictionary.getAs<StringAttr>(key);
    return attr ? attr.str() : std::string();
  };
  auto number = [&](StringRef key) {
    auto attr = dictionary.getAs<IntegerAttr>(key);
    return attr ? attr.getInt() : 0;
  };
  model->name = text("name");
  model->architecture = text("architecture");
  model->layers = static_cast<uint32_t>(number("layers"));
  model->hidden_size = static_cast<uint32_t>(number("hidden_size"));
  model->intermediate_size = static_cast<uint32_t>(number("intermediate_size"));
  model->heads = static_cast<uint32_t>(number("heads"));
  model->kv_heads = static_cast<uint32_t>(number("kv_heads"));
  model->key_size = static_cast<uint32_t>(number("key_size"));
  model->value_size = static_cast<uint32_t>(number("value_size"));
  model->vocab_size = static_cast<uint32_t>(number("vocab_size"));
  model->max_context = static_cast<uint32_t>(number("max_context"));
  model->rotary_size = static_cast<uint32_t>(number("rotary_size"));
  model->sliding_window = static_cast<uint32_t>(number("sliding_window"));
  model->rope_original_context = static_cast<uint32_t>(number("rope_original_context"));
  if (auto theta = dictionary.getAs<FloatAttr>("rope_theta"))
    model->rope_theta = theta.getValueAsDouble();
  return model;
}

/// Values of the files' tensors that the program uses, each tensor once whatever is made of it.
/// Tables of rotary angles are no parameters.
static uint64_t countParameters(plan::ProgramOp program) {
  DenseSet<Value> isTable;
  for (auto command : program.getOps<plan::CommandOp>())
    if (auto kernel = program.lookupSymbol<plan::KernelOp>(command.getKernel());
        kernel && kernel.getKind().starts_with("rope_gather"))
      isTable.insert(command.getBindings().begin(), command.getBindings().end());
  DenseSet<Attribute> counted;
  uint64_t count = 0;
  SmallVector<Value> pending;
  for (auto weight : program.getOps<plan::WeightOp>())
    if (!isTable.contains(weight))
      pending.push_back(weight.getSource());
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val().getDefiningOp();
    if (auto leaf = dyn_cast<llm::WeightOp>(op);
        leaf && counted.insert(leaf.getSources()[0]).second)
      count += static_cast<uint64_t>(llm::tensorType(leaf).getNumElements());
    llvm::append_range(pending, op->getOperands());
  }
  return count;
}

static std::unique_ptr<fbs::WeightT> buildWeight(plan::WeightOp op, uint64_t &offset) {
  auto weight = std::make_unique<fbs::WeightT>();
  weight->name = op.getName().str();
  ArrayRef<int64_t> shape = llm::tensorType(op.getSource()).getShape();
  weight->rows = shape.empty() ? 1 : shape[0];
  weight->columns = 1;
  for (int64_t size : shape.drop_front(shape.empty() ? 0 : 1))
    weight->columns *= size;
  WeightFormat format = weightFormat(op.getFormatAttr());
  weight->format = std::make_unique<fbs::WeightFormatT>();
  weight->format->element = static_cast<fbs::ElementType>(format.element);
  weight->format->packing = static_cast<fbs::Packing>(format.packing);
  weight->format->group = format.group;
  weight->format->scale = static_cast<fbs::ElementType>(format.scale);
  weight->format->has_min = format.hasMin;
  weight->format->min = static_cast<fbs::ElementType>(format.min);
  weight->size = packedBytes(format, weight->rows, weight->columns).value_or(0);
  weight->offset = offset;
  offset = (offset + weight->size + 63) / 64 * 64;
  return weight;
}

static std::unique_ptr<fbs::KernelT> buildKernel(plan::KernelOp op, uint64_t scratchBytes,
                                                 fbs::Target target) {
  auto kernel = std::make_unique<fbs::KernelT>();
  kernel->symbol = op.getSymName().str();
  kernel->kind = op.getKind().str();
  for (Attribute role : op.getSignature())
    kernel->signature.push_back(cast<StringAttr>(role).str());
  for (NamedAttribute attr : op.getConstants()) {
    auto constant = std::make_unique<fbs::ConstantT>();
    constant->name = attr.getName().str();
    if (auto integer = dyn_cast<IntegerAttr>(attr.getValue())) {
      constant->value = integer.getInt();
    } else if (auto real = dyn_cast<FloatAttr>(attr.getValue())) {
      constant->is_real = true;
      constant->real = real.getValueAsDouble();
    } else {
      constant->text = cast<StringAttr>(attr.getValue()).str();
    }
    kernel->constants.push_back(std::move(constant));
  }
  kernel->scratch_bytes = scratchBytes;
  kernel->target = target;
  return kernel;
}

namespace {
/// Where each value of the program stands in the lists of the head.
using Indices = DenseMap<Value, fbs::Binding>;
} // namespace

static std::unique_ptr<fbs::CommandT> buildCommand(plan::CommandOp op, const Indices &indices,
                                                   const llvm::StringMap<uint32_t> &kernels) {
  auto command = std::make_unique<fbs::CommandT>();
  command->name = op.getName().str();
  command->kernel = kernels.lookup(op.getKernel());
  for (Value binding : op.getBindings())
    command->bindings.push_back(indices.lookup(binding));
  if (op.getScalars())
    command->scalars.assign(op.getScalars()->begin(), op.getScalars()->end());
  command->tasks = affine(op.getTasks());
  if (plan::CostAttr cost = op.getCostAttr()) {
    command->cost = std::make_unique<fbs::CostT>();
    command->cost->weight_bytes = cost.getWeightBytes();
    command->cost->operations_per_row = cost.getOperationsPerRow();
    command->cost->bytes_per_row = cost.getBytesPerRow();
    command->cost->kv_bytes_per_context = cost.getKvBytesPerContext();
    command->cost->integer_operations = cost.getInteger();
  }
  return command;
}

static std::unique_ptr<fbs::KvT> buildKv(plan::ProgramOp program) {
  auto kv = std::make_unique<fbs::KvT>();
  kv->key_tile = static_cast<uint32_t>(program.getKeyTile());
  kv->block_tokens = 16;
  kv->bytes_per_token = 0;
  for (auto [type, window] : llvm::zip_equal(program.getKv(), program.getWindows())) {
    auto t = cast<llm::KvType>(cast<TypeAttr>(type).getValue());
    auto layer = std::make_unique<fbs::KvLayerT>();
    layer->kv_heads = static_cast<uint32_t>(t.getHeads());
    layer->key_size = static_cast<uint32_t>(t.getKeySize());
    // Values that are part of the keys take no memory of their own.
    layer->value_size = t.getLatent() ? 0 : static_cast<uint32_t>(t.getValueSize());
    layer->element = static_cast<fbs::ElementType>(t.getElement());
    layer->window = static_cast<uint32_t>(window);
    kv->bytes_per_token += static_cast<uint64_t>(t.getBytesPerToken());
    kv->layers.push_back(std::move(layer));
  }
  return kv;
}

Result<std::unique_ptr<fbs::PlanT>> llmc::buildHead(plan::ProgramOp program,
                                                    const PlanExtras &extras) {
  auto head = std::make_unique<fbs::PlanT>();
  head->provenance = std::make_unique<fbs::ProvenanceT>(extras.provenance);
  head->model = buildModel(program.getModel());
  head->model->parameters = countParameters(program);
  plan::LimitsAttr limits = program.getLimits();
  head->limits = std::make_unique<fbs::LimitsT>();
  head->limits->max_tokens = static_cast<uint32_t>(limits.getTokens());
  head->limits->max_sequences = static_cast<uint32_t>(limits.getSequences());
  head->limits->max_rows = static_cast<uint32_t>(limits.getRows());
  head->limits->query_tile = static_cast<uint32_t>(limits.getQueryTile());
  head->kv = buildKv(program);
  head->text = std::make_unique<fbs::TextT>(extras.text);
  head->activations = extras.activations;

  Indices indices;
  llvm::StringMap<uint32_t> kernels;
  uint64_t offset = 0;
  for (Operation &op : program.getBody().front()) {
    if (auto weight = dyn_cast<plan::WeightOp>(op)) {
      indices[weight] = {fbs::BindingKind::Weight, static_cast<uint32_t>(head->weights.size())};
      head->weights.push_back(buildWeight(weight, offset));
      if (!head->weights.back()->size)
        return llmrt::unsupported("weight '" + head->weights.back()->name +
                                  "' has a storage format that the packing does not have");
    } else if (auto buffer = dyn_cast<plan::BufferOp>(op)) {
      indices[buffer] = {fbs::BindingKind::Buffer, static_cast<uint32_t>(head->buffers.size())};
      auto entry = std::make_unique<fbs::BufferT>();
      entry->name = buffer.getName().str();
      entry->size = affine(buffer.getSize());
      entry->slot = static_cast<uint32_t>(buffer.getSlot());
      while (head->arena_slots.size() <= entry->slot) {
        head->arena_slots.push_back(std::make_unique<fbs::ArenaSlotT>());
        head->arena_slots.back()->size = std::make_unique<fbs::Affine>(0, 0, 0, 0, 0);
      }
      fbs::Affine &slot = *head->arena_slots[entry->slot]->size;
      slot = largest(slot, *entry->size);
      head->buffers.push_back(std::move(entry));
    } else if (auto output = dyn_cast<plan::OutputOp>(op)) {
      indices[output] = {fbs::BindingKind::Output, static_cast<uint32_t>(head->outputs.size())};
      auto entry = std::make_unique<fbs::OutputT>();
      entry->name = output.getName().str();
      entry->size = affine(output.getSize());
      entry->columns = output.getColumns();
      head->outputs.push_back(std::move(entry));
    } else if (auto kernel = dyn_cast<plan::KernelOp>(op)) {
      size_t index = head->kernels.size();
      kernels[kernel.getSymName()] = static_cast<uint32_t>(index);
      head->kernels.push_back(
          buildKernel(kernel, index < extras.scratchBytes.size() ? extras.scratchBytes[index] : 0,
                      extras.code.empty() ? fbs::Target::Cuda : fbs::Target::Cpu));
    } else if (auto command = dyn_cast<plan::CommandOp>(op)) {
      head->commands.push_back(buildCommand(command, indices, kernels));
    }
  }
  auto addLaunches = [&](const std::vector<fbs::CudaKernelT> &launches, auto &list) {
    for (const fbs::CudaKernelT &launch : launches) {
      auto entry = std::make_unique<fbs::CudaKernelT>(launch);
      // The CPU's modules come first.
      entry->module_ += static_cast<uint32_t>(extras.code.size());
      list.push_back(std::move(entry));
    }
  };
  addLaunches(extras.cuda.kernels, head->cuda_kernels);
  addLaunches(extras.cuda.sampling, head->cuda_sampling);
  return head;
}
