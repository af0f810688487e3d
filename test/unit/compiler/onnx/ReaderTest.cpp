// The wire format, the views of a model, and the elements of tensors.
#include "OnnxBuilder.h"
#include "TempFolder.h"
#include "compiler/import/onnx/Model.h"
#include "compiler/import/onnx/Tensor.h"
#include "gtest/gtest.h"
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

using namespace llmc::onnx;
using namespace onnxtest;

namespace {

llvm::ArrayRef<uint8_t> asBytes(const std::string &text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

Span asSpan(const std::string &text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size(), 0};
}

std::string walk(const std::string &text) {
  std::string seen;
  llvm::Error error = forEachField(asSpan(text), [&](const Field &f) -> llvm::Error {
    seen += std::to_string(f.number) + ":" +
            (f.type == WireType::Bytes ? f.span.str().str() : std::to_string(f.value)) + ";";
    return llvm::Error::success();
  });
  return error ? "error: " + llvm::toString(std::move(error)) : seen;
}

TEST(OnnxWire, readsEveryWireTypeAndSkipsNothing) {
  Message message;
  message.varint(1, 300).bytes(2, "abc").varint(536870911, 1);
  message.fixed32(3, 1.0f);
  EXPECT_EQ(walk(message.data), "1:300;2:abc;536870911:1;3:1065353216;");
  EXPECT_EQ(walk(std::string("\x09\x01\0\0\0\0\0\0\0", 9)), "1:1;");
  EXPECT_EQ(walk(""), "");
}

TEST(OnnxWire, varintsOf64BitsAndNoMore) {
  EXPECT_EQ(walk("\x08" + std::string(9, '\xff') + "\x01"), "1:18446744073709551615;");
  EXPECT_NE(walk("\x08" + std::string(9, '\xff') + "\x02").find("varint"), std::string::npos);
  EXPECT_NE(walk("\x08" + std::string(10, '\xff') + "\x01").find("varint"), std::string::npos);
}

TEST(OnnxWire, refusesDamage_invalid) {
  EXPECT_NE(walk("\x08").find("byte 1"), std::string::npos);
  EXPECT_NE(walk("\x12\x05"
                 "abc")
                .find("length of 5 bytes but only 3"),
            std::string::npos);
  EXPECT_NE(walk(std::string("\x12") + std::string(9, '\xff') + "\x01").find("error"),
            std::string::npos);
  EXPECT_NE(walk(std::string("\0\0", 2)).find("field number 0"), std::string::npos);
  EXPECT_NE(walk("\x0b").find("wire type 3"), std::string::npos);
  EXPECT_NE(walk("\x0d\x01\x02").find("32-bit"), std::string::npos);
  EXPECT_NE(walk("\x09\x01\x02").find("64-bit"), std::string::npos);
}

TEST(OnnxModel, viewsOfAModel) {
  Model model;
  model.inputs = {value("x", Float, {"batch", "3"})};
  model.outputs = {anyShape("y", Float)};
  model.nodes = {node("Add", {"x", ""}, {"y"},
                      {intAttr("axis", -1), intsAttr("list", {1, -2}), floatAttr("f", 0.5f),
                       stringAttr("s", "text"), tensorAttr("t", f32s("w", {1, 2}))},
                      "ai.onnx", "first")};
  std::string file = model.file();
  auto view = parseModel(asBytes(file));
  ASSERT_TRUE(static_cast<bool>(view)) << llvm::toString(view.takeError());
  EXPECT_EQ(view->irVersion, 8);
  ASSERT_EQ(view->opsets.size(), 2u);
  EXPECT_EQ(view->opsets[0].version, 18);
  ASSERT_EQ(view->graph.inputs.size(), 1u);
  ASSERT_TRUE(view->graph.inputs[0].shape.has_value());
  EXPECT_EQ((*view->graph.inputs[0].shape)[0].param, "batch");
  EXPECT_EQ(*(*view->graph.inputs[0].shape)[1].value, 3);
  EXPECT_FALSE(view->graph.outputs[0].shape.has_value());
  const NodeView &first = view->graph.nodes.at(0);
  EXPECT_EQ(first.name, "first");
  EXPECT_EQ(first.domain, ""); // "ai.onnx" is the default domain
  EXPECT_EQ(first.inputs.size(), 2u);
  ASSERT_EQ(first.attributes.size(), 5u);
  EXPECT_EQ(first.attributes[0].i, -1);
  EXPECT_EQ(llvm::cantFail(first.attributes[1].ints()), (llvm::SmallVector<int64_t>{1, -2}));
  EXPECT_EQ(first.attributes[2].f, 0.5f);
  EXPECT_EQ(first.attributes[3].s, "text");
  TensorView tensor = llvm::cantFail(first.attributes[4].tensor());
  EXPECT_EQ(tensor.dims, (llvm::SmallVector<int64_t, 4>{2}));
  ASSERT_TRUE(tensor.raw.has_value());
  // raw_data is a place in the file.
  float second;
  std::memcpy(&second, file.data() + tensor.raw->offset + 4, 4);
  EXPECT_EQ(second, 2.0f);
  auto notInts = first.attributes[0].ints();
  EXPECT_EQ(llvm::toString(notInts.takeError()), "attribute 'axis' is not a list of integers");
}

TEST(OnnxModel, unpackedListsAndUnknownFields) {
  Message tensor;
  tensor.varint(1, 2).varint(1, 3).varint(2, Float).bytes(99, "from the future").varint(100, 7);
  Model model;
  model.initializers = {tensor};
  auto file = model.file();
  auto view = parseModel(asBytes(file));
  ASSERT_TRUE(static_cast<bool>(view));
  EXPECT_EQ(view->graph.initializers[0].dims, (llvm::SmallVector<int64_t, 4>{2, 3}));
}

std::string modelError(const std::string &file) {
  auto view = parseModel(asBytes(file));
  return view ? "no error" : llvm::toString(view.takeError());
}

TEST(OnnxModel, whatIsNoModel_invalid) {
  EXPECT_EQ(modelError(""), "the file is empty");
  EXPECT_NE(modelError("version https://git-lfs.github.com/spec/v1\noid").find("Git LFS pointer"),
            std::string::npos);
  EXPECT_EQ(modelError(Message().varint(1, 8).data), "not an ONNX model: it has no graph");
  Model model;
  model.irVersion = 0;
  EXPECT_EQ(modelError(model.file()), "not an ONNX model: its ir_version is 0");
  Model two;
  EXPECT_EQ(modelError(two.file() + Message().message(7, two.graph()).data),
            "the model has two graphs");
}

TEST(OnnxModel, hugeRankIsRefused_invalid) {
  Model model;
  model.initializers = {tensorHead("w", Float, std::vector<int64_t>(17, 1))};
  EXPECT_NE(modelError(model.file()).find("more than 16 dimensions"), std::string::npos);
}

/// The tensor that \p message describes, its bytes and where they are.
struct ReadResult {
  std::string bytes, error;
  bool inFile = false;
};
ReadResult readTensor(const Message &message, const std::string &folder = "") {
  Model model;
  model.initializers = {message};
  std::string file = model.file();
  ReadResult result;
  auto view = parseModel(asBytes(file));
  if (!view) {
    result.error = llvm::toString(view.takeError());
    return result;
  }
  TensorReader reader(folder + "/model.onnx", asBytes(file));
  auto data = reader.read(view->graph.initializers[0]);
  if (!data) {
    result.error = llvm::toString(data.takeError());
    return result;
  }
  result.bytes.assign(data->bytes.begin(), data->bytes.end());
  result.inFile = data->file.has_value();
  if (data->file == 0u)
    EXPECT_EQ(result.bytes, file.substr(data->offset, result.bytes.size()));
  return result;
}

TEST(OnnxTensor, rawDataIsAPlaceInTheFile) {
  ReadResult result = readTensor(tensor("w", Float, {2}, rawBytes({1.0f, 2.0f})));
  EXPECT_EQ(result.bytes, rawBytes({1.0f, 2.0f}));
  EXPECT_TRUE(result.inFile);
}

TEST(OnnxTensor, packedFloatsAreAPlaceInTheFileToo) {
  ReadResult result = readTensor(tensorHead("w", Float, {2}).bytes(4, rawBytes({1.0f, 2.0f})));
  EXPECT_EQ(result.bytes, rawBytes({1.0f, 2.0f}));
  EXPECT_TRUE(result.inFile);
  result = readTensor(tensorHead("w", Float, {2}).fixed32(4, 1).fixed32(4, 2));
  EXPECT_EQ(result.bytes, rawBytes({1.0f, 2.0f}));
  EXPECT_FALSE(result.inFile);
  EXPECT_EQ(readTensor(tensorHead("w", Double, {1}).bytes(10, rawBytes({2.5}))).bytes,
            rawBytes({2.5}));
}

TEST(OnnxTensor, typedIntegersOfEveryWidth) {
  EXPECT_EQ(readTensor(tensorHead("w", Int64, {3}).packed(7, {1, -1, INT64_MIN})).bytes,
            rawBytes<int64_t>({1, -1, INT64_MIN}));
  EXPECT_EQ(readTensor(tensorHead("w", Int32, {2}).packed(5, {-5, 7})).bytes,
            rawBytes<int32_t>({-5, 7}));
  EXPECT_EQ(readTensor(tensorHead("w", Int8, {2}).packed(5, {-5, 7})).bytes,
            rawBytes<int8_t>({-5, 7}));
  EXPECT_EQ(readTensor(tensorHead("w", Bool, {2}).packed(5, {1, 0})).bytes, std::string("\1\0", 2));
  EXPECT_EQ(readTensor(tensorHead("w", Half, {2}).packed(5, {0x3c00, 0xc000})).bytes,
            rawBytes<uint16_t>({0x3c00, 0xc000}));
  EXPECT_EQ(readTensor(tensorHead("w", BFloat16, {1}).packed(5, {0x3f80})).bytes,
            rawBytes<uint16_t>({0x3f80}));
}

TEST(OnnxTensor, oddCountOf4BitElements) {
  // Case O25: three INT4 elements in two bytes, either way.
  EXPECT_EQ(readTensor(tensor("w", Int4, {3}, "\x3c\x08")).bytes, "\x3c\x08");
  EXPECT_EQ(readTensor(tensorHead("w", Int4, {3}).packed(5, {0x3c, 0x08})).bytes, "\x3c\x08");
  EXPECT_NE(
      readTensor(tensor("w", Int4, {3}, "\x3c")).error.find("has 1 bytes of raw_data but needs 2"),
      std::string::npos);
}

TEST(OnnxTensor, sizesThatDontFit_invalid) {
  EXPECT_EQ(readTensor(tensor("w", Float, {2}, "1234")).error,
            "tensor 'w' (float[2]) has 4 bytes of raw_data but needs 8");
  EXPECT_NE(readTensor(tensor("w", Float, {1}, "12345678")).error.find("needs 4"),
            std::string::npos);
  EXPECT_NE(
      readTensor(tensorHead("w", Float, {4})).error.find("has 0 bytes of typed data but needs 16"),
      std::string::npos);
  EXPECT_NE(readTensor(tensor("w", Float, {-1}, "")).error.find("negative dimension -1"),
            std::string::npos);
  EXPECT_NE(readTensor(tensor("w", Float, {int64_t(1) << 62, 4}, "")).error.find("2^63"),
            std::string::npos);
  EXPECT_NE(
      readTensor(tensor("w", Double, {int64_t(1) << 60}, "")).error.find("larger than any file"),
      std::string::npos);
  EXPECT_NE(readTensor(tensor("w", 99, {1}, "1")).error.find("unknown data type"),
            std::string::npos);
  EXPECT_NE(readTensor(tensor("w", String, {1}, "1")).error.find("strings"), std::string::npos);
}

TEST(OnnxTensor, emptyTensors) {
  EXPECT_EQ(readTensor(tensor("w", Float, {0, 4}, "")).error, "");
  EXPECT_EQ(readTensor(tensorHead("w", Float, {0})).error, "");
}

class OnnxExternalData : public testing::Test {
protected:
  void SetUp() override { folder.write("w.bin", "head" + rawBytes({1.0f, 2.0f}) + "tail"); }
  ReadResult read(const std::string &location, const std::string &offset = "4",
                  const std::string &length = "8") {
    return readTensor(external("w", Float, {2}, location, offset, length), folder.path());
  }
  TempFolder folder;
};

TEST_F(OnnxExternalData, isMappedFromItsFile) {
  EXPECT_EQ(read("w.bin").bytes, rawBytes({1.0f, 2.0f}));
  EXPECT_EQ(read("./w.bin").bytes, rawBytes({1.0f, 2.0f}));
  EXPECT_EQ(read("w.bin", "4", "").bytes, rawBytes({1.0f, 2.0f}));
  std::filesystem::create_directory(folder.path() + "/sub");
  folder.write("sub/v.bin", rawBytes({3.0f, 4.0f}));
  EXPECT_EQ(read("sub/v.bin", "", "").bytes, rawBytes({3.0f, 4.0f}));
}

TEST_F(OnnxExternalData, offsetsBeyond4GiB) {
  // Case O12: a sparse file.
  std::string path = folder.path() + "/big.bin";
  int fd = ::open(path.c_str(), O_CREAT | O_WRONLY, 0600);
  ASSERT_GE(fd, 0);
  float values[] = {1, 2, 3, 4};
  ASSERT_EQ(::pwrite(fd, values, sizeof(values), 4294967360), 16);
  ::close(fd);
  EXPECT_EQ(
      readTensor(external("w", Float, {4}, "big.bin", "4294967360", "16"), folder.path()).bytes,
      rawBytes({1.0f, 2.0f, 3.0f, 4.0f}));
}

TEST_F(OnnxExternalData, rangesOutsideTheFile_invalid) {
  // Case M21: cut short by one byte, and worse.
  EXPECT_NE(read("w.bin", "9", "8").error.find("needs 8 bytes at offset 9, but the file has 16"),
            std::string::npos);
  EXPECT_NE(read("w.bin", "18446744073709551615", "8").error.find("but the file has 16"),
            std::string::npos);
  EXPECT_NE(read("w.bin", "-4", "8").error.find("offset of its external data is '-4'"),
            std::string::npos);
  EXPECT_NE(read("w.bin", "18446744073709551616", "8").error.find("not a number"),
            std::string::npos);
  EXPECT_NE(read("w.bin", "4", "4").error.find("has 4 bytes of external data but needs 8"),
            std::string::npos);
  EXPECT_NE(read("w.bin", "4", "1x").error.find("not a number"), std::string::npos);
}

TEST_F(OnnxExternalData, namesAMissingFile_invalid) {
  ReadResult result = read("gone.bin");
  EXPECT_NE(result.error.find("gone.bin"), std::string::npos);
  EXPECT_NE(result.error.find("No such file"), std::string::npos);
  folder.write("lfs.bin", "version https://git-lfs.github.com/spec/v1\n");
  EXPECT_NE(read("lfs.bin").error.find("Git LFS pointer"), std::string::npos);
}

TEST_F(OnnxExternalData, staysInTheFolder_invalid) {
  // Case M15.
  std::string inner = folder.path() + "/inner";
  std::filesystem::create_directory(inner);
  ASSERT_EQ(::symlink("../w.bin", (inner + "/link.bin").c_str()), 0);
  ASSERT_EQ(::symlink("..", (inner + "/up").c_str()), 0);
  ASSERT_EQ(::mkfifo((inner + "/fifo").c_str(), 0600), 0);
  for (const char *location :
       {"../w.bin", "sub/../../w.bin", "/etc/hostname", "link.bin", "up/w.bin", "fifo", ".", "",
        "..\\w.bin", "w.bin\n", "/dev/zero", "up"}) {
    ReadResult result = readTensor(external("w", Float, {2}, location, "4", "8"), inner);
    EXPECT_NE(result.error, "") << location;
    EXPECT_EQ(result.bytes, "") << location;
  }
  EXPECT_NE(readTensor(external("w", Float, {2}, std::string("w\0.bin", 6), "4", "8"), inner).error,
            "");
  EXPECT_NE(
      readTensor(tensorHead("w", Float, {2}).varint(14, 1), inner).error.find("without a location"),
      std::string::npos);
}

} // namespace
