//===- GraphCompiler.cpp - a graph that is no decoder to a plan --------------------===//

#include "compiler/driver/GraphCompiler.h"
#include "codegen/cpu/GraphKernels.h"
#include "compiler/passes/raise/ModelInputs.h"
#include "dialects/graph/NodeLocation.h"
#include "dialects/llm/LlmDialect.h"
#include "runtime/device/cpu/GraphAbi.h"
#include "runtime/device/cpu/KernelAbi.h"
#include "runtime/plan/PlanWriter.h"

#include <filesystem>

using namespace mlir;
using namespace llmc;
namespace fbs = llmrt::fbs;
using llmrt::Result;
using llmrt::Status;

bool llmc::isDecoderGraph(ModuleOp module) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  if (!main || !module->hasAttr(graph::kFolderAttr))
    return true;
  bool hasIds = false, hasLogits = false, hasCache = false;
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    raise::Role role = raise::bindName(raise::argumentName(main, i)).role;
    hasIds |= role == raise::Role::TokenIds;
    hasCache |= role == raise::Role::PastKey || role == raise::Role::PastValue;
  }
  for (unsigned i = 0; i < main.getNumResults(); ++i) {
    raise::Role role = raise::bindName(raise::resultName(main, i)).role;
    hasLogits |= role == raise::Role::Logits;
    hasCache |= role == raise::Role::PresentKey || role == raise::Role::PresentValue;
  }
  return hasIds && hasLogits && hasCache;
}

void llmc::prepareGraph(ModuleOp module, const std::string &modelPath) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  OpBuilder builder(module.getContext());
  Block &entry = main.getBody().front();
  llvm::BitVector defaulted(main.getNumArguments());
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    Attribute value = main.getArgAttr(i, "graph.default");
    if (!value)
      continue;
    builder.setInsertionPointToStart(&entry);
    Location loc = entry.getArgument(i).getLoc();
    Operation *op;
    if (auto elements = dyn_cast<ElementsAttr>(value)) {
      op = graph::ConstantOp::create(builder, loc, elements);
    } else {
      // The dictionary is that of the graph.weight that the importer made.
      OperationState state(loc, graph::WeightOp::getOperationName());
      state.addAttributes(llvm::to_vector(cast<DictionaryAttr>(value)));
      state.addTypes(entry.getArgument(i).getType());
      op = builder.create(state);
    }
    entry.getArgument(i).replaceAllUsesWith(op->getResult(0));
    defaulted.set(i);
  }
  (void)main.eraseArguments(defaulted);
  std::vector<std::string> names{std::filesystem::path(modelPath).filename().string()};
  main.walk([&](graph::WeightOp op) {
    if (!llvm::is_contained(names, op.getFile()))
      names.push_back(op.getFile().str());
  });
  SmallVector<Attribute> files;
  for (const std::string &name : names)
    files.push_back(builder.getStringAttr(name));
  module->setAttr(llm::kFilesAttr, builder.getArrayAttr(files));
  std::filesystem::path path = std::filesystem::absolute(modelPath).lexically_normal();
  std::string name = path.stem().string();
  if (name == "model") // what exporters call every model
    name = path.parent_path().filename().string();
  module->setAttr(llm::kModelAttr,
                  builder.getDictionaryAttr(
                      {builder.getNamedAttr("name", builder.getStringAttr(name)),
                       builder.getNamedAttr("architecture", builder.getStringAttr("graph"))}));
}

static Result<std::unique_ptr<fbs::ValueTypeT>> valueType(StringRef name, Type type,
                                                          ArrayAttr dims) {
  auto result = std::make_unique<fbs::ValueTypeT>();
  result->name = name.str();
  if (auto optional = dyn_cast<graph::OptionalType>(type)) {
    result->kind = fbs::ValueKind::Optional;
    type = optional.getContent();
    result->of_sequence = isa<graph::SequenceType>(type);
  } else if (isa<graph::SequenceType>(type)) {
    result->kind = fbs::ValueKind::Sequence;
  }
  Type element;
  if (auto sequence = dyn_cast<graph::SequenceType>(type)) {
    element = sequence.getElement();
  } else {
    auto tensor = cast<TensorType>(type);
    element = tensor.getElementType();
    result->has_rank = tensor.hasRank();
    if (tensor.hasRank())
      for (int64_t i = 0; i < tensor.getRank(); ++i) {
        auto dim = std::make_unique<fbs::DimensionT>();
        dim->size = tensor.isDynamicDim(i) ? -1 : tensor.getDimSize(i);
        if (tensor.isDynamicDim(i) && dims && i < static_cast<int64_t>(dims.size()))
          dim->symbol = cast<StringAttr>(dims[i]).str();
        result->dims.push_back(std::move(dim));
      }
  }
  result->type = graphElementType(element);
  if (!result->type || result->dims.size() > LLMRT_GRAPH_MAX_RANK) {
    std::string text;
    llvm::raw_string_ostream(text) << type;
    return llmrt::unsupported("'" + name.str() + "' is " + text + ", which a plan can't take");
  }
  return result;
}

