#include "test/unit/plan/TestPlan.h"

#include "runtime/plan/PlanFormat.h"
#include "runtime/plan/WeightFormat.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace llmrt::test {

using namespace fbs;

std::vector<uint8_t> readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void writeFile(const std::string &path, const std::vector<uint8_t> &bytes, unsigned mode) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char *>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  std::filesystem::permissions(path, std::filesystem::perms(mode));
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "llmc-plan-XXXXXX").string();
  path_ = ::mkdtemp(name.data());
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<std::string> TemporaryFolder::files() const {
  std::vector<std::string> names;
  for (const auto &e : std::filesystem::directory_iterator(path_))
    names.push_back(e.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

std::unique_ptr<Affine> affine(int64_t c, int64_t t = 0, int64_t s = 0, int64_t r = 0,
                               int64_t q = 0) {
  return std::make_unique<Affine>(c, t, s, r, q);
}

/// Adds a weight after those before it and grows the segment by bytes that aren't all zero.
void addWeight(TestPlan &p, const char *name, uint64_t rows, uint64_t columns,
               WeightFormatT format) {
  auto w = std::make_unique<WeightT>();
  w->name = name;
  w->rows = rows;
  w->columns = columns;
  w->format = std::make_unique<WeightFormatT>(format);
  w->size = packedBytes(llmrt::WeightFormat(format), rows, columns).value();
  std::vector<uint8_t> &bytes = p.segments[0].bytes;
  w->offset = alignUp(bytes.size(), kPlanAlignment);
  bytes.resize(w->offset + w->size);
  for (uint64_t i = 0; i < w->size; ++i)
    bytes[w->offset + i] = static_cast<uint8_t>(i * 7 + 1);
  p.head.weights.push_back(std::move(w));
}

KernelT *addKernel(TestPlan &p, const char *symbol, const char *kind,
                   std::vector<std::string> signature) {
  auto k = std::make_unique<KernelT>();
  k->symbol = symbol;
  k->kind = kind;
  k->signature = std::move(signature);
  p.head.kernels.push_back(std::move(k));
  return p.head.kernels.back().get();
}

void addConstant(KernelT *k, const char *name, int64_t value) {
  auto c = std::make_unique<ConstantT>();
  c->name = name;
  c->value = value;
  k->constants.push_back(std::move(c));
}

CommandT *addCommand(TestPlan &p, const char *name, uint32_t kernel, std::vector<Binding> bindings,
                     std::unique_ptr<Affine> tasks, std::vector<int64_t> scalars = {}) {
  auto c = std::make_unique<CommandT>();
  c->name = name;
  c->kernel = kernel;
  c->bindings = std::move(bindings);
  c->tasks = std::move(tasks);
  c->scalars = std::move(scalars);
  c->cost = std::make_unique<CostT>();
  p.head.commands.push_back(std::move(c));
  return p.head.commands.back().get();
}

void addModel(PlanT &h) {
  h.provenance = std::make_unique<ProvenanceT>();
  h.provenance->compiler = "llmc test";
  auto source = std::make_unique<SourceFileT>();
  source->name = "model.safetensors";
  source->size = 123;
  source->sha256 = std::string(64, 'a');
  h.provenance->sources.push_back(std::move(source));
  h.provenance->options = {"-O3", "--int4"};
  h.model = std::make_unique<ModelT>();
  ModelT &m = *h.model;
  m.name = "tiny";
  m.architecture = "llama";
  m.layers = 2;
  m.hidden_size = 8;
  m.intermediate_size = 16;
  m.heads = 2;
  m.kv_heads = 1;
  m.key_size = m.value_size = 4;
  m.vocab_size = 20;
  m.max_context = 256;
  m.rope_theta = 10000;
  m.rotary_size = 4;
  m.parameters = 300;
  h.limits = std::make_unique<LimitsT>();
  h.limits->max_tokens = 64;
  h.limits->max_sequences = 8;
  h.limits->max_rows = 16;
  h.limits->query_tile = 8;
  h.kv = std::make_unique<KvT>();
  for (int i = 0; i < 2; ++i) {
    auto l = std::make_unique<KvLayerT>();
    l->kv_heads = 1;
    l->key_size = l->value_size = 4;
    h.kv->layers.push_back(std::move(l));
  }
  h.kv->key_tile = 64;
  h.kv->block_tokens = 16;
  h.kv->bytes_per_token = 2 * 1 * (4 + 4) * 4;
}

void addText(PlanT &h) {
  h.text = std::make_unique<TextT>();
  h.text->tokenizer_segment = 2;
  h.text->chat_template = "{% for m in messages %}\n{{ m.content }}{% endfor %}";
  h.text->eos_token = "</s>";
  h.text->generation = std::make_unique<GenerationDefaultsT>();
  h.text->generation->stop_ids = {2};
  h.self_test = std::make_unique<SelfTestT>();
  h.self_test->prompt = {1, 2, 3};
  h.self_test->tokens = {4, 5};
  h.self_test->logits_fingerprint = 0x1234;
}

} // namespace

TestPlan makeTestPlan() {
  TestPlan p;
  p.segments = {{SegmentKind::Weights, "weights", {}},
                {SegmentKind::Code, "code.x86-64-v3", readFile(LLMC_TEST_KERNELS)},
                {SegmentKind::Tokenizer, "tokenizer", {'t', 'o', 'k', 'e', 'n', 's'}}};
  PlanT &h = p.head;
  addModel(h);
  addText(h);

  WeightFormatT f32, tiled, grouped;
  tiled.packing = Packing::N16;
  grouped.element = ElementType::I4;
  grouped.packing = Packing::N16K4;
  grouped.group = 32;
  grouped.scale = ElementType::F16;
  grouped.has_min = true;
  grouped.min = ElementType::F16;
  addWeight(p, "embed", 20, 8, f32);
  addWeight(p, "layers.0.qkv", 16, 8, grouped);
  addWeight(p, "lm_head", 20, 8, tiled);

  for (int64_t perToken : {32, 64}) {
    auto s = std::make_unique<ArenaSlotT>();
    s->size = affine(0, perToken);
    h.arena_slots.push_back(std::move(s));
  }
  const std::pair<const char *, uint32_t> buffers[] = {{"x", 0}, {"qkv", 1}, {"q", 1}, {"rows", 1}};
  for (auto [name, slot] : buffers) {
    auto b = std::make_unique<BufferT>();
    b->name = name;
    b->slot = slot;
    // "rows" is smaller than its slot only because a step has no more rows than tokens.
    b->size = std::string(name) == "rows" ? affine(0, 0, 0, 32)
                                          : affine(0, std::string(name) == "qkv" ? 64 : 32);
    h.buffers.push_back(std::move(b));
  }
  auto logits = std::make_unique<OutputT>();
  logits->name = "logits";
  logits->size = affine(0, 0, 0, 80);
  logits->columns = 20;
  h.outputs.push_back(std::move(logits));

  // A constant that isn't given is 0, as the compiler leaves them out.
  auto kernel = [&](const char *symbol, const char *kind, std::vector<std::string> signature,
                    std::vector<std::pair<const char *, int64_t>> constants) {
    KernelT *k = addKernel(p, symbol, kind, std::move(signature));
    for (auto [name, value] : constants)
      addConstant(k, name, value);
    return k;
  };
  kernel("embed_f32_d8", "embed", {"w", "y"}, {{"d", 8}});
  kernel("gemm_i4g32_k8_n16", "gemm", {"x", "w", "y"},
         {{"k", 8},
          {"n", 16},
          {"task_tiles", 1},
          {"w_element", 4},
          {"w_packing", 2},
          {"w_group", 32},
          {"w_scale", 1},
          {"w_has_min", 1},
          {"w_min", 1}})
      ->scratch_bytes = 4096;
  kernel("rope_append_f32_d4", "rope_append", {"qkv", "q"},
         {{"heads", 2}, {"kv_heads", 1}, {"head_size", 4}, {"value_size", 4}});
  kernel("attention_f32_d4", "attention", {"q", "y"},
         {{"heads", 2}, {"kv_heads", 1}, {"key_size", 4}, {"value_size", 4}, {"query_tile", 8}});
  kernel("gather_d8", "gather_rows", {"x", "y"}, {{"d", 8}});
  KernelT *logitsKernel =
      kernel("logits_f32_n20", "gemm", {"x", "w", "y"},
             {{"k", 8}, {"n", 20}, {"rows", 1}, {"task_tiles", 1}, {"w_packing", 1}});
  auto scale = std::make_unique<ConstantT>();
  scale->name = "scale";
  scale->is_real = true;
  scale->real = 1e-5;
  logitsKernel->constants.push_back(std::move(scale));

  auto weight = [](uint32_t i) { return Binding(BindingKind::Weight, i); };
  auto buffer = [](uint32_t i) { return Binding(BindingKind::Buffer, i); };
  addCommand(p, "embed", 0, {weight(0), buffer(0)}, affine(0, 1));
  for (uint32_t layer = 0; layer < 2; ++layer) {
    std::string at = "layers." + std::to_string(layer) + ".";
    CommandT *qkv =
        addCommand(p, (at + "qkv").c_str(), 1, {buffer(0), weight(1), buffer(1)}, affine(1));
    qkv->cost->weight_bytes = 320;
    qkv->cost->operations_per_row = 2 * 16 * 8;
    qkv->cost->integer_operations = true;
    addCommand(p, (at + "append").c_str(), 2, {buffer(1), buffer(2)}, affine(0, 1), {layer * 32});
    CommandT *attend = addCommand(p, (at + "attention").c_str(), 3, {buffer(2), buffer(0)},
                                  affine(0, 0, 0, 0, 1), {layer * 32});
    attend->cost->kv_bytes_per_context = 32;
  }
  addCommand(p, "gather", 4, {buffer(0), buffer(3)}, affine(0, 0, 0, 1));
  CommandT *head = addCommand(p, "lm_head", 5,
                              {buffer(3), weight(2), Binding(BindingKind::Output, 0)}, affine(2));
  head->cost->weight_bytes = 1024;
  head->cost->operations_per_row = 2 * 20 * 8;

  auto module = std::make_unique<CodeModuleT>();
  module->level = "x86-64-v3";
  module->segment = 1;
  module->kernel_abi = 1;
  h.modules.push_back(std::move(module));
  return p;
}

TestPlan makeCudaTestPlan(const std::vector<std::string> &architectures) {
  TestPlan p = makeTestPlan();
  for (const std::string &architecture : architectures) {
    auto module = std::make_unique<fbs::CodeModuleT>();
    module->level = architecture + ".all";
    module->segment = p.head.modules[0]->segment;
    module->target = fbs::Target::Cuda;
    module->kernel_abi = 1;
    p.head.modules.push_back(std::move(module));
    auto launch = [&](size_t kernel, const std::string &entry, const fbs::Affine &grid) {
      auto k = std::make_unique<fbs::CudaKernelT>();
      k->kernel = static_cast<uint32_t>(kernel);
      k->module_ = static_cast<uint32_t>(p.head.modules.size() - 1);
      k->sm = architecture;
      k->entry = entry;
      k->block = 128;
      k->registers = architecture.starts_with("sm_") ? 40 : 0;
      k->grid_x = std::make_unique<fbs::Affine>(grid);
      k->grid_y = std::make_unique<fbs::Affine>(1, 0, 0, 0, 0);
      k->grid_z = std::make_unique<fbs::Affine>(1, 0, 0, 0, 0);
      k->scratch = std::make_unique<fbs::Affine>(0, 0, 0, 0, 0);
      return k;
    };
    for (size_t i = 0; i < p.head.kernels.size(); ++i)
      p.head.cuda_kernels.push_back(
          launch(i, p.head.kernels[i]->symbol, fbs::Affine(0, 1, 0, 0, 0)));
    p.head.cuda_sampling.push_back(launch(0, "sample", fbs::Affine(0, 0, 0, 1, 0)));
  }
  return p;
}

std::vector<uint8_t> testPlanImage() {
  TestPlan p = makeTestPlan();
  return buildPlanImage(p.head, p.segments);
}

} // namespace llmrt::test
