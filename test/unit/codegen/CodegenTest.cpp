//===- CodegenTest.cpp - the object that a plan carries -----------------------===//
#include "codegen/cpu/kernels/reference/Reference.h"
#include "test/unit/codegen/EmulatedGemm.h"
#include "test/unit/codegen/KernelRunner.h"

#include "llvm/Object/ELFObjectFile.h"
#include "gtest/gtest.h"

#include <array>
#include <map>

using namespace llmc;
using namespace llmc::test;

namespace {

std::vector<KernelSpec> everyKind() {
  const int64_t one = 1;
  std::vector<KernelConstant> head = {{"heads", int64_t(9)}, {"kv_heads", int64_t(3)}};
  return {
      {"k_embed", "embed", {{"d", int64_t(64)}, {"scale", 1.0}}},
      {"k_angles", "rope_angles", {{"half", int64_t(32)}, {"scale", 1.0}}},
      {"k_gather", "rope_gather", {{"half", int64_t(32)}, {"positions", int64_t(99)}}},
      {"k_rows", "gather_rows", {{"d", int64_t(75)}}},
      {"k_norm", "norm", {{"d", int64_t(75)}, {"eps", 1e-5}}},
      {"k_quantize", "quantize", {{"k", int64_t(75)}, {"group", int64_t(32)}}},
      {"k_gemm",
       "gemm",
       {{"k", int64_t(576)},
        {"n", int64_t(576)},
        {"w_element", int64_t(4)},
        {"w_packing", int64_t(2)},
        {"w_group", int64_t(32)},
        {"w_scale", one},
        {"x_int8", one},
        {"group", int64_t(32)},
        {"task_tiles", int64_t(4)}}},
      {"k_append", "rope_append",
       head + std::vector<KernelConstant>{{"head_size", int64_t(64)},
                                          {"value_size", int64_t(64)},
                                          {"rotary", int64_t(64)},
                                          {"kv_element", one}}},
      {"k_attention", "attention",
       head + std::vector<KernelConstant>{{"key_size", int64_t(64)},
                                          {"value_size", int64_t(64)},
                                          {"scale", 0.125},
                                          {"kv_element", one},
                                          {"query_tile", int64_t(16)}}},
      {"k_silu", "elementwise", {{"op", std::string("silu_mul")}, {"d", int64_t(75)}}},
  };
}

std::string emit(const std::vector<KernelSpec> &specs, CpuLevel level, int optLevel,
                 const CpuDump &dump = {}) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto result = emitCpuObject(mlir::UnknownLoc::get(&context), specs, level, optLevel, dump);
  return failed(result) ? "" : result->bytes;
}

/// Every kind at every level: exported, nothing undefined, nothing needed, the same bytes twice.
TEST(CpuObject, IsSelfContainedAndDeterministic) {
  for (CpuLevel level : allCpuLevels()) {
    std::string bytes = emit(everyKind(), level, 3);
    ASSERT_FALSE(bytes.empty());
    EXPECT_EQ(bytes, emit(everyKind(), level, 3));
    auto file = llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(bytes, "code"));
    ASSERT_TRUE(bool(file));
    auto *elf = llvm::cast<llvm::object::ELF64LEObjectFile>(file->get());
    std::vector<std::string> defined;
    for (const llvm::object::ELFSymbolRef &symbol : elf->getDynamicSymbolIterators()) {
      auto flags = llvm::cantFail(symbol.getFlags());
      std::string name = llvm::cantFail(symbol.getName()).str();
      EXPECT_FALSE(flags & llvm::object::SymbolRef::SF_Undefined) << name;
      defined.push_back(name);
    }
    std::vector<std::string> wanted;
    for (const KernelSpec &spec : everyKind())
      wanted.push_back(spec.symbol);
    std::sort(defined.begin(), defined.end());
    std::sort(wanted.begin(), wanted.end());
    EXPECT_EQ(defined, wanted);
    for (const auto &entry : llvm::cantFail(elf->getELFFile().dynamicEntries()))
      EXPECT_NE(entry.getTag(), llvm::ELF::DT_NEEDED);
  }
}

