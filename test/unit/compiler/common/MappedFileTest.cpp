#include "compiler/import/common/MappedFile.h"

#include "test/unit/compiler/common/TempFolder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

using namespace llmc;
using llmc::test::TempFolder;

TEST(MappedFile, readsTheBytes) {
  TempFolder folder;
  auto file = MappedFile::open(folder.write("a", "hello"));
  ASSERT_TRUE(file.isOk()) << file.status().message();
  EXPECT_EQ(file->size(), 5u);
  auto part = file->extent(1, 4, "tail");
  ASSERT_TRUE(part.isOk());
  EXPECT_EQ(std::string(part->begin(), part->end()), "ello");
  EXPECT_TRUE(file->extent(5, 0, "empty tail").isOk());
}

TEST(MappedFile, takesAnEmptyFile) {
  TempFolder folder;
  auto file = MappedFile::open(folder.write("a", ""));
  ASSERT_TRUE(file.isOk());
  EXPECT_EQ(file->size(), 0u);
}

TEST(MappedFile, refusesExtentsBeyondTheEnd) { // case M21, and offsets that wrap
  TempFolder folder;
  auto file = MappedFile::open(folder.write("a", "hello"));
  ASSERT_TRUE(file.isOk());
  for (auto [offset, size] : {std::pair<uint64_t, uint64_t>{0, 6},
                              {6, 0},
                              {5, 1},
                              {2, UINT64_MAX},
                              {UINT64_MAX, 1},
                              {UINT64_MAX - 3, 8}}) {
    auto part = file->extent(offset, size, "tensor 'w'");
    ASSERT_FALSE(part.isOk()) << offset << " " << size;
    EXPECT_NE(part.status().message().find("tensor 'w'"), std::string::npos);
    EXPECT_NE(part.status().message().find("5 bytes"), std::string::npos);
  }
}

TEST(MappedFile, refusesWhatIsNoRegularFile) {
  TempFolder folder;
  ASSERT_EQ(::mkfifo(folder.file("fifo").c_str(), 0600), 0);
  for (const std::string &path : {folder.path(), folder.file("fifo"), std::string("/dev/zero")}) {
    auto file = MappedFile::open(path);
    ASSERT_FALSE(file.isOk()) << path;
    EXPECT_NE(file.status().message().find("not a regular file"), std::string::npos);
  }
  EXPECT_FALSE(MappedFile::open(folder.file("missing")).isOk());
}

TEST(MappedFile, noticesThatTheFileShrank) {
  TempFolder folder;
  const std::string path = folder.write("a", std::string(10000, 'x'));
  auto file = MappedFile::open(path);
  ASSERT_TRUE(file.isOk());
  EXPECT_TRUE(file->checkStillWhole().isOk());
  std::filesystem::resize_file(path, 9999);
  EXPECT_FALSE(file->checkStillWhole().isOk());
}