/// The elements of a constant as the kernels hold them: a byte at least each.
static std::vector<uint8_t> constantBytes(ElementsAttr value) {
  auto dense = cast<DenseElementsAttr>(value);
  Type element = dense.getElementType();
  std::vector<uint8_t> bytes;
  unsigned width = element.isInteger(1) ? 8 : std::max(element.getIntOrFloatBitWidth(), 8u);
  auto add = [&](APInt number, bool isSigned) {
    number = isSigned ? number.sextOrTrunc(width) : number.zextOrTrunc(width);
    for (unsigned i = 0; i < width; i += 8)
      bytes.push_back(static_cast<uint8_t>(number.extractBitsAsZExtValue(8, i)));
  };
  if (isa<FloatType>(element)) {
    for (const APFloat &number : dense.getValues<APFloat>())
      add(number.bitcastToAPInt(), false);
  } else {
    bool isSigned = !cast<IntegerType>(element).isUnsigned() && !element.isInteger(1);
    for (const APInt &number : dense.getValues<APInt>())
      add(number, isSigned);
  }
  return bytes;
}

namespace {
/// One weight of the plan: bytes to write, unpacked where a byte of the file holds several.
struct GraphWeight {
  std::vector<uint8_t> owned;
  std::span<const uint8_t> bytes; ///< of the file
  unsigned bits = 8;              ///< an element, in the file
  bool isSigned = false;
  uint64_t count = 0; ///< elements, for those of less than a byte
  uint64_t size = 0;  ///< in the plan

  Status write(llmrt::PlanWriter &writer, uint32_t segment, uint64_t offset) const {
    if (!owned.empty())
      return writer.write(segment, offset, owned);
    if (bits >= 8)
      return writer.write(segment, offset, bytes);
    constexpr uint64_t piece = 1 << 16;
    std::vector<uint8_t> values;
    unsigned perByte = 8 / bits;
    for (uint64_t i = 0; i < count; i += piece) {
      values.clear();
      for (uint64_t j = i; j < std::min(count, i + piece); ++j) {
        uint8_t code = bytes[j / perByte] >> (j % perByte * bits) & ((1u << bits) - 1);
        if (isSigned && code >> (bits - 1))
          code |= static_cast<uint8_t>(0xFFu << bits);
        values.push_back(code);
      }
      LLMRT_RETURN_IF_ERROR(writer.write(segment, offset + i, values));
    }
    return Status::ok();
  }
};
} // namespace

static Result<GraphWeight> graphWeight(Operation *op, const ModelFiles &files, ArrayAttr names) {
  GraphWeight weight;
  if (auto constant = dyn_cast<graph::ConstantOp>(op)) {
    weight.owned = constantBytes(constant.getValue());
    if (weight.owned.empty())
      weight.owned.push_back(0);
    weight.size = weight.owned.size();
    return weight;
  }
  auto source = cast<graph::WeightOp>(op);
  auto type = cast<RankedTensorType>(source.getType());
  Type element = type.getElementType();
  for (auto [i, name] : llvm::enumerate(names)) {
    if (cast<StringAttr>(name).getValue() != source.getFile())
      continue;
    LLMRT_ASSIGN_OR_RETURN(weight.bytes,
                           files[i].extent(source.getOffset(), source.getBytes(),
                                           "weight '" + source.getName().str() + "'"));
    weight.bits = element.isInteger(1) ? 8 : element.getIntOrFloatBitWidth();
    weight.isSigned = isa<IntegerType>(element) && !cast<IntegerType>(element).isUnsigned();
    weight.count = static_cast<uint64_t>(type.getNumElements());
    weight.size = weight.bits < 8 ? weight.count : weight.bytes.size();
    if (weight.size == 0)
      weight.owned.push_back(0), weight.size = 1;
    return weight;
  }
  return llmrt::internalError("weight '" + source.getName().str() + "' is in no known file");
}