/// Kernels share a text where they differ in what no inner loop knows; those of small products
/// (2^16 weights at most) in K, too.
TEST(CpuObject, KernelsShareTexts) {
  auto texts = [](std::vector<std::array<int64_t, 4>> shapes) { // k, n, residual, group
    std::vector<KernelSpec> specs;
    for (auto [k, n, residual, group] : shapes)
      specs.push_back({"g" + std::to_string(specs.size()),
                       "gemm",
                       {{"k", k},
                        {"n", n},
                        {"residual", residual},
                        {"w_element", int64_t(4)},
                        {"w_packing", int64_t(2)},
                        {"w_group", group},
                        {"x_int8", int64_t(1)},
                        {"group", group},
                        {"task_tiles", n % 7 + 1}}});
    std::string text;
    emit(specs, CpuLevel::X86V3, 1, [&](llvm::StringRef phase, llvm::StringRef t) {
      if (phase == "mlir")
        text = t;
    });
    return std::make_pair(llvm::StringRef(text).count("call @llmc_kernel_gemm"),
                          llvm::StringRef(text).count("call @g0.text"));
  };
  using Counts = std::pair<size_t, size_t>;
  EXPECT_EQ(texts({{64, 48, 0, 32}}), Counts(1, 0)) << "alone, all are constants";
  EXPECT_EQ(texts({{64, 48, 0, 32}, {96, 40, 1, 32}, {64, 1024, 0, 32}}), Counts(1, 3));
  EXPECT_EQ(texts({{64, 48, 0, 32}, {64, 48, 0, 64}}), Counts(2, 0)) << "groups are inner loops";
  EXPECT_EQ(texts({{64, 2048, 0, 32}, {64, 4096, 0, 32}}), Counts(1, 2));
  EXPECT_EQ(texts({{64, 2048, 0, 32}, {64, 2048, 1, 32}, {96, 2048, 0, 32}}), Counts(3, 0));
}

/// Layers with a window and without share the text of attention, and small products with a bias
/// and without that of gemm.
TEST(CpuObject, WindowsAndBiasesShareTexts) {
  auto count = [](std::vector<KernelSpec> specs, llvm::StringRef call) {
    std::string text;
    emit(specs, CpuLevel::X86V3, 1, [&](llvm::StringRef phase, llvm::StringRef t) {
      if (phase == "mlir")
        text = t;
    });
    return llvm::StringRef(text).count(call);
  };
  std::vector<KernelSpec> attentions, gemms;
  for (const KernelSpec &spec : everyKind())
    for (int64_t value : {0, 1}) {
      KernelSpec copy = spec;
      copy.symbol += std::to_string(value);
      copy.constants.push_back({spec.kind == "attention" ? "window" : "bias", value});
      for (KernelConstant &c : copy.constants)
        if (spec.kind == "gemm" && c.name == "n")
          c.value = int64_t(100); // a small product
      if (spec.kind == "attention")
        attentions.push_back(copy);
      else if (spec.kind == "gemm")
        gemms.push_back(copy);
    }
  EXPECT_EQ(count(attentions, "call @llmc_kernel_attention"), 1u);
  EXPECT_EQ(count(gemms, "call @llmc_kernel_gemm"), 1u);
}

TEST(CpuObject, OnlyInt8GemmHasUseForTiles) {
  auto gemm = [](int64_t int8, int64_t group, int64_t n = 1024) {
    return KernelSpec{
        "g", "gemm", {{"k", int64_t(128)}, {"n", n}, {"x_int8", int8}, {"group", group}}};
  };
  EXPECT_TRUE(hasUseFor(CpuLevel::X86V4Amx, {gemm(1, 32)}));
  EXPECT_FALSE(hasUseFor(CpuLevel::X86V4Amx, {gemm(1, 16), gemm(0, 0), gemm(1, 32, 512)}));
  EXPECT_TRUE(hasUseFor(CpuLevel::X86V4, {}));
  std::map<std::string, std::string> phases;
  emit(everyKind(), CpuLevel::X86V4Amx, 3,
       [&](llvm::StringRef phase, llvm::StringRef text) { phases[phase.str()] = text.str(); });
  EXPECT_NE(phases["asm"].find("tdpbssd"), std::string::npos);
  EXPECT_NE(phases["asm"].find("tilerelease"), std::string::npos);
}

