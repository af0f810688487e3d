// What an operator means in each version, and which shapes follow.
#include "ImportRun.h"
#include "gtest/gtest.h"

using namespace onnxtest;

#define EXPECT_HAS(run, text)                                                                      \
  EXPECT_TRUE((run).has(text)) << "no '" << (text) << "' in " << (run).error()
#define EXPECT_ERROR(run, text)                                                                    \
  EXPECT_NE((run).error().find(text), std::string::npos)                                           \
      << "no '" << (text) << "' in " << (run).error()

namespace {

Message in(const std::string &name, std::vector<std::string> dims, int type = Float) {
  return value(name, type, dims);
}

TEST(OnnxOperators, softmaxChangedItsMeaning) {
  // Case O01: one row of 12 before opset 13, rows of the last axis since.
  for (const char *op : {"Softmax", "LogSoftmax"}) {
    ImportRun old(oneNode(11, node(op, {"x"}, {"y"}), {in("x", {"2", "3", "4"})}));
    EXPECT_HAS(old,
               "graph.flatten %arg0 {axis = 1 : i64} : (tensor<2x3x4xf32>) -> tensor<2x12xf32>");
    EXPECT_HAS(old, "-> tensor<2x3x4xf32>\n    return");
    ImportRun now(oneNode(13, node(op, {"x"}, {"y"}), {in("x", {"2", "3", "4"})}));
    EXPECT_HAS(now, "graph.softmax %arg0 {axis = -1 : i64");
    EXPECT_FALSE(now.has("flatten"));
  }
  EXPECT_HAS(ImportRun(oneNode(11, node("Hardmax", {"x"}, {"y"}), {in("x", {"2", "3", "4"})})),
             "tensor<2x12xf32>");
  EXPECT_HAS(ImportRun(oneNode(13, node("Hardmax", {"x"}, {"y"}), {in("x", {"2", "3", "4"})})),
             "graph.one_hot");
}

TEST(OnnxOperators, axesAsAttributeThenAsInput) {
  Message x = in("x", {"a", "1", "4"});
  std::vector<Message> axes{i64s("axes", {1})};
  EXPECT_HAS(ImportRun(oneNode(11, node("Squeeze", {"x"}, {"y"}, {intsAttr("axes", {1})}), {x})),
             "-> tensor<?x4xf32>");
  EXPECT_HAS(ImportRun(oneNode(13, node("Squeeze", {"x", "axes"}, {"y"}), {x}, axes)),
             "-> tensor<?x4xf32>");
  EXPECT_ERROR(ImportRun(oneNode(13, node("Squeeze", {"x"}, {"y"}, {intsAttr("axes", {1})}), {x})),
               "attribute 'axes' is not known");
  EXPECT_HAS(
      ImportRun(oneNode(11, node("Unsqueeze", {"x"}, {"y"}, {intsAttr("axes", {0, -1})}), {x})),
      "-> tensor<1x?x1x4x1xf32>");
  EXPECT_HAS(ImportRun(oneNode(11, node("ReduceSum", {"x"}, {"y"}, {intsAttr("axes", {2})}), {x})),
             "-> tensor<?x1x1xf32>");
  EXPECT_HAS(ImportRun(oneNode(
                 13, node("ReduceSum", {"x", "axes"}, {"y"}, {intAttr("keepdims", 0)}), {x}, axes)),
             "-> tensor<?x4xf32>");
  // Means took axes as an input only at 18.
  EXPECT_ERROR(ImportRun(oneNode(13, node("ReduceMean", {"x", "axes"}, {"y"}), {x}, axes)),
               "at most 1 in opset 13");
  EXPECT_HAS(ImportRun(oneNode(18, node("ReduceMean", {"x", "axes"}, {"y"}), {x}, axes)),
             "graph.reduce mean %arg0 axes");
}

TEST(OnnxOperators, reductionOverNoAxis) {
  Message x = in("x", {"2", "3"});
  auto reduce = [&](const char *op, int64_t noop) {
    return ImportRun(
        oneNode(18, node(op, {"x"}, {"y"}, {intAttr("noop_with_empty_axes", noop)}), {x}));
  };
  EXPECT_HAS(reduce("ReduceSum", 0), "-> tensor<1x1xf32>");
  EXPECT_HAS(reduce("ReduceSum", 1), "return %arg0");
  EXPECT_HAS(reduce("ReduceSumSquare", 1), "graph.binary mul %arg0, %arg0");
  EXPECT_HAS(reduce("ReduceL2", 1), "graph.unary abs");
}

TEST(OnnxOperators, sliceBounds) {
  // Case O04: lengths as the clamp rule gives them, from constants in attributes and inputs.
  struct {
    int64_t start, end, step;
    const char *length;
  } cases[] = {{-1, INT64_MIN, -1, "5"}, {0, 5, -1, "0"},
               {4, -6, -1, "5"},         {10, 0, -2, "2"},
               {0, INT64_MAX, 2, "3"},   {3, 1, 1, "0"},
               {4, 0, -1, "4"},          {-2147483648, 2147483647, 1, "5"},
               {4, 0, INT64_MIN, "1"},   {-1, INT64_MAX, -1, "0"}};
  for (const auto &c : cases) {
    ImportRun run(
        oneNode(13, node("Slice", {"x", "s", "e", "a", "t"}, {"y"}), {in("x", {"5"})},
                {i64s("s", {c.start}), i64s("e", {c.end}), i64s("a", {0}), i64s("t", {c.step})}));
    EXPECT_HAS(run, std::string("-> tensor<") + c.length + "xf32>\n    return");
  }
  EXPECT_HAS(ImportRun(oneNode(
                 9, node("Slice", {"x"}, {"y"}, {intsAttr("starts", {1}), intsAttr("ends", {-1})}),
                 {in("x", {"5"})})),
             "-> tensor<3xf32>");
  // A whole slice keeps a dimension that is not known, a part of it gives an unknown one.
  EXPECT_HAS(ImportRun(oneNode(13, node("Slice", {"x", "s", "e"}, {"y"}), {in("x", {"n", "7"})},
                               {i64s("s", {0, 1}), i64s("e", {INT64_MAX, 3})})),
             "-> tensor<?x2xf32>");
  // Empty dimensions have nothing to slice.
  EXPECT_HAS(ImportRun(oneNode(
                 13, node("Slice", {"x", "s", "e", "a", "t"}, {"y"}), {in("x", {"0"})},
                 {i64s("s", {-1}), i64s("e", {INT64_MIN}), i64s("a", {0}), i64s("t", {-1})})),
             "-> tensor<0xf32>");
  EXPECT_ERROR(
      ImportRun(oneNode(13, node("Slice", {"x", "s", "e", "a", "t"}, {"y"}), {in("x", {"5"})},
                        {i64s("s", {0}), i64s("e", {1}), i64s("a", {0}), i64s("t", {0})})),
      "a step of 0");
  EXPECT_ERROR(ImportRun(oneNode(13, node("Slice", {"x", "s", "e", "a"}, {"y"}), {in("x", {"5"})},
                                 {i64s("s", {0}), i64s("e", {1}), i64s("a", {INT64_MIN})})),
               "out of range for rank 1");
}

TEST(OnnxOperators, emptyTensorsAreInput) {
  // Case O05.
  EXPECT_HAS(ImportRun(oneNode(13, node("MatMul", {"a", "b"}, {"y"}),
                               {in("a", {"2", "0"}), in("b", {"0", "3"})})),
             "-> tensor<2x3xf32>");
  EXPECT_HAS(ImportRun(oneNode(13, node("Concat", {"a", "b"}, {"y"}, {intAttr("axis", 2)}),
                               {in("a", {"1", "2", "0", "2"}), in("b", {"1", "2", "3", "2"})})),
             "-> tensor<1x2x3x2xf32>");
  EXPECT_HAS(ImportRun(oneNode(18, node("ReduceSum", {"x", "a"}, {"y"}, {intAttr("keepdims", 0)}),
                               {in("x", {"2", "0"})}, {i64s("a", {1})})),
             "-> tensor<2xf32>");
}

TEST(OnnxOperators, scatterIndexDepth) {
  // Case O03.
  std::vector<Message> inputs{in("d", {"2", "2", "2"}), in("i", {"1", "1", "2"}, Int64),
                              in("u", {"1", "1", "2"})};
  EXPECT_HAS(ImportRun(oneNode(16, node("ScatterND", {"d", "i", "u"}, {"y"}), inputs)),
             "graph.scatter_nd none");
  EXPECT_HAS(
      ImportRun(oneNode(
          16, node("ScatterND", {"d", "i", "u"}, {"y"}, {stringAttr("reduction", "add")}), inputs)),
      "graph.scatter_nd add");
  EXPECT_ERROR(
      ImportRun(oneNode(
          16, node("ScatterND", {"d", "i", "u"}, {"y"}, {stringAttr("reduction", "max")}), inputs)),
      "reduction is 'max'; supported in opset 16: none, add, mul");
  EXPECT_ERROR(
      ImportRun(oneNode(
          13, node("ScatterND", {"d", "i", "u"}, {"y"}, {stringAttr("reduction", "add")}), inputs)),
      "attribute 'reduction' is not known");
  inputs[1] = in("i", {"1", "4"}, Int64);
  EXPECT_ERROR(ImportRun(oneNode(16, node("ScatterND", {"d", "i", "u"}, {"y"}), inputs)),
               "index vectors of 4 for data of rank 3");
}

TEST(OnnxOperators, gatherOutOfRange_invalid) {
  EXPECT_ERROR(
      ImportRun(oneNode(13, node("Gather", {"x", "i"}, {"y"}), {in("x", {"4"})}, {i64s("i", {4})})),
      "index 4 is out of range for dimension 0 of [4]");
  EXPECT_HAS(ImportRun(oneNode(13, node("Gather", {"x", "i"}, {"y"}), {in("x", {"4", "n"})},
                               {i64s("i", {-4})})),
             "-> tensor<1x?xf32>");
}

TEST(OnnxOperators, rangeLength) {
  // Case O24.
  struct {
    int64_t start, limit, step;
    const char *length;
  } cases[] = {{0, 0, 1, "0"},
               {5, 0, -2, "3"},
               {3, 1, 1, "0"},
               {10, 1, -3, "3"},
               {9007199254740992, 9007199254740995, 1, "3"}};
  for (const auto &c : cases)
    EXPECT_HAS(ImportRun(oneNode(11, node("Range", {"s", "l", "d"}, {"y"}), {},
                                 {i64("s", c.start), i64("l", c.limit), i64("d", c.step)}, Int64)),
               std::string("-> tensor<") + c.length + "xi64>\n    return");
  EXPECT_ERROR(ImportRun(oneNode(11, node("Range", {"s", "l", "d"}, {"y"}), {},
                                 {i64("s", 0), i64("l", 4), i64("d", 0)}, Int64)),
               "a step of 0");
}

TEST(OnnxOperators, triluOfAllTypes) {
  // Case O16: k of shape [1], boolean input.
  EXPECT_HAS(ImportRun(oneNode(14, node("Trilu", {"x", "k"}, {"y"}, {intAttr("upper", 0)}),
                               {in("x", {"3", "3"}, Bool)}, {i64s("k", {1})}, Bool)),
             "graph.trilu %arg0 diagonal %");
  EXPECT_HAS(ImportRun(oneNode(14, node("Trilu", {"x", "k"}, {"y"}), {in("x", {"0", "3"})},
                               {i64("k", -5)})),
             "-> tensor<0x3xf32>");
}

TEST(OnnxOperators, shapesThroughShapeArithmetic) {
  // Shape, Gather, Concat, Reshape as exporters write it, and the "expand with -1" idiom.
  Model model;
  model.inputs = {in("x", {"batch", "sequence", "64"})};
  model.initializers = {i64("zero", 0), i64("one", 1), i64s("axis", {0}), i64s("heads", {4}),
                        i64s("rest", {-1})};
  model.nodes = {node("Shape", {"x"}, {"shape"}),
                 node("Gather", {"shape", "zero"}, {"b"}),
                 node("Gather", {"shape", "one"}, {"s"}),
                 node("Unsqueeze", {"b", "axis"}, {"b1"}),
                 node("Unsqueeze", {"s", "axis"}, {"s1"}),
                 node("Concat", {"b1", "s1", "heads", "rest"}, {"target"}, {intAttr("axis", 0)}),
                 node("Reshape", {"x", "target"}, {"split"}),
                 node("Concat", {"b1", "s1", "rest"}, {"back"}, {intAttr("axis", 0)}),
                 node("Reshape", {"split", "back"}, {"y"})};
  model.outputs = {anyShape("split", Float), anyShape("y", Float)};
  EXPECT_HAS(ImportRun(model),
             "-> (tensor<?x?x4x16xf32> {graph.name = \"split\"}, tensor<?x?x64xf32>");

  Model expand;
  expand.inputs = {in("x", {"1", "1", "1"}), in("p", {"batch", "n"})};
  expand.initializers = {i64("zero", 0), i64s("axis", {0}), i64s("rest", {-1}), i64s("two", {2}),
                         i64("minus", -1)};
  expand.nodes = {node("Shape", {"p"}, {"shape"}),
                  node("Gather", {"shape", "zero"}, {"b"}),
                  node("Unsqueeze", {"b", "axis"}, {"b1"}),
                  node("Concat", {"b1", "rest", "two"}, {"t"}, {intAttr("axis", 0)}),
                  node("Shape", {"t"}, {"len"}),
                  node("ConstantOfShape", {"len"}, {"ones"}, {tensorAttr("value", i64s("", {1}))}),
                  node("Mul", {"ones", "minus"}, {"minuses"}),
                  node("Equal", {"t", "minuses"}, {"is"}),
                  node("Where", {"is", "ones", "t"}, {"target"}),
                  node("Expand", {"x", "target"}, {"y"})};
  expand.outputs = {anyShape("y", Float)};
  EXPECT_HAS(ImportRun(expand), "-> tensor<?x1x2xf32>\n    return");
}

TEST(OnnxOperators, pastAndNewTokensAddUp) {
  Model model;
  model.inputs = {in("past", {"b", "2", "past", "8"}), in("new", {"b", "2", "s", "8"}),
                  in("mask", {"b", "1", "s", "total"})};
  model.initializers = {i64("two", 2), i64("one", 1)};
  model.nodes = {node("Concat", {"past", "new"}, {"k"}, {intAttr("axis", 2)}),
                 node("Shape", {"past"}, {"ps"}),
                 node("Gather", {"ps", "two"}, {"p"}),
                 node("Shape", {"new"}, {"ns"}),
                 node("Gather", {"ns", "two"}, {"s"}),
                 node("Add", {"s", "p"}, {"t"}),
                 node("Range", {"p", "t", "one"}, {"r"}),
                 node("Shape", {"r"}, {"rs"}),
                 node("Shape", {"new"}, {"ns2"}),
                 node("Reshape", {"r", "rs"}, {"y"})};
  model.outputs = {anyShape("k", Float), anyShape("y", Int64)};
  EXPECT_HAS(ImportRun(model), "-> (tensor<?x2x?x8xf32>");
}

TEST(OnnxOperators, reshape) {
  auto run = [&](std::vector<int64_t> target, std::vector<std::string> dims,
                 int64_t allowZero = 0) {
    return ImportRun(oneNode(14,
                             node("Reshape", {"x", "s"}, {"y"}, {intAttr("allowzero", allowZero)}),
                             {in("x", dims)}, {i64s("s", target)}));
  };
  EXPECT_HAS(run({0, -1}, {"n", "3", "4"}), "-> tensor<?x12xf32>");
  EXPECT_HAS(run({-1, 6}, {"3", "4"}), "-> tensor<2x6xf32>");
  EXPECT_ERROR(run({-1, -1}, {"3", "4"}), "two dimensions of -1");
  EXPECT_ERROR(run({5, 5}, {"3", "4"}), "[3, 4] can't take the shape [5, 5]");
  EXPECT_ERROR(run({-2, 6}, {"3", "4"}), "a dimension below -1");
  EXPECT_ERROR(run({3, 4, 0}, {"3", "4"}), "keeps dimension 2");
  EXPECT_HAS(run({0, 7}, {"0", "4"}, 1), "-> tensor<0x7xf32>");
}

TEST(OnnxOperators, clipByVersion) {
  EXPECT_HAS(
      ImportRun(oneNode(6, node("Clip", {"x"}, {"y"}, {floatAttr("max", 6)}), {in("x", {"4"})})),
      "graph.clip %arg0 high %0");
  EXPECT_ERROR(
      ImportRun(oneNode(11, node("Clip", {"x"}, {"y"}, {floatAttr("max", 6)}), {in("x", {"4"})})),
      "attribute 'max' is not known");
}

TEST(OnnxOperators, castsAndTypes) {
  EXPECT_HAS(ImportRun(oneNode(13, node("Cast", {"x"}, {"y"}, {intAttr("to", BFloat16)}),
                               {in("x", {"4"})}, {}, BFloat16)),
             "-> tensor<4xbf16>");
  EXPECT_HAS(ImportRun(oneNode(13, node("Cast", {"x"}, {"y"}, {intAttr("to", UInt8)}),
                               {in("x", {"4"})}, {}, UInt8)),
             "-> tensor<4xui8>");
  EXPECT_ERROR(
      ImportRun(oneNode(13, node("Cast", {"x"}, {"y"}, {intAttr("to", String)}), {in("x", {"4"})})),
      "a cast to string is not supported");
  EXPECT_HAS(
      ImportRun(oneNode(13, node("Pow", {"x", "e"}, {"y"}), {in("x", {"4"})}, {i64("e", 2)})),
      "graph.cast");
}

TEST(OnnxOperators, splitSizes) {
  Message x = in("x", {"n", "7"});
  EXPECT_HAS(
      ImportRun(oneNode(
          18, node("Split", {"x"}, {"a", "y"}, {intAttr("axis", 1), intAttr("num_outputs", 2)}),
          {x})),
      "-> (tensor<?x4xf32>, tensor<?x3xf32>)");
  EXPECT_HAS(ImportRun(oneNode(13, node("Split", {"x", "s"}, {"a", "y"}, {intAttr("axis", 1)}), {x},
                               {i64s("s", {2, 5})})),
             "-> (tensor<?x2xf32>, tensor<?x5xf32>)");
  EXPECT_ERROR(ImportRun(oneNode(13, node("Split", {"x", "s"}, {"a", "y"}, {intAttr("axis", 1)}),
                                 {x}, {i64s("s", {2, 6})})),
               "don't add up to 7");
  EXPECT_HAS(
      ImportRun(oneNode(
          11, node("Split", {"x"}, {"a", "y"}, {intAttr("axis", 1), intsAttr("split", {3, 4})}),
          {x})),
      "tensor<?x4xf32>)");
}

TEST(OnnxOperators, groupQueryAttentionOfPackedQkv) {
  // Cases O10 e, O17: empty names in the middle and at the end; lengths as [batch, 1].
  auto model = [&](std::vector<std::string> lengths, std::vector<Message> attributes) {
    attributes.push_back(intAttr("num_heads", 4));
    attributes.push_back(intAttr("kv_num_heads", 2));
    Model result = oneNode(
        21,
        node("GroupQueryAttention", {"qkv", "", "", "pk", "pv", "len", "total", "", "", "", ""},
             {"y", "ok", "ov"}, attributes, "com.microsoft", "attn"),
        {in("qkv", {"b", "s", "128"}), in("pk", {"b", "2", "p", "16"}),
         in("pv", {"b", "2", "p", "16"}), in("len", lengths, Int32), in("total", {}, Int32)});
    result.outputs.push_back(anyShape("ok", Float));
    return result;
  };
  ImportRun run(model({"b"}, {}));
  EXPECT_HAS(run, "graph.group_query_attention %arg0 past %arg1, %arg2 lengths %arg3, %arg4 {");
  EXPECT_HAS(run, "-> (tensor<?x?x64xf32> {graph.name = \"y\"}, tensor<?x2x?x16xf32>");
  EXPECT_HAS(ImportRun(model({"b", "1"}, {})), "graph.reshape %arg3");
  EXPECT_ERROR(
      ImportRun(model({"b"}, {intAttr("do_rotary", 1)})),
      "node 'attn' (com.microsoft.GroupQueryAttention): do_rotary needs cos_cache and sin_cache");
  EXPECT_ERROR(ImportRun(model({"b"}, {intAttr("local_window_size", 0)})),
               "local_window_size is 0");
  EXPECT_ERROR(ImportRun(model({"b"}, {stringAttr("k_quant_type", "PER_TENSOR")})),
               "k_quant_type, v_quant_type, k_scale and v_scale have to be given together");
  EXPECT_ERROR(ImportRun(model({"b"}, {intAttr("new_attribute", 1)})),
               "attribute 'new_attribute' is not known");
  EXPECT_HAS(ImportRun(model({"b"}, {intAttr("local_window_size", 8), floatAttr("softcap", 5)})),
             "local_window_size = 8");
}

TEST(OnnxOperators, attentionWithAndWithoutPast) {
  std::vector<Message> qkv{in("q", {"b", "s", "64"}), in("k", {"b", "s", "32"}),
                           in("v", {"b", "s", "16"})};
  std::vector<Message> heads{intAttr("q_num_heads", 4), intAttr("kv_num_heads", 2)};
  EXPECT_HAS(ImportRun(oneNode(23, node("Attention", {"q", "k", "v"}, {"y"}, heads), qkv)),
             "-> tensor<?x?x32xf32>");
  EXPECT_HAS(ImportRun(oneNode(23, node("Attention", {"q", "k", "v"}, {"y", "pk"}, heads), qkv)),
             "graph.library \"attention\"");
  EXPECT_ERROR(ImportRun(oneNode(23, node("Attention", {"q", "k", "v"}, {"y"}), qkv)),
               "q_num_heads and kv_num_heads are needed for rank 3");
  EXPECT_ERROR(ImportRun(oneNode(
                   23, node("Attention", {"q", "k", "v", "", "", "", "k"}, {"y"}, heads), qkv)),
               "at most 6 in opset 23");
  EXPECT_ERROR(ImportRun(oneNode(22, node("Attention", {"q", "k", "v"}, {"y"}, heads), qkv)),
               "supported from opset 23 on");
}

TEST(OnnxOperators, skipNormGivesTheResidual) {
  Model model = oneNode(21,
                        node("SkipSimplifiedLayerNormalization", {"x", "s", "g"},
                             {"y", "", "", "sum"}, {floatAttr("epsilon", 1e-5f)}, "com.microsoft"),
                        {in("x", {"b", "s", "8"}), in("s", {"b", "s", "8"})},
                        {f32s("g", std::vector<float>(8, 1))});
  model.outputs.push_back(anyShape("sum", Float));
  ImportRun run(model);
  EXPECT_HAS(run, "return %2, %1");
  // ONNX Runtime's own operator in the default domain.
  EXPECT_HAS(ImportRun(oneNode(21,
                               node("SimplifiedLayerNormalization", {"x", "g"}, {"y"},
                                    {intAttr("axis", -1), intAttr("stash_type", 1)}),
                               {in("x", {"b", "8"})}, {f32s("g", std::vector<float>(8, 1))})),
             "graph.rms_norm");
  EXPECT_ERROR(ImportRun(oneNode(
                   23, node("RMSNormalization", {"x", "g"}, {"y"}, {intAttr("stash_type", 10)}),
                   {in("x", {"b", "8"})}, {f32s("g", std::vector<float>(8, 1))})),
               "stash_type 10 is not supported");
}

TEST(OnnxOperators, quantizedMatrices) {
  auto model = [&](int64_t k, int64_t n, int64_t block, size_t bytes, size_t scales,
                   int64_t bits = 4) {
    return oneNode(21,
                   node("MatMulNBits", {"a", "b", "s"}, {"y"},
                        {intAttr("K", k), intAttr("N", n), intAttr("bits", bits),
                         intAttr("block_size", block), intAttr("accuracy_level", 4)},
                        "com.microsoft"),
                   {in("a", {"m", std::to_string(k)})},
                   {tensor("b", UInt8, {static_cast<int64_t>(bytes)}, std::string(bytes, '\x88')),
                    f32s("s", std::vector<float>(scales, 1))});
  };
  ImportRun run(model(64, 16, 32, 16 * 2 * 16, 32));
  EXPECT_HAS(run, "-> tensor<?x16xf32>");
  EXPECT_HAS(run, "graph.weight \"b\"");
  // Case Q04: K is no multiple of the block.
  EXPECT_HAS(ImportRun(model(40, 16, 32, 16 * 2 * 16, 32)), "K = 40");
  EXPECT_ERROR(ImportRun(model(64, 16, 32, 16 * 2 * 16 - 1, 32)), "B has 511 bytes");
  EXPECT_ERROR(ImportRun(model(64, 16, 32, 16 * 2 * 16, 31)), "scales has 31 elements");
  EXPECT_ERROR(ImportRun(model(64, 16, 24, 512, 32)), "block_size is 24");
  EXPECT_ERROR(ImportRun(model(64, 16, 32, 512, 32, 3)), "3 bits are not supported");
  EXPECT_ERROR(ImportRun(model(int64_t(1) << 40, 16, 32, 512, 32)), "below 2^31");
}

TEST(OnnxOperators, gathersRowsOfAQuantizedTable) {
  auto model = [&](std::vector<Message> attributes, std::vector<int64_t> dims = {8, 32}) {
    return oneNode(
        21, node("GatherBlockQuantized", {"t", "i", "s"}, {"y"}, attributes, "com.microsoft"),
        {in("i", {"b", "n"}, Int64)},
        {tensor("t", UInt8, dims, std::string(256, '\x88')),
         tensor("s", Float, {8, 2}, std::string(64, '\0'))});
  };
  ImportRun run(model({intAttr("block_size", 32), intAttr("bits", 4)}));
  EXPECT_HAS(run, "graph.dequantize_nbits");
  EXPECT_HAS(run, "-> tensor<?x?x64xf32>");
  EXPECT_ERROR(ImportRun(model({intAttr("block_size", 32), intAttr("bits", 3)})),
               "3 bits are not supported");
  EXPECT_ERROR(ImportRun(model({intAttr("block_size", 24)})), "block_size is 24");
  EXPECT_ERROR(ImportRun(model({intAttr("block_size", 32), intAttr("gather_axis", 1)})),
               "two different axes");
  EXPECT_ERROR(ImportRun(model({intAttr("block_size", 32)}, {8, 2, 16})),
               "packed data is supported as a matrix");
}

TEST(OnnxOperators, dequantizeByTensorAxisAndBlocks) {
  // Case O13.
  auto model = [&](std::vector<int64_t> scale, std::vector<Message> attributes,
                   int64_t opset = 21) {
    int64_t count = 1;
    for (int64_t dim : scale)
      count *= dim;
    return oneNode(opset, node("DequantizeLinear", {"x", "s"}, {"y"}, attributes),
                   {in("x", {"4", "8"}, Int8)},
                   {tensor("s", Float, scale, std::string(static_cast<size_t>(count) * 4, '\0'))});
  };
  EXPECT_HAS(ImportRun(model({}, {})), "-> tensor<4x8xf32>");
  EXPECT_HAS(ImportRun(model({4}, {intAttr("axis", 0)})), "axis = 0");
  EXPECT_HAS(ImportRun(model({4, 4}, {intAttr("axis", 1), intAttr("block_size", 2)})),
             "block_size = 2");
  EXPECT_ERROR(ImportRun(model({4, 3}, {intAttr("axis", 1), intAttr("block_size", 2)})),
               "x_scale has 3 blocks along dimension 1, not 4");
  EXPECT_ERROR(ImportRun(model({4}, {intAttr("axis", 1)})),
               "neither a scalar nor of the size of axis 1");
  EXPECT_ERROR(ImportRun(model({}, {intAttr("block_size", 2)}, 19)),
               "attribute 'block_size' is not known");
  EXPECT_ERROR(ImportRun(model({4}, {intAttr("axis", -9)})), "axis -9 is out of range");
}

TEST(OnnxOperators, quantizeRoundsInSinglePrecision) {
  // Case O14: halves are divided in f32, rounded half to even, then saturated.
  ImportRun run(oneNode(19, node("QuantizeLinear", {"x", "s", "z"}, {"y"}), {in("x", {"9"}, Half)},
                        {tensor("s", Half, {}, rawBytes<uint16_t>({0x3800})),
                         tensor("z", Int8, {}, std::string(1, '\0'))},
                        Int8));
  EXPECT_HAS(run, "graph.cast %arg0 : (tensor<9xf16>) -> tensor<9xf32>");
  EXPECT_HAS(run, "graph.unary round");
  EXPECT_HAS(run, "dense<-1.280000e+02>");
  EXPECT_HAS(run, "dense<1.270000e+02>");
}

TEST(OnnxOperators, shapesThatCantGoTogether_invalid) {
  EXPECT_ERROR(ImportRun(oneNode(13, node("MatMul", {"a", "b"}, {"y"}),
                                 {in("a", {"2", "3"}), in("b", {"4", "5"})})),
               "shapes [2, 3] and [4, 5] have no matrix product");
  EXPECT_ERROR(ImportRun(oneNode(13, node("Concat", {"a", "b"}, {"y"}, {intAttr("axis", 0)}),
                                 {in("a", {"2", "3"}), in("b", {"4", "5"})})),
               "differ beside axis 0");
  EXPECT_ERROR(ImportRun(oneNode(13, node("Concat", {"a", "b"}, {"y"}, {intAttr("axis", 7)}),
                                 {in("a", {"2", "3"}), in("b", {"4", "3"})})),
               "axis 7 is out of range for rank 2");
  EXPECT_ERROR(ImportRun(oneNode(13, node("Transpose", {"a"}, {"y"}, {intsAttr("perm", {0, 0})}),
                                 {in("a", {"2", "3"})})),
               "axis 0 comes twice");
  EXPECT_ERROR(ImportRun(oneNode(13, node("Softmax", {"a"}, {"y"}, {intAttr("axis", INT64_MIN)}),
                                 {in("a", {"2", "3"})})),
               "out of range for rank 2");
  EXPECT_ERROR(ImportRun(oneNode(13, node("Expand", {"a", "s"}, {"y"}), {in("a", {"2", "3"})},
                                 {i64s("s", {4, 3})})),
               "don't broadcast");
  EXPECT_ERROR(ImportRun(oneNode(13, node("ConstantOfShape", {"s"}, {"y"}), {},
                                 {i64s("s", {int64_t(1) << 40, int64_t(1) << 40})})),
               "2^60");
}

} // namespace
