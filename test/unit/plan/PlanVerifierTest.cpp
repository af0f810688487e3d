// One test a rule: the valid plan with one thing wrong and all checksums right is refused, with a
// message that names it.
#include "runtime/plan/Plan.h"
#include "runtime/plan/PlanFormat.h"
#include "test/unit/plan/TestPlan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

using namespace llmrt;
using namespace llmrt::test;

namespace {

struct Case {
  const char *name;
  const char *message; ///< a part of the refusal
  std::function<void(fbs::PlanT &)> damage;
};

void PrintTo(const Case &c, std::ostream *out) { *out << c.name; }

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

fbs::CommandT &command(fbs::PlanT &h, const char *name) {
  for (auto &c : h.commands)
    if (c->name == name)
      return *c;
  ADD_FAILURE() << name;
  return *h.commands[0];
}

/// The constant \p name of kernel \p index.
fbs::ConstantT &constant(fbs::PlanT &h, size_t index, const char *name) {
  for (auto &c : h.kernels[index]->constants)
    if (c->name == name)
      return *c;
  auto added = std::make_unique<fbs::ConstantT>();
  added->name = name;
  h.kernels[index]->constants.push_back(std::move(added));
  return *h.kernels[index]->constants.back();
}

const Case kCases[] = {
    // provenance
    {"SourceWithFolder", "without folders", [](auto &h) { h.provenance->sources[0]->name = "/home/me/m"; }},
    {"SourceHash", "sha256", [](auto &h) { h.provenance->sources[0]->sha256 = "xyz"; }},
    {"SourceHashNotHex", "sha256", [](auto &h) { h.provenance->sources[0]->sha256[5] = 'G'; }},
    {"CompilerEmpty", "provenance", [](auto &h) { h.provenance->compiler.clear(); }},
    {"OptionControl", "options[0]", [](auto &h) { h.provenance->options[0] = "\x1b[2J"; }},
    // model
    {"NoLayers", "model.layers", [](auto &h) { h.model->layers = 0; }},
    {"NoHeads", "model.heads", [](auto &h) { h.model->heads = 0; }},
    {"NoKvHeads", "model.kv_heads", [](auto &h) { h.model->kv_heads = 0; }},
    {"KvHeadsDoNotDivide", "no multiple", [](auto &h) { h.model->heads = 3, h.model->kv_heads = 2; }},
    {"NoVocabulary", "model.vocab_size", [](auto &h) { h.model->vocab_size = 0; }},
    {"NoContext", "model.max_context", [](auto &h) { h.model->max_context = 0; }},
    {"HugeContext", "model.max_context", [](auto &h) { h.model->max_context = ~0u; }},
    {"RotaryAboveKey", "model.rotary_size", [](auto &h) { h.model->rotary_size = 5; }},
    {"ThetaNaN", "rope_theta", [](auto &h) { h.model->rope_theta = std::nan(""); }},
    {"ThetaInfinite", "rope_theta", [](auto &h) { h.model->rope_theta = HUGE_VAL; }},
    {"NameNotUtf8", "model: name", [](auto &h) { h.model->name = "a\xff"; }},
    {"NameOverlong", "model: name", [](auto &h) { h.model->name = "a\xc0\x80"; }},
    {"NameSurrogate", "model: name", [](auto &h) { h.model->name = "\xed\xa0\x80"; }},
    {"NameWithNul", "model: name", [](auto &h) { h.model->name = std::string("a\0b", 3); }},
    {"NameTooLong", "model: name", [](auto &h) { h.model->name = std::string(1025, 'a'); }},
    {"Activations", "activations", [](auto &h) { h.activations = fbs::ElementType::I64; }},
    // limits
    {"NoTokens", "limits.max_tokens", [](auto &h) { h.limits->max_tokens = 0; }},
    {"TooManyTokens", "limits.max_tokens", [](auto &h) { h.limits->max_tokens = (1 << 24) + 1; }},
    {"NoSequences", "limits.max_sequences", [](auto &h) { h.limits->max_sequences = 0; }},
    {"MoreSequencesThanTokens", "limits.max_sequences", [](auto &h) { h.limits->max_sequences = 65; }},
    {"NoRows", "limits.max_rows", [](auto &h) { h.limits->max_rows = 0; }},
    {"NoQueryTile", "limits.query_tile", [](auto &h) { h.limits->query_tile = 0; }},
    // KV cache
    {"KvLayerCount", "kv has 1 layers", [](auto &h) { h.kv->layers.pop_back(); }},
    {"KvHeadsZero", "kv.layers[1]", [](auto &h) { h.kv->layers[1]->kv_heads = 0; }},
    {"KvElement", "must be f32, f16, bf16 or i8", [](auto &h) { h.kv->layers[0]->element = fbs::ElementType::I32; }},
    {"KvElementUnknown", "must be f32", [](auto &h) { h.kv->layers[0]->element = fbs::ElementType(77); }},
    {"KvBytes", "kv.bytes_per_token", [](auto &h) { h.kv->bytes_per_token = 63; }},
    {"KvBytesOverflow", "kv.bytes_per_token",
     [](auto &h) {
       for (auto &l : h.kv->layers)
         l->kv_heads = 1 << 16, l->key_size = l->value_size = 1 << 28;
       h.kv->bytes_per_token = 2ull * (1 << 16) * (1ull << 29) * 4;
     }},
    {"KvKeyTile", "kv.key_tile", [](auto &h) { h.kv->key_tile = 0; }},
    {"KvKeyTileMultiple", "multiples of 16", [](auto &h) { h.kv->key_tile = 24; }},
    {"KvBlock", "kv.block_tokens", [](auto &h) { h.kv->block_tokens = 1; }},
    {"KvBlockMultiple", "multiples of 16", [](auto &h) { h.kv->block_tokens = 17; }},
    // segments
    {"SegmentName", "segments[0]", [](auto &h) { h.segments[0]->name.clear(); }},
    {"SegmentNameTwice", "twice", [](auto &h) { h.segments[1]->name = "weights"; }},
    {"SegmentKind", "unknown kind 9", [](auto &h) { h.segments[0]->kind = fbs::SegmentKind(9); }},
    {"SegmentUnaligned", "no multiple of 4096", [](auto &h) { h.segments[0]->offset += 64; }},
    {"SegmentInHead", "comes before", [](auto &h) { h.segments[0]->offset = 0; }},
    {"SegmentOutside", "outside the file", [](auto &h) { h.segments[2]->offset += 1 << 20; }},
    {"SegmentOffsetOverflow", "outside the file", [](auto &h) { h.segments[2]->offset = ~0ull << 12; }},
    {"SegmentSizeOverflow", "outside the file", [](auto &h) { h.segments[2]->size = ~0ull; }},
    {"SegmentOverlap", "comes before", [](auto &h) { h.segments[1]->offset = h.segments[0]->offset; }},
    {"SegmentGap", "comes before", [](auto &h) { h.segments[2]->offset += 4096; h.segments[2]->size = 0; }},
    {"SegmentsEndEarly", "segments end at", [](auto &h) { h.segments.pop_back(); h.text->tokenizer_segment = -1; }},
    // weights
    {"WeightName", "weights[1]", [](auto &h) { h.weights[1]->name = "a\nb"; }},
    {"WeightNoFormat", "has no format", [](auto &h) { h.weights[1]->format.reset(); }},
    {"WeightSegment", "segment 9 of 3", [](auto &h) { h.weights[0]->segment = 9; }},
    {"WeightInCode", "doesn't hold weights", [](auto &h) { h.weights[0]->segment = 1; }},
    {"WeightUnaligned", "no multiple of 64", [](auto &h) { h.weights[0]->offset = 4; }},
    {"WeightSize", "take 640", [](auto &h) { h.weights[0]->size += 4; }},
    {"WeightRows", "weights[0] 'embed'", [](auto &h) { h.weights[0]->rows = 21; }},
    {"WeightNoRows", "no format for", [](auto &h) { h.weights[0]->rows = 0; }},
    {"WeightOverflow", "no format for", [](auto &h) { h.weights[0]->rows = 1ull << 62; }},
    {"WeightElement", "no format for", [](auto &h) { h.weights[0]->format->element = fbs::ElementType(99); }},
    {"WeightPacking", "no format for", [](auto &h) { h.weights[0]->format->packing = fbs::Packing(99); }},
    {"WeightGroupZero", "no format for", [](auto &h) { h.weights[1]->format->group = 0; }},
    {"WeightGroupOdd", "no format for", [](auto &h) { h.weights[1]->format->group = 12; }},
    {"WeightScale", "no format for", [](auto &h) { h.weights[1]->format->scale = fbs::ElementType::I8; }},
    {"WeightMin", "no format for", [](auto &h) { h.weights[1]->format->min = fbs::ElementType::U8; }},
    {"WeightOutside", "outside segment", [](auto &h) { h.weights[2]->offset += 4096; }},
    {"WeightOffsetOverflow", "outside segment", [](auto &h) { h.weights[2]->offset = ~0ull << 6; }},
    {"WeightSizeOverflow", "outside segment",
     [](auto &h) { // the format allows it; only the segment doesn't
       fbs::WeightT &w = *h.weights[2];
       *w.format = fbs::WeightFormatT();
       w.format->element = fbs::ElementType::U8;
       w.rows = w.size = ~0ull - 63;
       w.columns = 1;
     }},
    {"WeightOverlap", "overlaps", [](auto &h) { h.weights[2]->offset -= 64; }},
    // arena
    {"SlotNoSize", "arena_slots[0]", [](auto &h) { h.arena_slots[0]->size.reset(); }},
    {"SlotNegative", "arena_slots[1]", [](auto &h) { *h.arena_slots[1]->size = fbs::Affine(-64, 64, 0, 0, 0); }},
    {"SlotOverflow", "arena_slots[1]", [](auto &h) { *h.arena_slots[1]->size = fbs::Affine(kHuge, kHuge, 0, 0, 0); }},
    {"SlotTooLarge", "arena_slots[1]", [](auto &h) { *h.arena_slots[1]->size = fbs::Affine(0, 1ll << 45, 0, 0, 0); }},
    {"ArenaTooLarge", "the arena takes more",
     [](auto &h) {
       for (auto &s : h.arena_slots)
         *s->size = fbs::Affine((1ll << 45) + 64, 64, 0, 0, 0);
     }},
    {"BufferSlot", "slot 2 of 2", [](auto &h) { h.buffers[0]->slot = 2; }},
    {"BufferNoSize", "buffers[0] 'x'", [](auto &h) { h.buffers[0]->size.reset(); }},
    {"BufferNegative", "negative", [](auto &h) { *h.buffers[0]->size = fbs::Affine(-1, 1, 0, 0, 0); }},
    {"BufferAboveSlot", "larger than its slot", [](auto &h) { *h.buffers[0]->size = fbs::Affine(0, 33, 0, 0, 0); }},
    {"BufferAboveSlotByConstant", "larger than its slot", [](auto &h) { *h.buffers[0]->size = fbs::Affine(1, 32, 0, 0, 0); }},
    {"BufferAboveSlotAtOneTokenOnly", "larger than its slot",
     [](auto &h) { *h.buffers[0]->size = fbs::Affine(40, 31, 0, 0, 0); }},
    {"BufferAboveSlotByRows", "larger than its slot", [](auto &h) { *h.buffers[3]->size = fbs::Affine(0, 0, 0, 65, 0); }},
    {"BufferAboveSlotInSum", "larger than its slot", [](auto &h) { *h.buffers[0]->size = fbs::Affine(0, 20, 8, 8, 0); }},
    {"BufferName", "buffers[1]", [](auto &h) { h.buffers[1]->name.clear(); }},
    // outputs
    {"NoOutputs", "outputs",
     [](auto &h) {
       h.outputs.clear();
       command(h, "lm_head").bindings[2] = fbs::Binding(fbs::BindingKind::Buffer, 0);
     }},
    {"LogitsElement", "must be f32 logits", [](auto &h) { h.outputs[0]->element = fbs::ElementType::F16; }},
    {"LogitsColumns", "must be f32 logits", [](auto &h) { h.outputs[0]->columns = 19; }},
    {"LogitsSize", "80 bytes a row", [](auto &h) { *h.outputs[0]->size = fbs::Affine(0, 0, 0, 76, 0); }},
    {"LogitsSizeMore", "80 bytes a row", [](auto &h) { *h.outputs[0]->size = fbs::Affine(64, 0, 0, 80, 0); }},
    {"OutputNoSize", "size is missing", [](auto &h) { h.outputs[0]->size.reset(); }},
    {"OutputElement", "unknown element", [](auto &h) { h.outputs[0]->element = fbs::ElementType(50); }},
    // kernels
    {"SymbolNotIdentifier", "kernels[0]", [](auto &h) { h.kernels[0]->symbol = "a b"; }},
    {"SymbolEmpty", "kernels[0]", [](auto &h) { h.kernels[0]->symbol.clear(); }},
    {"SymbolTwice", "twice", [](auto &h) { h.kernels[1]->symbol = h.kernels[0]->symbol; }},
    {"KindEmpty", "kind", [](auto &h) { h.kernels[0]->kind.clear(); }},
    {"TargetUnknown", "unknown target", [](auto &h) { h.kernels[0]->target = fbs::Target(7); }},
    {"ConstantTwice", "another one's",
     [](auto &h) {
       h.kernels[0]->constants.push_back(std::make_unique<fbs::ConstantT>(*h.kernels[0]->constants[0]));
     }},
    {"ConstantNaN", "isn't finite", [](auto &h) { constant(h, 5, "scale").real = std::nan(""); }},
    {"ScratchTooLarge", "scratch", [](auto &h) { h.kernels[1]->scratch_bytes = 1ull << 40; }},
    {"KernelWithRegisters", "which cuda_kernels have", [](auto &h) { h.kernels[0]->registers = 3; }},
    {"CudaWithoutLaunch", "no cuda_kernels", [](auto &h) { h.kernels[0]->target = fbs::Target::Cuda; }},
    // commands
    {"CommandKernel", "kernel 6 of 6", [](auto &h) { h.commands[0]->kernel = 6; }},
    {"CommandName", "commands[0]", [](auto &h) { h.commands[0]->name.clear(); }},
    {"CommandTooFewBindings", "takes 2", [](auto &h) { h.commands[0]->bindings.pop_back(); }},
    {"CommandTooManyBindings", "takes 2", [](auto &h) { h.commands[0]->bindings.push_back(h.commands[0]->bindings[0]); }},
    {"BindingWeight", "weight 3 of 3", [](auto &h) { h.commands[0]->bindings[0] = fbs::Binding(fbs::BindingKind::Weight, 3); }},
    {"BindingBuffer", "buffer 4 of 4", [](auto &h) { h.commands[0]->bindings[1] = fbs::Binding(fbs::BindingKind::Buffer, 4); }},
    {"BindingOutput", "output 1 of 1", [](auto &h) { command(h, "lm_head").bindings[2] = fbs::Binding(fbs::BindingKind::Output, 1); }},
    {"BindingKind", "unknown kind", [](auto &h) { h.commands[0]->bindings[0] = fbs::Binding(fbs::BindingKind(3), 0); }},
    {"TasksMissing", "tasks", [](auto &h) { h.commands[0]->tasks.reset(); }},
    {"TasksNegative", "tasks", [](auto &h) { *h.commands[0]->tasks = fbs::Affine(-1, 1, 0, 0, 0); }},
    {"TasksTooMany", "tasks", [](auto &h) { *h.commands[0]->tasks = fbs::Affine(0, 1ll << 40, 0, 0, 0); }},
    {"TasksOverflow", "tasks", [](auto &h) { *h.commands[0]->tasks = fbs::Affine(0, kHuge, 0, 0, 0); }},
    {"KvPrefix", "no layer's KV prefix", [](auto &h) { command(h, "layers.1.append").scalars[0] = 33; }},
    {"KvPrefixBeyond", "no layer's KV prefix", [](auto &h) { command(h, "layers.1.append").scalars[0] = 64; }},
    {"KvPrefixNegative", "no layer's KV prefix", [](auto &h) { command(h, "layers.1.append").scalars[0] = -32; }},
    {"KvPrefixMissing", "takes one scalar", [](auto &h) { command(h, "layers.1.attention").scalars.clear(); }},
    {"KvHeadsOfKernel", "has kv_heads 2", [](auto &h) { constant(h, 3, "kv_heads").value = 2; }},
    {"KeySizeOfKernel", "has key_size 8", [](auto &h) { constant(h, 3, "key_size").value = 8; }},
    {"ValueSizeOfKernel", "has value_size 0", [](auto &h) { constant(h, 2, "value_size").value = 0; }},
    {"HeadSizeOfKernel", "has head_size 2", [](auto &h) { constant(h, 2, "head_size").value = 2; }},
    {"KvElementOfKernel", "has kv_element 1", [](auto &h) { constant(h, 2, "kv_element").value = 1; }},
    {"WindowOfKernel", "sees a window of 0 tokens", [](auto &h) { h.kv->layers[1]->window = 100; }},
    {"WindowOfKernelLarger", "sees a window of 101 tokens", [](auto &h) { h.kv->layers[1]->window = 100, constant(h, 3, "window").value = 101; }},
    {"SplitOfKernel", "has a key_split of 65", [](auto &h) { constant(h, 3, "key_split").value = 65; }},
    {"SplitNegative", "has a key_split of -64", [](auto &h) { constant(h, 3, "key_split").value = -64; }},
    {"QueryTileOfKernel", "takes 7 queries a tile", [](auto &h) { constant(h, 3, "query_tile").value = 7; }},
    // what kernels touch
    {"EmbedVocabulary", "touches 672 bytes of 'w', which has 640", [](auto &h) {
       h.model->vocab_size = 21;
       h.outputs[0]->columns = 21;
       *h.outputs[0]->size = fbs::Affine(0, 0, 0, 84, 0);
     }},
    {"EmbedWidth", "of 'w', which has 640", [](auto &h) { constant(h, 0, "d").value = 9; }},
    {"EmbedFormat", "of 'w', which has 640", [](auto &h) { constant(h, 0, "w_element").value = 7; }},
    {"EmbedFormatUnknown", "of 'w', which has 640", [](auto &h) { constant(h, 0, "w_packing").value = 9; }},
    {"GemmInputWidth", "of 'x', which has 32 a token", [](auto &h) { constant(h, 1, "k").value = 9; }},
    {"GemmOutputWidth", "of 'w', which has 320", [](auto &h) { constant(h, 1, "n").value = 17; }},
    {"GemmNegative", "of 'x', which has 32 a token", [](auto &h) { constant(h, 1, "k").value = -1; }},
    {"GemmHuge", "of 'x', which has 32 a token", [](auto &h) { constant(h, 1, "k").value = kHuge; }},
    {"GemmBiasMissing", "takes 4 bindings for its constants, not 3", [](auto &h) { constant(h, 1, "bias").value = 1; }},
    {"GemmResidualMissing", "takes 4 bindings for its constants, not 3", [](auto &h) { constant(h, 1, "residual").value = 1; }},
    {"GemmOutputForRows", "of 'y', which has 80 a row", [](auto &h) {
       constant(h, 5, "rows").value = 0;
       command(h, "lm_head").bindings[0] = fbs::Binding(fbs::BindingKind::Buffer, 0);
     }},
    {"GemmTasks", "has tasks 2, not 1", [](auto &h) { *command(h, "lm_head").tasks = fbs::Affine(1, 0, 0, 0, 0); }},
    {"GemmGluTiles", "touches 2048 bytes of 'w', which has 1024", [](auto &h) { constant(h, 5, "n").value = 34, constant(h, 5, "glu").value = 1; }},
    {"AttentionWidth", "of 'q', which has 32 a token", [](auto &h) { constant(h, 3, "heads").value = 3; }},
    {"AttentionTasks", "has tasks 1 a tile, not 1 a token", [](auto &h) { *command(h, "layers.0.attention").tasks = fbs::Affine(0, 1, 0, 0, 0); }},
    {"AppendAnglesMissing", "takes 3 bindings for its constants, not 2", [](auto &h) { constant(h, 2, "rotary").value = 4; }},
    {"AppendSplitMissing", "takes 4 bindings for its constants, not 2", [](auto &h) { constant(h, 2, "split").value = 1; }},
    {"AppendNormMissing", "takes 4 bindings for its constants, not 2", [](auto &h) { constant(h, 2, "q_norm").value = 1; }},
    {"AppendTasks", "has tasks 1 a token, not 1 a row", [](auto &h) { *command(h, "layers.0.append").tasks = fbs::Affine(0, 0, 0, 1, 0); }},
    {"GatherOutput", "of 'y', which has 31 a row", [](auto &h) { *h.buffers[3]->size = fbs::Affine(0, 0, 0, 31, 0); constant(h, 4, "d").value = 8; command(h, "lm_head").bindings[0] = fbs::Binding(fbs::BindingKind::Buffer, 0); }},
    {"CostOverflow", "cost overflows", [](auto &h) { command(h, "lm_head").cost->operations_per_row = ~0ull / 3; }},
    // modules
    {"ModuleSegment", "no code segment", [](auto &h) { h.modules[0]->segment = 0; }},
    {"ModuleSegmentRange", "no code segment", [](auto &h) { h.modules[0]->segment = 3; }},
    {"ModuleLevel", "level", [](auto &h) { h.modules[0]->level.clear(); }},
    {"ModuleTwice", "there twice", [](auto &h) { h.modules.push_back(std::make_unique<fbs::CodeModuleT>(*h.modules[0])); }},
    {"ModuleTarget", "unknown target", [](auto &h) { h.modules[0]->target = fbs::Target(4); }},
    {"ModuleAbiZero", "kernel ABI 0", [](auto &h) { h.modules[0]->kernel_abi = 0; }},
    {"ModuleAbiNewer", "is newer than", [](auto &h) { h.modules[0]->kernel_abi = 1000; }},
    {"NoModule", "no code module for its CPU", [](auto &h) { h.modules.clear(); }},
    {"SymbolNotInModule", "doesn't provide kernel 'nowhere'", [](auto &h) { h.kernels[0]->symbol = "nowhere"; }},
    // text
    {"TokenizerSegment", "no tokenizer segment", [](auto &h) { h.text->tokenizer_segment = 1; }},
    {"TokenizerSegmentRange", "no tokenizer segment", [](auto &h) { h.text->tokenizer_segment = 3; }},
    {"TokenizerSegmentNegative", "no tokenizer segment", [](auto &h) { h.text->tokenizer_segment = -2; }},
    {"TemplateNotUtf8", "chat template", [](auto &h) { h.text->chat_template = "\x80"; }},
    {"StopIdNegative", "stop_ids", [](auto &h) { h.text->generation->stop_ids[0] = -1; }},
    {"StopIdBeyond", "stop_ids", [](auto &h) { h.text->generation->stop_ids[0] = 20; }},
    {"TemperatureNaN", "out of range", [](auto &h) { h.text->generation->temperature = std::nanf(""); }},
    {"TemperatureNegative", "out of range", [](auto &h) { h.text->generation->temperature = -1; }},
    {"TopP", "out of range", [](auto &h) { h.text->generation->top_p = 1.5f; }},
    {"MinP", "out of range", [](auto &h) { h.text->generation->min_p = -0.5f; }},
    {"TopK", "out of range", [](auto &h) { h.text->generation->top_k = -5; }},
    {"RepetitionPenalty", "out of range", [](auto &h) { h.text->generation->repetition_penalty = 0; }},
    // self-test
    {"SelfTestPrompt", "self_test has no prompt", [](auto &h) { h.self_test->prompt.clear(); }},
    {"SelfTestToken", "isn't in the vocabulary", [](auto &h) { h.self_test->tokens[0] = 20; }},
    {"SelfTestTooLong", "longer than", [](auto &h) { h.self_test->prompt.assign(300, 1); }},
};

class PlanVerifierTest : public testing::TestWithParam<Case> {};

} // namespace