Status llmc::writeGraphPlan(ModuleOp module, const GraphTables &tables, const ModelFiles &files,
                            const PlanExtras &extras, const std::string &path, Progress &progress) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  fbs::PlanT head;
  head.provenance = std::make_unique<fbs::ProvenanceT>(extras.provenance);
  head.model = std::make_unique<fbs::ModelT>();
  auto model = module->getAttrOfType<DictionaryAttr>(llm::kModelAttr);
  head.model->name = model.getAs<StringAttr>("name").str();
  head.model->architecture = "graph";
  head.main = std::make_unique<fbs::MainT>();
  head.main->symbol = kGraphMain.str();
  head.main->nodes = tables.nodes;
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    LLMRT_ASSIGN_OR_RETURN(auto type,
                           valueType(raise::argumentName(main, i), main.getArgumentTypes()[i],
                                     main.getArgAttrOfType<ArrayAttr>(i, graph::kDimsAttr)));
    head.main->inputs.push_back(std::move(type));
  }
  for (unsigned i = 0; i < main.getNumResults(); ++i) {
    LLMRT_ASSIGN_OR_RETURN(auto type,
                           valueType(raise::resultName(main, i), main.getResultTypes()[i],
                                     main.getResultAttrOfType<ArrayAttr>(i, graph::kDimsAttr)));
    head.main->outputs.push_back(std::move(type));
  }
  auto kernel = std::make_unique<fbs::KernelT>();
  kernel->symbol = kGraphMain.str();
  kernel->kind = "main";
  head.kernels.push_back(std::move(kernel));

  auto names = module->getAttrOfType<ArrayAttr>(llm::kFilesAttr);
  std::vector<GraphWeight> weights;
  uint64_t offset = 0, parameters = 0;
  for (auto [i, op] : llvm::enumerate(tables.weights)) {
    LLMRT_ASSIGN_OR_RETURN(GraphWeight weight, graphWeight(op, files, names));
    auto entry = std::make_unique<fbs::WeightT>();
    auto named = dyn_cast<graph::WeightOp>(op);
    entry->name = named ? named.getName().str() : "constant." + std::to_string(i);
    entry->rows = weight.size;
    entry->columns = 1;
    entry->format = std::make_unique<fbs::WeightFormatT>();
    entry->format->element = fbs::ElementType::U8;
    entry->format->packing = fbs::Packing::Rows;
    entry->size = weight.size;
    entry->offset = offset;
    offset = (offset + weight.size + 63) / 64 * 64;
    if (named)
      parameters += static_cast<uint64_t>(cast<RankedTensorType>(named.getType()).getNumElements());
    head.weights.push_back(std::move(entry));
    weights.push_back(std::move(weight));
  }
  head.model->parameters = parameters;

  LLMRT_ASSIGN_OR_RETURN(std::unique_ptr<llmrt::PlanWriter> writer,
                         llmrt::PlanWriter::create(path));
  for (const CodeImage &code : extras.code) {
    LLMRT_ASSIGN_OR_RETURN(
        uint32_t segment,
        writer->addSegment(
            fbs::SegmentKind::Code, "code." + code.level,
            std::span(reinterpret_cast<const uint8_t *>(code.bytes.data()), code.bytes.size())));
    auto entry = std::make_unique<fbs::CodeModuleT>();
    entry->level = code.level;
    entry->segment = segment;
    entry->kernel_abi = LLMRT_KERNEL_ABI;
    head.modules.push_back(std::move(entry));
  }
  uint64_t size = weights.empty() ? 0 : head.weights.back()->offset + head.weights.back()->size;
  LLMRT_ASSIGN_OR_RETURN(uint32_t segment,
                         writer->addSegment(fbs::SegmentKind::Weights, "weights", size));
  progress.begin("weights", weights.size());
  for (auto [entry, weight] : llvm::zip_equal(head.weights, weights)) {
    entry->segment = segment;
    LLMRT_RETURN_IF_ERROR(weight.write(*writer, segment, entry->offset));
    progress.advance(1);
  }
  for (size_t i = 0; i < files.size(); ++i)
    LLMRT_RETURN_IF_ERROR(files[i].checkStillWhole());
  progress.begin("write");
  return writer->finish(head);
}
