// What the kernels of mixtures of experts and latent attention touch: a plan that gives them
// exactly that is accepted, one that gives four bytes less, or another number of tasks, is not.
#include "runtime/plan/Plan.h"
#include "runtime/plan/PlanFormat.h"
#include "test/unit/plan/TestPlan.h"

#include <gtest/gtest.h>

#include <functional>

using namespace llmrt;
using namespace llmrt::test;

namespace {

using fbs::Affine;

struct KernelCase {
  const char *name, *kind;
  std::vector<std::pair<const char *, int64_t>> constants;
  std::vector<Affine> sizes; ///< of the bindings
  Affine tasks;
};
void PrintTo(const KernelCase &c, std::ostream *out) { *out << c.name; }

const Affine token(int64_t bytes) { return Affine(0, bytes, 0, 0, 0); }
const Affine row(int64_t bytes) { return Affine(0, 0, 0, bytes, 0); }
const Affine fixed(int64_t bytes) { return Affine(bytes, 0, 0, 0, 0); }

const KernelCase kCases[] = {
    {"Route", "route", {{"experts", 6}, {"chosen", 2}}, {token(24), token(8), token(8)}, token(1)},
    {"RouteWithCorrectionOfRows",
     "route",
     {{"experts", 6}, {"chosen", 2}, {"correction", 1}, {"rows", 1}},
     {row(24), fixed(24), row(8), row(8)},
     row(1)},
    {"ExpertsUp", // f32 in N16: 3 experts of 2 * 16 rows, gate and up of 10
     "grouped_gemm",
     {{"k", 8},
      {"n", 20},
      {"glu", 1},
      {"groups", 3},
      {"slots", 2},
      {"chosen", 1},
      {"bias", 1},
      {"task_tiles", 2},
      {"w_packing", 1}},
     {token(32), fixed(3 * 32 * 8 * 4), token(8), fixed(3 * 32 * 4), token(2 * 10 * 4)},
     fixed(1)},
    {"ExpertsDown", // int8 inputs of their own, i8 in groups of 16 with f16 scales
     "grouped_gemm",
     {{"k", 16},
      {"n", 20},
      {"groups", 3},
      {"slots", 2},
      {"chosen", 1},
      {"x_int8", 1},
      {"group", 16},
      {"x_stride", 16},
      {"task_tiles", 1},
      {"w_element", 3},
      {"w_packing", 2},
      {"w_group", 16},
      {"w_scale", 1}},
     {token(2 * 24), fixed(3 * 2 * (256 + 32)), token(8), token(2 * 20 * 4)},
     fixed(2)},
    {"HeadMatrices",
     "grouped_gemm",
     {{"k", 4},
      {"n", 5},
      {"groups", 3},
      {"slots", 3},
      {"x_stride", 6},
      {"task_tiles", 4},
      {"w_packing", 1}},
     {token(3 * 6 * 4), fixed(3 * 16 * 4 * 4), token(3 * 5 * 4)},
     fixed(3)},
    {"Combine",
     "combine",
     {{"d", 5}, {"slots", 2}, {"residual", 1}},
     {token(40), token(8), token(20), token(20)},
     token(1)},
    {"QuantizeSlots",
     "quantize",
     {{"k", 16}, {"group", 16}, {"slots", 2}},
     {token(128), token(48)},
     token(2)},
};

/// The test plan with one command more.
TestPlan planWith(const KernelCase &c) {
  TestPlan p = makeTestPlan();
  auto kernel = std::make_unique<fbs::KernelT>();
  kernel->symbol = "extra";
  kernel->kind = c.kind;
  for (const auto &[name, value] : c.constants) {
    auto constant = std::make_unique<fbs::ConstantT>();
    constant->name = name;
    constant->value = value;
    kernel->constants.push_back(std::move(constant));
  }
  auto command = std::make_unique<fbs::CommandT>();
  command->name = "extra";
  command->kernel = static_cast<uint32_t>(p.head.kernels.size());
  command->tasks = std::make_unique<Affine>(c.tasks);
  for (const Affine &size : c.sizes) {
    kernel->signature.push_back("b");
    command->bindings.push_back(
        fbs::Binding(fbs::BindingKind::Buffer, static_cast<uint32_t>(p.head.buffers.size())));
    auto buffer = std::make_unique<fbs::BufferT>();
    buffer->name = "b";
    buffer->size = std::make_unique<Affine>(size);
    buffer->slot = static_cast<uint32_t>(p.head.arena_slots.size());
    p.head.buffers.push_back(std::move(buffer));
    p.head.arena_slots.push_back(std::make_unique<fbs::ArenaSlotT>());
    p.head.arena_slots.back()->size = std::make_unique<Affine>(size);
  }
  p.head.kernels.push_back(std::move(kernel));
  p.head.commands.push_back(std::move(command));
  return p;
}

Status verify(const KernelCase &c) {
  TestPlan p = planWith(c);
  PlanOptions options;
  options.requireCode = false; // the extra kernel has no machine code
  p.head.modules.clear();
  return Plan::fromMemory(buildPlanImage(p.head, p.segments), options).status();
}

Affine less(const Affine &a) {
  return Affine(a.constant() ? a.constant() - 4 : 0, a.per_token() ? a.per_token() - 4 : 0, 0,
                a.per_row() ? a.per_row() - 4 : 0, 0);
}

class MixturePlan : public testing::TestWithParam<KernelCase> {};

TEST_P(MixturePlan, ExactlyWhatTheKernelTouches) {
  const KernelCase &c = GetParam();
  Status status = verify(c);
  EXPECT_TRUE(status.isOk()) << status.message();
  for (size_t i = 0; i < c.sizes.size(); ++i) {
    KernelCase damaged = c;
    damaged.sizes[i] = less(c.sizes[i]);
    EXPECT_FALSE(verify(damaged).isOk()) << "binding " << i;
  }
  KernelCase damaged = c;
  damaged.tasks = c.tasks.constant() ? fixed(c.tasks.constant() + 1) : fixed(1);
  EXPECT_FALSE(verify(damaged).isOk()) << "tasks";
  damaged = c;
  damaged.sizes.pop_back();
  EXPECT_FALSE(verify(damaged).isOk()) << "a binding less";
}

INSTANTIATE_TEST_SUITE_P(Kernels, MixturePlan, testing::ValuesIn(kCases),
                         [](const auto &info) { return info.param.name; });

/// Both layers latent (no values of their own): 4 values a key, 2 of them the value's.
TestPlan latentPlan() {
  TestPlan p = makeTestPlan();
  for (auto &layer : p.head.kv->layers) {
    layer->value_size = 0;
  }
  p.head.kv->bytes_per_token = 2 * 4 * 4;
  auto set = [&](size_t kernel, const char *name, int64_t value) {
    for (auto &c : p.head.kernels[kernel]->constants)
      if (c->name == name) {
        c->value = value;
        return;
      }
    auto added = std::make_unique<fbs::ConstantT>();
    added->name = name;
    added->value = value;
    p.head.kernels[kernel]->constants.push_back(std::move(added));
  };
  p.head.kernels[2]->kind = "latent_append";
  p.head.kernels[2]->constants.clear();
  for (auto [name, value] : {std::pair("heads", 2), {"latent", 2}, {"rotary", 2}, {"stride", 2}})
    set(2, name, value);
  p.head.kernels[2]->signature = {"absorbed", "query", "latent", "key", "angles", "queries"};
  set(3, "value_size", 2);
  set(3, "latent", 1);
  auto buffer = std::make_unique<fbs::BufferT>();
  buffer->name = "wide";
  buffer->size = std::make_unique<Affine>(token(64));
  buffer->slot = static_cast<uint32_t>(p.head.arena_slots.size());
  const auto wide = static_cast<uint32_t>(p.head.buffers.size());
  p.head.buffers.push_back(std::move(buffer));
  p.head.arena_slots.push_back(std::make_unique<fbs::ArenaSlotT>());
  p.head.arena_slots.back()->size = std::make_unique<Affine>(token(64));
  int64_t layer = 0;
  for (auto &command : p.head.commands)
    if (command->kernel == 2 || command->kernel == 3) {
      command->scalars = {layer * 16};
      if (command->kernel == 2)
        command->bindings.assign(6, fbs::Binding(fbs::BindingKind::Buffer, wide));
      else
        ++layer;
    }
  return p;
}

TEST(LatentPlan, AcceptedAndChecked) {
  auto status = [](const std::function<void(fbs::PlanT &)> &change) {
    TestPlan p = latentPlan();
    change(p.head);
    PlanOptions options;
    options.requireCode = false;
    p.head.modules.clear();
    return Plan::fromMemory(buildPlanImage(p.head, p.segments), options).status();
  };
  EXPECT_TRUE(status([](auto &) {}).isOk()) << status([](auto &) {}).message();
  EXPECT_FALSE(status([](auto &h) { h.kv->bytes_per_token = 48; }).isOk());
  EXPECT_FALSE(status([](auto &h) { h.kv->layers[1]->kv_heads = 2; }).isOk());
  EXPECT_FALSE(status([](auto &h) { h.kv->layers[1]->value_size = 2; }).isOk());
  EXPECT_FALSE(status([](auto &h) { h.kv->layers[0]->element = fbs::ElementType::I8; }).isOk());
  EXPECT_FALSE(status([](auto &h) { h.kernels[2]->constants[1]->value = 3; }).isOk());
}

} // namespace