TEST_P(PlanVerifierTest, Refuses) {
  TestPlan p = makeTestPlan();
  buildPlanImage(p.head, p.segments);
  GetParam().damage(p.head);
  auto plan = Plan::fromMemory(wrapHead(p.head, p.segments));
  ASSERT_FALSE(plan.isOk());
  EXPECT_NE(plan.status().message().find(GetParam().message), std::string::npos)
      << plan.status().message();
  EXPECT_EQ(plan.status().message().rfind("plan: ", 0), 0u) << "the file isn't named";
}

INSTANTIATE_TEST_SUITE_P(, PlanVerifierTest, testing::ValuesIn(kCases),
                         [](const auto &info) { return std::string(info.param.name); });

/// A table or vector that is missing altogether, which the object API writes for a null table.
TEST(PlanVerifier, RefusesMissingTables) {
  const std::pair<const char *, std::function<void(fbs::PlanT &)>> cases[] = {
      {"provenance", [](auto &h) { h.provenance.reset(); }},
      {"model", [](auto &h) { h.model.reset(); }},
      {"limits", [](auto &h) { h.limits.reset(); }},
      {"kv", [](auto &h) { h.kv.reset(); }},
      {"text", [](auto &h) { h.text.reset(); }},
      {"format", [](auto &h) { h.format.reset(); }},
      {"generation", [](auto &h) { h.text->generation.reset(); }}};
  for (const auto &[name, remove] : cases) {
    TestPlan p = makeTestPlan();
    buildPlanImage(p.head, p.segments);
    remove(p.head);
    auto plan = Plan::fromMemory(wrapHead(p.head, p.segments));
    ASSERT_FALSE(plan.isOk()) << name;
    EXPECT_NE(plan.status().message().find(name), std::string::npos) << plan.status().message();
  }
}

