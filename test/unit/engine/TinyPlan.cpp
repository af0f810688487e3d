#include "test/unit/engine/TinyPlan.h"

#include "runtime/plan/PlanImage.h"
#include "runtime/plan/WeightFormat.h"
#include "runtime/text/Tokenizer.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace llmrt::test {

using namespace fbs;

namespace {

std::vector<uint8_t> readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::unique_ptr<Affine> affine(int64_t c, int64_t t = 0, int64_t s = 0, int64_t r = 0) {
  return std::make_unique<Affine>(c, t, s, r, 0);
}

void addModel(PlanT &h, const TinyPlanOptions &options) {
  h.provenance = std::make_unique<ProvenanceT>();
  h.provenance->compiler = "llmc test";
  h.model = std::make_unique<ModelT>();
  ModelT &m = *h.model;
  m.name = "tiny";
  m.architecture = "hash";
  m.layers = m.heads = m.kv_heads = 1;
  m.hidden_size = m.intermediate_size = m.key_size = m.value_size = 4;
  m.vocab_size = tinyVocabulary;
  m.max_context = options.maxContext;
  m.parameters = tinyVocabulary;
  h.limits = std::make_unique<LimitsT>();
  h.limits->max_tokens = 128;
  h.limits->max_sequences = 16;
  h.limits->max_rows = 128;
  h.limits->query_tile = 8;
  h.kv = std::make_unique<KvT>();
  auto layer = std::make_unique<KvLayerT>();
  layer->kv_heads = 1;
  layer->key_size = layer->value_size = 4;
  h.kv->layers.push_back(std::move(layer));
  h.kv->key_tile = 64;
  h.kv->block_tokens = 16;
  h.kv->bytes_per_token = (4 + 4) * 4;
}

void addKernel(PlanT &h, const char *symbol, const char *kind, std::vector<std::string> signature) {
  auto k = std::make_unique<KernelT>();
  k->symbol = symbol;
  k->kind = kind;
  k->signature = std::move(signature);
  k->scratch_bytes = std::string(symbol) == "reflect" ? 64 : 0;
  h.kernels.push_back(std::move(k));
}

void addCommand(PlanT &h, uint32_t kernel, std::vector<Binding> bindings,
                std::unique_ptr<Affine> tasks, std::vector<int64_t> scalars = {}) {
  auto c = std::make_unique<CommandT>();
  c->name = h.kernels[kernel]->symbol;
  c->kernel = kernel;
  c->bindings = std::move(bindings);
  c->tasks = std::move(tasks);
  c->scalars = std::move(scalars);
  c->cost = std::make_unique<CostT>();
  h.commands.push_back(std::move(c));
}

void addProgram(PlanT &h) {
  for (auto &size : {affine(0, 4), affine(0, 0, 0, 4)}) {
    auto slot = std::make_unique<ArenaSlotT>();
    slot->size = std::make_unique<Affine>(*size);
    h.arena_slots.push_back(std::move(slot));
  }
  const char *names[] = {"h", "rows"};
  for (uint32_t i = 0; i < 2; ++i) {
    auto buffer = std::make_unique<BufferT>();
    buffer->name = names[i];
    buffer->slot = i;
    buffer->size = i == 0 ? affine(0, 4) : affine(0, 0, 0, 4);
    h.buffers.push_back(std::move(buffer));
  }
  auto logits = std::make_unique<OutputT>();
  logits->name = "logits";
  logits->size = affine(0, 0, 0, 4 * tinyVocabulary);
  logits->columns = tinyVocabulary;
  h.outputs.push_back(std::move(logits));

  addKernel(h, "remember", "tiny_remember", {});
  addKernel(h, "reflect", "tiny_reflect", {"y"});
  addKernel(h, "select", "tiny_select", {"x", "w", "y"});
  addKernel(h, "score", "tiny_score", {"x", "y"});
  Binding next(BindingKind::Weight, 0), hash(BindingKind::Buffer, 0), rows(BindingKind::Buffer, 1),
      output(BindingKind::Output, 0);
  addCommand(h, 0, {}, affine(0, 1), {0});
  addCommand(h, 1, {hash}, affine(0, 1));
  addCommand(h, 2, {hash, next, rows}, affine(0, 0, 0, 1));
  addCommand(h, 3, {rows, output}, affine(0, 0, 0, 1));
}

std::string tokenizerBlob() {
  // a-z, some words, one control token; a word is one token only where it was merged, and nothing
  // is: encoding gives letters.
  nlohmann::json vocabulary;
  const char *words[] = {"Ġ", "ĠONE", "ĠTWO", "ĠSTOP", "ĠTHREE", "Ã", "©"};
  for (int32_t id = 0; id < tinyVocabulary - 1; ++id)
    vocabulary[id < 26   ? std::string(1, char('a' + id))
               : id < 33 ? std::string(words[id - 26])
                         : "unused" + std::to_string(id)] = id;
  nlohmann::json json = {
      {"version", "1.0"},
      {"added_tokens",
       {{{"id", tinyVocabulary - 1},
         {"content", "<end>"},
         {"special", true},
         {"single_word", false},
         {"lstrip", false},
         {"rstrip", false},
         {"normalized", false}}}},
      {"normalizer", nullptr},
      {"pre_tokenizer",
       {{"type", "ByteLevel"},
        {"add_prefix_space", false},
        {"trim_offsets", true},
        {"use_regex", true}}},
      {"post_processor", nullptr},
      {"decoder",
       {{"type", "ByteLevel"},
        {"add_prefix_space", true},
        {"trim_offsets", true},
        {"use_regex", true}}},
      {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", nlohmann::json::array()}}}};
  auto made = Tokenizer::fromTokenizerJson(json.dump());
  EXPECT_TRUE(made) << made.status().message();
  return *(*made)->serialize();
}

} // namespace

std::vector<uint8_t> tinyPlanImage(const TinyPlanOptions &options) {
  PlanT h;
  addModel(h, options);
  addProgram(h);
  h.text = std::make_unique<TextT>();
  h.text->generation = std::make_unique<GenerationDefaultsT>();
  h.text->generation->stop_ids = options.stopIds;

  if (!options.testPrompt.empty()) {
    h.self_test = std::make_unique<SelfTestT>();
    h.self_test->prompt = options.testPrompt;
    h.self_test->tokens = options.testTokens;
    h.self_test->logits_fingerprint = options.testFingerprint;
  }

  std::vector<float> next(tinyVocabulary, -1.0f);
  for (auto [from, to] : options.next)
    next[static_cast<size_t>(from)] = static_cast<float>(to);
  auto weight = std::make_unique<WeightT>();
  weight->name = "next";
  weight->rows = tinyVocabulary;
  weight->columns = 1;
  weight->format = std::make_unique<WeightFormatT>();
  weight->size = next.size() * sizeof(float);
  h.weights.push_back(std::move(weight));

  const uint8_t *bytes = reinterpret_cast<const uint8_t *>(next.data());
  std::vector<SegmentImage> segments = {
      {SegmentKind::Weights, "weights", {bytes, bytes + next.size() * sizeof(float)}},
      {SegmentKind::Code, "code." + options.level,
       readFile(std::string(LLMC_TINY_KERNELS) + std::to_string(options.salt) + ".so")}};
  if (options.tokenizer) {
    std::string blob = tokenizerBlob();
    segments.push_back({SegmentKind::Tokenizer, "tokenizer", {blob.begin(), blob.end()}});
    h.text->tokenizer_segment = 2;
    h.text->eos_token = "<end>";
    h.text->chat_template = options.chatTemplate;
  }
  auto module = std::make_unique<CodeModuleT>();
  module->level = options.level;
  module->segment = 1;
  module->kernel_abi = options.kernelAbi;
  h.modules.push_back(std::move(module));
  return buildPlanImage(h, segments);
}

std::shared_ptr<const llmrt::Plan> tinyPlan(const TinyPlanOptions &options) {
  auto plan = llmrt::Plan::fromMemory(tinyPlanImage(options), {}, "tiny.plan");
  EXPECT_TRUE(plan) << plan.status().message();
  return plan ? *plan : nullptr;
}

TinyPlanFile::TinyPlanFile(const TinyPlanOptions &options) {
  std::string name = (std::filesystem::temp_directory_path() / "llmrt-tiny-XXXXXX").string();
  int fd = ::mkstemp(name.data());
  EXPECT_GE(fd, 0);
  ::close(fd);
  path_ = name;
  std::vector<uint8_t> image = tinyPlanImage(options);
  std::ofstream(path_, std::ios::binary)
      .write(reinterpret_cast<const char *>(image.data()), std::streamsize(image.size()));
}

TinyPlanFile::~TinyPlanFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

} // namespace llmrt::test