/// x86-64-v4's code serves the AMX level too, but for what tiles do; and an object linked from
/// parts has every kernel.
TEST(CpuParts, LevelsShareWhatTilesDoNotServe) {
  std::vector<KernelSpec> specs = everyKind();
  std::vector<CpuPart> parts = cpuParts(specs, allCpuLevels());
  std::string text;
  for (const CpuPart &part : parts) {
    text += part.name + " " + std::to_string(part.specs.size());
    for (CpuLevel level : part.objects)
      text += " " + cpuLevelName(level).str();
    text += "\n";
  }
  const std::string rest = std::to_string(specs.size() - 2);
  EXPECT_EQ(text, "x86-64-v3.attention 1 x86-64-v3\n"
                  "x86-64-v4.attention 1 x86-64-v4 x86-64-v4-amx\n"
                  "aarch64-dotprod.attention 1 aarch64-dotprod aarch64-i8mm\n"
                  "x86-64-v3.int8_gemm 1 x86-64-v3\n"
                  "x86-64-v4.int8_gemm 1 x86-64-v4\n"
                  "x86-64-v4-amx.int8_gemm 1 x86-64-v4-amx\n"
                  "aarch64-dotprod.int8_gemm 1 aarch64-dotprod\n"
                  "aarch64-i8mm.int8_gemm 1 aarch64-i8mm\n"
                  "x86-64-v3 " +
                      rest +
                      " x86-64-v3\n"
                      "x86-64-v4 " +
                      rest + " x86-64-v4 x86-64-v4-amx\n" + "aarch64-dotprod " + rest +
                      " aarch64-dotprod aarch64-i8mm\n");

  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::Location loc = mlir::UnknownLoc::get(&context);
  std::string attention = *emitCpuPart(loc, parts[1], 2), tiles = *emitCpuPart(loc, parts[5], 2),
              others = *emitCpuPart(loc, parts[9], 2);
  CpuObject object = *linkCpuObject(loc, specs, CpuLevel::X86V4Amx, {attention, tiles, others});
  LoadedObject loaded(object.bytes);
  for (const KernelSpec &spec : specs)
    EXPECT_TRUE(loaded.find(spec.symbol)) << spec.symbol;
  EXPECT_EQ(object.scratchBytes.size(), specs.size());
}

TEST(CpuObject, DumpsEveryPhase) {
  std::map<std::string, std::string> phases;
  std::string bytes =
      emit(everyKind(), CpuLevel::X86V4, 2,
           [&](llvm::StringRef phase, llvm::StringRef text) { phases[phase.str()] = text.str(); });
  EXPECT_EQ(bytes, emit(everyKind(), CpuLevel::X86V4, 2)) << "looking changes nothing";
  EXPECT_NE(phases["mlir"].find("llvm.func @k_gemm"), std::string::npos);
  EXPECT_NE(phases["mlir"].find("scf.for"), std::string::npos);
  EXPECT_NE(phases["llvm"].find("llmc_kernel_gemm"), std::string::npos);
  // Everything is inlined: what isn't was not specialised either.
  EXPECT_EQ(phases["asm"].find("\tcall"), std::string::npos);
  EXPECT_NE(phases["asm"].find("vpdpbusd"), std::string::npos);
}

/// The kernels of all tokens and of the last ones differ in where a count is read, and share the
/// rest; a kernel that differs in anything else shares nothing.
TEST(CpuObject, KernelsThatDifferInRowsShareTheirText) {
  std::vector<KernelSpec> one;
  for (const KernelSpec &spec : everyKind())
    if (spec.kind == "gemm")
      one.push_back(spec);
  auto with = [&](const char *name, int64_t value) {
    std::vector<KernelSpec> two = one;
    two.push_back(one.front());
    two.back().symbol = "k_other";
    two.back().constants.push_back({name, value});
    return emit(two, CpuLevel::X86V3, 3).size();
  };
  size_t alone = emit(one, CpuLevel::X86V3, 3).size();
  EXPECT_LT(with("rows", 1), alone + alone / 4);
  EXPECT_GT(with("activation", 1), alone + alone / 4);
}

