#include "compiler/import/common/ConfinedPath.h"

#include "test/unit/compiler/common/TempFolder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

using namespace llmc;
using llmc::test::TempFolder;
namespace fs = std::filesystem;

namespace {

class ConfinedPath : public ::testing::Test {
protected:
  ConfinedPath() {
    folder.write("secret", "top secret");
    folder.write("model/weights.bin", "weights");
    folder.write("model/sub/deep/part", "part");
  }
  std::string base() const { return folder.file("model"); }
  std::string read(const std::string &name) const {
    auto file = openConfined(base(), name, "model.onnx");
    return file.isOk() ? std::string(file->bytes().begin(), file->bytes().end())
                       : "error: " + file.status().message();
  }
  bool refused(const std::string &name) const { return read(name).starts_with("error: "); }
  TempFolder folder;
};

TEST_F(ConfinedPath, opensFilesBelowTheFolder) {
  EXPECT_EQ(read("weights.bin"), "weights");
  EXPECT_EQ(read("./weights.bin"), "weights");
  EXPECT_EQ(read("./sub//deep/./part"), "part");
}

TEST_F(ConfinedPath, refusesNamesByTheirText) { // cases M13, M15
  for (const std::string &name :
       {std::string("../secret"), std::string("sub/../../secret"), std::string("a/../weights.bin"),
        folder.file("secret"), std::string("/etc/hostname"), std::string(""), std::string("."),
        std::string("./"), std::string(".."), std::string("sub/"), std::string("C:\\x"),
        std::string("c:x"), std::string("http://host/x"), std::string("x\0y", 3),
        std::string("..\\secret"), std::string("x\ny"), std::string(5000, 'a')}) {
    EXPECT_FALSE(checkRelativePath(name, "model.onnx").isOk()) << name;
    EXPECT_TRUE(refused(name)) << name;
  }
}

TEST_F(ConfinedPath, refusesLinksOut) {
  fs::create_symlink("../secret", folder.file("model/link"));
  fs::create_symlink(folder.file("secret"), folder.file("model/absolute"));
  fs::create_symlink("..", folder.file("model/up"));
  fs::create_symlink("sub/../../secret", folder.file("model/around"));
  fs::create_symlink("loop", folder.file("model/loop"));
  for (const char *name : {"link", "absolute", "up/secret", "around", "loop", "up"})
    EXPECT_TRUE(refused(name)) << name;
  EXPECT_NE(read("link").find("leads out"), std::string::npos) << read("link");
}

TEST_F(ConfinedPath, followsLinksThatStayInside) {
  fs::create_symlink("sub/deep", folder.file("model/short"));
  fs::create_symlink("../weights.bin", folder.file("model/sub/again"));
  EXPECT_EQ(read("short/part"), "part");
  EXPECT_EQ(read("sub/again"), "weights");
}

TEST_F(ConfinedPath, refusesWhatIsNoRegularFile) {
  ASSERT_EQ(::mkfifo(folder.file("model/fifo").c_str(), 0600), 0);
  for (const char *name : {"fifo", "sub", "sub/deep", "missing", "weights.bin/x"})
    EXPECT_TRUE(refused(name)) << name;
}

TEST_F(ConfinedPath, followsTheBlobsOfAHubCache) {
  folder.write("models--a--b/blobs/0123", "blob");
  fs::create_directories(folder.file("models--a--b/snapshots/rev"));
  const std::string snapshot = folder.file("models--a--b/snapshots/rev");
  fs::create_symlink("../../blobs/0123", snapshot + "/model.safetensors");
  fs::create_symlink("../../../secret", snapshot + "/secret");
  auto file = openConfined(snapshot, "model.safetensors", "index");
  ASSERT_TRUE(file.isOk()) << file.status().message();
  EXPECT_EQ(file->size(), 4u);
  EXPECT_FALSE(openConfined(snapshot, "secret", "index").isOk());
}

} // namespace
