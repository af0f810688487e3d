// Names, order, defaults, functions, branches, configuration: what is not about one operator.
#include "ImportRun.h"
#include "gtest/gtest.h"

using namespace onnxtest;

#define EXPECT_HAS(run, text)                                                                      \
  EXPECT_TRUE((run).has(text)) << "no '" << (text) << "' in " << (run).error()
#define EXPECT_ERROR(run, text)                                                                    \
  EXPECT_NE((run).error().find(text), std::string::npos)                                           \
      << "no '" << (text) << "' in " << (run).error()

namespace {

Message x(std::vector<std::string> dims = {"4"}, int type = Float) {
  return value("x", type, dims);
}

TEST(OnnxImport, argumentsKeepNamesAndDimensions) {
  ImportRun run(oneNode(18, node("Neg", {"x"}, {"y"}), {x({"batch", "past + seq", "3"})}));
  EXPECT_HAS(run, "%arg0: tensor<?x?x3xf32> {graph.dims = [\"batch\", \"past + seq\", \"\"], "
                  "graph.name = \"x\"}");
  EXPECT_HAS(run, "-> (tensor<?x?x3xf32> {graph.name = \"y\"})");
  EXPECT_HAS(run, "graph.unary neg %arg0 : (tensor<?x?x3xf32>) -> tensor<?x?x3xf32>");
}

TEST(OnnxImport, nodeNamesAreLocations) {
  ImportRun run(oneNode(18, node("Neg", {"x"}, {"y"}, {}, "", "layers.0/neg"), {x()}));
  std::string text;
  llvm::raw_string_ostream stream(text);
  ASSERT_TRUE(run.module);
  run.module->print(stream, mlir::OpPrintingFlags().enableDebugInfo());
  EXPECT_NE(text.find("\"layers.0/neg\"("), std::string::npos) << text;
}

TEST(OnnxImport, smallTensorsAreConstantsLargeOnesWeights) {
  Model model = oneNode(18, node("Add", {"x", "w"}, {"t"}), {x({"2000"})},
                        {f32s("w", std::vector<float>(2000, 1.5f))});
  model.nodes.push_back(node("Mul", {"t", "s"}, {"y"}));
  model.initializers.push_back(tensor("s", Float, {}, rawBytes({2.0f})));
  ImportRun run(model);
  EXPECT_HAS(run, "graph.weight \"w\" in \"");
  EXPECT_HAS(run, "bytes 8000 : tensor<2000xf32>");
  EXPECT_HAS(run, "graph.constant dense<2.000000e+00> : tensor<f32>");
}

TEST(OnnxImport, tiedWeightIsOneWeight) {
  Model model = oneNode(18, node("Gather", {"w", "x"}, {"t"}), {x({"n"}, Int64)},
                        {tensor("w", Float, {64, 8}, std::string(64 * 8 * 4, '\0'))});
  model.nodes.push_back(node("Transpose", {"w"}, {"wt"}));
  model.nodes.push_back(node("MatMul", {"t", "wt"}, {"y"}));
  ImportRun run(model);
  EXPECT_EQ(run.ir.find("graph.weight"), run.ir.rfind("graph.weight")) << run.ir;
  EXPECT_HAS(run, "-> tensor<?x64xf32>");
}

TEST(OnnxImport, constantsOf4BitsAndOddCount) {
  // Case O25: first element in the low nibble, sign-extended.
  ImportRun run(
      oneNode(21, node("DequantizeLinear", {"q", "s"}, {"y"}), {},
              {tensor("q", Int4, {3}, "\x3c\x08"), tensor("s", Float, {}, rawBytes({0.5f}))}));
  EXPECT_HAS(run, "graph.constant dense<[-4, 3, -8]> : tensor<3xi4>");
}

TEST(OnnxImport, absentInputsKeepTheirPlace) {
  // Case O10.
  std::vector<Message> one{tensor("one", Float, {}, rawBytes({1.0f}))};
  EXPECT_HAS(ImportRun(oneNode(13, node("Clip", {"x", "", "one"}, {"y"}), {x()}, one)),
             "graph.clip %arg0 high %0");
  EXPECT_HAS(ImportRun(oneNode(13, node("Clip", {"x", "one", ""}, {"y"}), {x()}, one)),
             "graph.clip %arg0 low %0");
  EXPECT_HAS(ImportRun(oneNode(13, node("Clip", {"x"}, {"y"}), {x()})), "graph.clip %arg0 :");
  EXPECT_ERROR(ImportRun(oneNode(13, node("Add", {"", "x"}, {"y"}, {}, "", "bad"), {x()})),
               "model.onnx: node 'bad' (Add): input 0 is missing; it is required");
}

TEST(OnnxImport, unnamedOutputsAreUnrelated) {
  Model model = oneNode(18, node("TopK", {"x", "k"}, {"t", ""}), {x({"8"})}, {i64s("k", {2})});
  model.nodes.push_back(node("TopK", {"t", "k"}, {"y", ""}));
  ImportRun run(model);
  EXPECT_HAS(run, "return %values");
}

TEST(OnnxImport, initializersThatAreInputs) {
  // Case O11: a default since IR version 4, a constant before.
  auto model = [](int64_t ir) {
    Model result = oneNode(8, node("Add", {"x", "w"}, {"y"}), {x({"2"}), value("w", Float, {"2"})},
                           {f32s("w", {1, 1})});
    result.irVersion = ir;
    return result;
  };
  EXPECT_HAS(ImportRun(model(8)), "graph.default = dense<1.000000e+00> : tensor<2xf32>, graph.dims "
                                  "= [\"\"], graph.name = \"w\"");
  EXPECT_HAS(ImportRun(model(4)), "graph.binary add %arg0, %arg1");
  ImportRun old(model(3));
  EXPECT_FALSE(old.has("%arg1"));
  EXPECT_HAS(old, "graph.constant dense<1.000000e+00> : tensor<2xf32>");
  EXPECT_FALSE(ImportRun(model(8), {.foldDefaults = true}).has("%arg1"));
}

TEST(OnnxImport, duplicateNames_invalid) {
  // Case O23 a, d.
  Model twice = oneNode(18, node("Neg", {"x"}, {"y"}), {x()});
  twice.nodes.push_back(node("Abs", {"x"}, {"y"}, {}, "", "second"));
  EXPECT_ERROR(ImportRun(twice), "node 'second' (Abs): its output 'y' is defined already");
  EXPECT_ERROR(ImportRun(oneNode(18, node("Add", {"x", "w"}, {"y"}), {x()},
                                 {f32s("w", {1}), f32s("w", {2})})),
               "initializer 'w' is defined twice");
  EXPECT_ERROR(ImportRun(oneNode(18, node("Neg", {"x"}, {"y"}), {x(), x()})),
               "input 'x' is defined twice");
  EXPECT_ERROR(ImportRun(oneNode(18, node("Neg", {"x"}, {"x"}), {x()})),
               "its output 'x' is defined already");
}

TEST(OnnxImport, orderOfNodes_invalid) {
  // Case O23 e, and cycles.
  Model late = oneNode(18, node("Abs", {"t"}, {"y"}, {}, "", "first"), {x()});
  late.nodes.push_back(node("Neg", {"x"}, {"t"}, {}, "", "second"));
  EXPECT_ERROR(
      ImportRun(late),
      "node 'first' (Abs): it uses 't', which the later node 'second' defines; nodes must be "
      "in topological order");
  EXPECT_ERROR(ImportRun(oneNode(18, node("Abs", {"y"}, {"y"}), {x()})), "topological order");
  EXPECT_ERROR(ImportRun(oneNode(18, node("Abs", {"z"}, {"y"}), {x()})),
               "it uses 'z', which nothing defines");
  Model noOutput = oneNode(18, node("Neg", {"x"}, {"t"}), {x()});
  EXPECT_ERROR(ImportRun(noOutput), "output 'y' of the graph: it uses 'y', which nothing defines");
}

TEST(OnnxImport, unknownOperators_invalid) {
  EXPECT_ERROR(
      ImportRun(oneNode(18, node("Softmx", {"x"}, {"y"}, {}, "", "n7"), {x()})),
      "model.onnx: node 'n7' (Softmx): unsupported operator in opset 18; did you mean 'Softmax'?");
  EXPECT_ERROR(ImportRun(oneNode(18, node("Attend", {"x"}, {"y"}, {}, "my.domain", "n7"), {x()})),
               "node 'n7' (my.domain.Attend): unknown operator: domain 'my.domain' is not known");
  EXPECT_ERROR(ImportRun(oneNode(6, node("Add", {"x", "x"}, {"y"}), {x()})),
               "(Add): not supported in opset 6; supported from opset 7 on");
  EXPECT_ERROR(ImportRun(oneNode(99, node("Neg", {"x"}, {"y"}), {x()})),
               "needs version 99 of operator set 'ai.onnx'");
  EXPECT_ERROR(ImportRun(oneNode(18, node("Neg", {"x"}, {"y"}, {intAttr("axis", 1)}), {x()})),
               "attribute 'axis' is not known");
  EXPECT_ERROR(ImportRun(oneNode(18, node("Neg", {"x", "x"}, {"y"}), {x()})),
               "2 inputs; there are at most 1");
  EXPECT_ERROR(ImportRun(oneNode(18, node("Softmax", {"x"}, {"y"}, {floatAttr("axis", 1)}), {x()})),
               "attribute 'axis' is not an integer");
  EXPECT_ERROR(ImportRun(oneNode(18, node("Loop", {"", "", "x"}, {"y"}), {x()})),
               "attribute 'body' is missing");
}

TEST(OnnxImport, typesThatDontFit_invalid) {
  EXPECT_ERROR(ImportRun(oneNode(18, node("Neg", {"x"}, {"y"}), {x({"4"}, String)})),
               "input 'x' has elements of string, which is not supported");
  EXPECT_ERROR(ImportRun(oneNode(18, node("Neg", {"x"}, {"y"}), {x({"-7"})})),
               "input 'x' has the dimension -7");
  EXPECT_ERROR(ImportRun(oneNode(18, node("Neg", {"x"}, {"y"}), {x({"4611686018427387904", "4"})})),
               "2^60");
  EXPECT_ERROR(ImportRun(oneNode(18, node("Neg", {"x"}, {"y"}), {x()}, {}, Int64)),
               "output 'y' of the graph: it is declared as int64 but computed as f32");
  EXPECT_ERROR(ImportRun(oneNode(18, node("Add", {"x", "z"}, {"y"}, {}, "", "bad"),
                                 {x(), value("z", Int64, {"4"})})),
               "model.onnx: node 'bad': 'graph.binary' op failed to verify");
  EXPECT_ERROR(ImportRun(oneNode(18, node("Add", {"x", "z"}, {"y"}, {}, "", "bad"),
                                 {x(), value("z", Float, {"3"})})),
               "node 'bad' (Add): shapes [4] and [3] don't broadcast");
}

TEST(OnnxImport, wrongAnnotationOfAnOutputWarns) {
  Model model = oneNode(18, node("Neg", {"x"}, {"y"}), {x({"4"})});
  model.outputs = {value("y", Float, {"5"})};
  ImportRun run(model);
  EXPECT_HAS(run, "-> (tensor<4xf32>");
  ASSERT_EQ(run.warnings.size(), 1u);
  EXPECT_NE(run.warnings[0].find("output 'y' is declared with a shape"), std::string::npos);
}

TEST(OnnxImport, localFunctionsAreInlined) {
  Model model =
      oneNode(18, node("Twice", {"x", "x"}, {"y"}, {intAttr("to", 1)}, "my", "call"), {x()});
  model.functions = {function(
      "my", "Twice", {"a", "unused", "absent"}, {"b"},
      {node("Add", {"a", "a"}, {"sum"}), node("Cast", {"sum"}, {"b"}, {refAttr("to", 2, "to")})},
      {"to"})};
  model.domains.push_back({"my", 1});
  ImportRun run(model);
  EXPECT_HAS(run, "graph.binary add %arg0, %arg0");
  Model missing = model;
  missing.nodes = {node("Twice", {"x"}, {"y"}, {}, "my", "call")};
  EXPECT_ERROR(ImportRun(missing), "node 'call/n_b' (Cast): attribute 'to' is missing");
}

TEST(OnnxImport, functionsKeepTheirOwnOpset) {
  Model model = oneNode(18, node("Old", {"x"}, {"y"}, {}, "my"), {x({"2", "3"})});
  model.functions = {function("my", "Old", {"a"}, {"b"}, {node("Softmax", {"a"}, {"b"})}, {}, 11)};
  EXPECT_HAS(ImportRun(model), "graph.flatten");
}

TEST(OnnxImport, recursiveFunctions_invalid) {
  // Case M17.
  auto call = [](const std::string &name) {
    return node(name, {"a"}, {"b"}, {}, "my", "call_" + name);
  };
  auto define = [](const std::string &name, std::vector<Message> nodes) {
    return function("my", name, {"a"}, {"b"}, nodes);
  };
  Model model = oneNode(18, node("A", {"x"}, {"y"}, {}, "my"), {x()});
  model.functions = {define("A", {call("A")})};
  EXPECT_ERROR(ImportRun(model), "recursive function: 'A' calls itself");
  model.functions = {define("A", {call("B")}), define("B", {call("A")})};
  EXPECT_ERROR(ImportRun(model), "recursive function: 'A' calls itself");
  Message branch;
  branch.message(1, node("A", {"a"}, {"r"}, {}, "my")).message(12, anyShape("r", Float));
  model.functions = {
      define("A", {node("Cast", {"a"}, {"c"}, {intAttr("to", 9)}),
                   node("If", {"c"}, {"b"},
                        {graphAttr("then_branch", branch), graphAttr("else_branch", branch)})})};
  EXPECT_ERROR(ImportRun(model), "recursive function: 'A' calls itself");
  model.functions = {};
  EXPECT_ERROR(ImportRun(model), "unknown operator: domain 'my' is not known");
  model.functions = {function("", "Add", {"a"}, {"b"}, {node("Neg", {"a"}, {"b"})})};
  EXPECT_ERROR(ImportRun(model), "local function 'Add' has the name of a standard operator");
}

TEST(OnnxImport, functionsThatGrowWithoutEnd_invalid) {
  Model chain = oneNode(18, node("F9999", {"x"}, {"y"}, {}, "my"), {x()});
  Model doubling = oneNode(18, node("F40", {"x"}, {"y"}, {}, "my"), {x()});
  auto name = [](int i) { return "F" + std::to_string(i); };
  for (int i = 0; i < 10000; ++i)
    chain.functions.push_back(
        function("my", name(i), {"a"}, {"b"},
                 {node(i ? name(i - 1) : "Neg", {"a"}, {"b"}, {}, i ? "my" : "")}));
  for (int i = 0; i <= 40; ++i)
    doubling.functions.push_back(
        i ? function("my", name(i), {"a"}, {"b"},
                     {node(name(i - 1), {"a"}, {"t"}, {}, "my"),
                      node(name(i - 1), {"t"}, {"b"}, {}, "my")})
          : function("my", name(0), {"a"}, {"b"}, {node("Neg", {"a"}, {"b"})}));
  EXPECT_ERROR(ImportRun(chain), "functions call each other more than 128 deep");
  EXPECT_ERROR(ImportRun(doubling), "nodes once local functions are inlined");
}

Message branchOf(const std::vector<Message> &nodes, const std::string &output,
                 const std::vector<Message> &initializers = {}) {
  Message graph;
  for (const Message &one : nodes)
    graph.message(1, one);
  for (const Message &one : initializers)
    graph.message(5, one);
  return graph.message(12, anyShape(output, Float));
}

TEST(OnnxImport, branches) {
  auto model = [&](const Message &thenBranch, const Message &elseBranch,
                   const std::vector<Message> &initializers) {
    std::vector<Message> inputs{x({"n", "4"})};
    if (initializers.empty())
      inputs.push_back(value("c", Bool, {}));
    return oneNode(
        18,
        node("If", {"c"}, {"y"},
             {graphAttr("then_branch", thenBranch), graphAttr("else_branch", elseBranch)}, "",
             "choice"),
        inputs, initializers);
  };
  Message neg = branchOf({node("Neg", {"x"}, {"r"})}, "r"),
          abs = branchOf({node("Abs", {"x"}, {"r"})}, "r");
  ImportRun known(model(neg, abs, {tensor("c", Bool, {}, std::string(1, '\0'))}));
  EXPECT_HAS(known, "graph.unary abs");
  EXPECT_FALSE(known.has("graph.unary neg"));
  EXPECT_HAS(ImportRun(model(neg, abs, {})), "graph.select %arg1, %0, %1");
  // A name inside hides the one outside (case O23 b).
  Message hiding = branchOf({node("Neg", {"x"}, {"r"})}, "r", {f32s("x", {1, 2, 3})});
  EXPECT_HAS(ImportRun(model(hiding, abs, {})), "graph.if %arg1 : (tensor<i1>) -> tensor<*xf32>");
  Message two = branchOf({node("Neg", {"x"}, {"r"}), node("Abs", {"x"}, {"r"})}, "r");
  EXPECT_ERROR(ImportRun(model(two, abs, {})), "its output 'r' is defined already");
}

TEST(OnnxImport, branchesInBranchesWithoutEnd_invalid) {
  Model model = oneNode(18, node("Identity", {"x"}, {"y"}), {x(), value("c", Bool, {})});
  Message deep = branchOf({node("Neg", {"x"}, {"r"})}, "r");
  for (int i = 0; i < 64; ++i)
    deep = branchOf(
        {node("If", {"k"}, {"r"},
              {graphAttr("then_branch", deep), graphAttr("else_branch", branchOf({}, "x"))})},
        "r");
  model.nodes = {
      node("If", {"k"}, {"y"}, {graphAttr("then_branch", deep), graphAttr("else_branch", deep)})};
  model.initializers = {tensor("k", Bool, {}, std::string(1, '\1'))};
  EXPECT_ERROR(ImportRun(model), "graphs in graphs more than 32 deep");
}

TEST(OnnxImport, configurationBesideTheModel) {
  Model model = oneNode(18, node("Neg", {"x"}, {"y"}), {x()});
  auto run = [&](const std::vector<std::pair<std::string, std::string>> &files) {
    auto result = std::make_unique<ImportRun>();
    for (const auto &[name, text] : files)
      result->folder.write(name, text);
    result->importFile(result->folder.write("model.onnx", model.file()));
    return result;
  };
  auto hf = run({{"config.json", R"({"max_position_embeddings": 8192, "eos_token_id": 1})"},
                 {"generation_config.json", R"({"eos_token_id": [2, 3]})"}});
  EXPECT_HAS(*hf, "eos_ids = [2, 3]");
  EXPECT_HAS(*hf, "max_context = 8192 : i64");
  auto genai =
      run({{"genai_config.json", R"({"model": {"context_length": 256, "eos_token_id": 7}})"},
           {"config.json", R"({"max_position_embeddings": 8192, "eos_token_id": 1})"}});
  EXPECT_HAS(*genai, "eos_ids = [7]");
  EXPECT_HAS(*genai, "max_context = 256 : i64");
  EXPECT_ERROR(*run({{"config.json", "{"}}), "config.json");
  EXPECT_ERROR(*run({{"config.json", std::string(100000, '[')}}), "nested deeper than");
  EXPECT_ERROR(*run({{"config.json", R"({"eos_token_id": -5})"}}), "eos_token_id");
  EXPECT_ERROR(*run({{"config.json", R"({"max_position_embeddings": "many"})"}}),
               "max_position_embeddings");
}

TEST(OnnxImport, filesThatArentThere_invalid) {
  ImportRun run;
  run.importFile(run.folder.path() + "/none.onnx");
  EXPECT_ERROR(run, "none.onnx: can't be opened: No such file");
  ImportRun folder;
  folder.importFile(folder.folder.path());
  EXPECT_ERROR(folder, "not a regular file");
  ImportRun external(oneNode(18, node("Add", {"x", "w"}, {"y"}, {}, "", "n"), {x()},
                             {::onnxtest::external("w", Float, {4}, "w.bin")}));
  EXPECT_ERROR(external, "node 'n' (Add): external data: ");
  EXPECT_ERROR(external, "w.bin");
}

} // namespace