/// The same bits at every optimisation level.
TEST(CpuObject, OptimisationKeepsBits) {
  std::mt19937 rng(3);
  const int64_t d = 75, m = 4;
  std::vector<float> x = randomFloats(rng, m * d, -3, 3), w = randomFloats(rng, d);
  std::vector<float> first;
  for (int optLevel = 0; optLevel < 4; ++optLevel) {
    std::vector<float> all;
    Buffer xb = Buffer::of(x), wb = Buffer::of(w);
    for (const char *op : {"silu", "gelu", "gelu_tanh"}) {
      CompiledKernel kernel("elementwise", {{"op", std::string(op)}, {"d", d}},
                            runnableLevels().front(), optLevel);
      Buffer y(m * d * 4);
      kernel.run({}, {xb.data(), y.data()}, m);
      std::vector<float> v = y.floatVector();
      all.insert(all.end(), v.begin(), v.end());
    }
    CompiledKernel norm("norm", {{"d", d}, {"eps", 1e-5}}, runnableLevels().front(), optLevel);
    Buffer y(m * d * 4);
    norm.run({}, {xb.data(), wb.data(), y.data()}, m);
    std::vector<float> v = y.floatVector();
    all.insert(all.end(), v.begin(), v.end());
    if (optLevel == 0)
      first = all;
    EXPECT_TRUE(sameBits(all, first)) << optLevel;
  }
}

/// Two plans at once: /proc names of closed descriptors must not be taken for each other.
TEST(CpuObject, TwoObjectsLoadAtOnce) {
  LoadedObject a(emit({{"one", "gather_rows", {{"d", int64_t(1)}}}}, CpuLevel::X86V3, 1));
  LoadedObject b(emit({{"two", "gather_rows", {{"d", int64_t(2)}}}}, CpuLevel::X86V3, 1));
  EXPECT_TRUE(a.find("one") && b.find("two"));
  EXPECT_FALSE(a.find("two") || b.find("one"));
}

/// What no text implements is refused, with the reason.
TEST(KernelRules, RefusesWhatDoesNotExist) {
  struct Case {
    KernelSpec spec;
    const char *message;
  };
  const int64_t one = 1;
  for (const Case &c : {
           Case{{"k", "conv", {}}, "no such kind"},
           Case{{"k!", "norm", {}}, "a symbol is made of"},
           Case{{"k", "norm", {}}, "d must be from 1"},
           Case{{"k", "norm", {{"d", 1.5}}}, "must be an integer"},
           Case{{"k", "norm", {{"d", one}, {"d", one}}}, "given twice"},
           Case{{"k", "norm", {{"width", one}}}, "no constant 'width'; there are d, rows"},
           Case{{"k", "elementwise", {{"op", std::string("div")}, {"d", one}}},
                "op must be one of"},
           Case{
               {"k",
                "gemm",
                {{"k", one}, {"n", one}, {"task_tiles", one}, {"w_packing", one}, {"x_int8", one}}},
               "int8 activations need weights in N16K4"},
           Case{{"k",
                 "gemm",
                 {{"k", one},
                  {"n", one},
                  {"task_tiles", one},
                  {"w_packing", int64_t(2)},
                  {"w_element", int64_t(4)},
                  {"w_group", int64_t(20)}}},
                "multiple of 8"},
           Case{{"k",
                 "gemm",
                 {{"k", one},
                  {"n", one},
                  {"task_tiles", one},
                  {"w_packing", int64_t(2)},
                  {"w_element", int64_t(4)},
                  {"w_group", int64_t(32)},
                  {"x_int8", one},
                  {"group", int64_t(64)}}},
                "divides w_group 32"},
           Case{{"k",
                 "attention",
                 {{"heads", int64_t(9)},
                  {"kv_heads", int64_t(2)},
                  {"key_size", one},
                  {"value_size", one},
                  {"query_tile", one}}},
                "kv_heads must divide heads"},
       }) {
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    std::string message;
    mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &d) {
      message += d.str();
      return mlir::success();
    });
    EXPECT_TRUE(failed(verifyKernelSpec(mlir::UnknownLoc::get(&context), c.spec)));
    EXPECT_NE(message.find(c.message), std::string::npos) << message;
  }
}