TEST(PlanVerifier, AcceptsWhatIsUnusualButRight) {
  const std::pair<const char *, std::function<void(fbs::PlanT &)>> cases[] = {
      {"labels that repeat",
       [](auto &h) { h.weights[1]->name = "embed", h.buffers[1]->name = "x"; }},
      {"no self-test", [](auto &h) { h.self_test.reset(); }},
      {"no tokenizer", [](auto &h) { h.text->tokenizer_segment = -1; }},
      {"no cost", [](auto &h) { h.commands[0]->cost.reset(); }},
      {"greedy", [](auto &h) { h.text->generation->temperature = 0; }},
      {"two weights side by side",
       [](auto &h) {
         h.weights[2]->offset = alignUp(h.weights[1]->offset + h.weights[1]->size, 64);
       }},
      {"slot by rows for a buffer by rows",
       [](auto &h) { *h.arena_slots[0]->size = fbs::Affine(0, 32, 0, 8, 0); }},
      {"layers of different widths", [](auto &h) {
         h.kv->layers[1]->element = fbs::ElementType::F16;
         h.kv->bytes_per_token = 48;
         for (size_t k : {2, 3}) { // the second layer gets kernels of its own
           h.kernels.push_back(std::make_unique<fbs::KernelT>(*h.kernels[k]));
           h.kernels.back()->symbol = k == 2 ? "append_f16" : "attention_f16";
           constant(h, h.kernels.size() - 1, "kv_element").value = 1;
         }
         command(h, "layers.1.append").kernel = 6;
         command(h, "layers.1.attention").kernel = 7;
       }}};
  for (const auto &[name, change] : cases) {
    TestPlan p = makeTestPlan();
    buildPlanImage(p.head, p.segments);
    change(p.head);
    auto plan = Plan::fromMemory(wrapHead(p.head, p.segments));
    EXPECT_TRUE(plan.isOk()) << name << ": " << plan.status().message();
  }
}

TEST(PlanVerifier, TestsMayBringTheirOwnKernels) {
  TestPlan p = makeTestPlan();
  p.head.modules.clear();
  std::vector<uint8_t> image = buildPlanImage(p.head, p.segments);
  EXPECT_FALSE(Plan::fromMemory(image).isOk());
  PlanOptions options;
  options.requireCode = false;
  EXPECT_TRUE(Plan::fromMemory(image, options).isOk());
}