/// \p gemm, a level's text of the integer gemm, against the reference for \p m tokens.
void expectReferenceBits(decltype(emulatedVnniGemm) *gemm, int64_t m, int64_t xGroup,
                         int64_t wGroup) {
  std::mt19937 rng(17);
  const int64_t n = 48, k = 3 * wGroup;
  for (bool isI4 : {true, false})
    for (bool hasMin : {false, true}) {
      WeightFormat f{isI4 ? Element::I4 : Element::I8,
                     Packing::N16K4,
                     static_cast<uint32_t>(wGroup),
                     Element::F16,
                     hasMin,
                     Element::F16};
      Buffer w(*packedBytes(f, n, k));
      reference::QuantizedMatrix matrix{n, k, wGroup, {}, {}, {}};
      for (int64_t t = 0; t < n / 16; ++t) {
        std::vector<std::vector<uint8_t>> q(16, std::vector<uint8_t>(k));
        std::vector<std::vector<float>> scales(16), mins(16);
        std::vector<QuantizedRow> rows;
        for (int r = 0; r < 16; ++r) {
          for (uint8_t &v : q[r])
            v = isI4 ? rng() & 15 : rng() % 4 == 0 ? 0x80 : rng() & 255;
          scales[r] = {0.5f, -0.25f, 0.125f}, mins[r] = {1.0f, -2.0f, 0.5f};
          rows.push_back({q[r].data(), scales[r].data(), hasMin ? mins[r].data() : nullptr});
          for (uint8_t v : q[r])
            matrix.q.push_back(isI4 ? (hasMin ? v : v - 8) : int8_t(v));
          matrix.scales.insert(matrix.scales.end(), scales[r].begin(), scales[r].end());
          if (hasMin)
            matrix.mins.insert(matrix.mins.end(), mins[r].begin(), mins[r].end());
        }
        packTile(f, k, std::span<const QuantizedRow>(rows), w.data() + t * *packedTileBytes(f, k));
      }
      std::vector<float> x = randomFloats(rng, m * k, -3, 3);
      std::vector<float> want =
          reference::gemmInt(reference::quantizeRows(m, k, xGroup, x.data()), matrix);
      CompiledKernel quantize("quantize", {{"k", k}, {"group", xGroup}}, runnableLevels().front());
      Buffer xb = Buffer::of(x), q8(m * LLMRT_Q8_ROW_BYTES(k, xGroup)), y(m * n * 4);
      quantize.run({}, {xb.data(), q8.data()}, m);
      LlmrtStep step{};
      step.T = m;
      void *bindings[] = {q8.data(), w.data(), y.data()};
      gemm(&step, bindings, n / 16, {k, n, int64_t(f.element), wGroup, 1, hasMin, xGroup});
      EXPECT_TRUE(sameBits(y.floatVector(), want)) << isI4 << hasMin;
    }
}

TEST(IntDot, EmulatedVnniMatchesReference) {
  expectReferenceBits(emulatedVnniGemm, 13, 32, 32); // 13: blocks of 8, 4 and 1
}

TEST(Tiles, EmulatedTilesMatchReference) {
  expectReferenceBits(emulatedTilesGemm, 64 + 37, 32, 32); // 37: two single tiles, 5 tokens without
  expectReferenceBits(emulatedTilesGemm, 19, 64, 64);      // tiles of 64 along K
  expectReferenceBits(emulatedTilesGemm, 16, 32, 64);      // two groups of x in one of w
  expectReferenceBits(emulatedTilesGemm, 17, 96, 96);      // three tiles of 32 in a group
  expectReferenceBits(emulatedTilesGemm, 18, 16, 16);      // groups that no tile takes
}

} // namespace
