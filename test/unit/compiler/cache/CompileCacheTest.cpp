//===- CompileCacheTest.cpp - when a model is compiled again -------------------===//
#include "compiler/cache/CompileCache.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>

using namespace llmc;
namespace fs = std::filesystem;

namespace {

class CompileCacheTest : public testing::Test {
protected:
  CompileCacheTest() {
    folder = fs::temp_directory_path() / ("llmc-cache-test-" + std::to_string(getpid()));
    fs::create_directories(folder);
    write("model", "weights");
    options.model = (folder / "model").string();
    // A file that is older than the compilation, as a model's are.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ~CompileCacheTest() override { fs::remove_all(folder); }

  void write(const std::string &name, const std::string &text) {
    std::ofstream(folder / name) << text;
  }
  /// Asks for the plan with a compiler that copies the model and counts.
  std::string plan() {
    CompileCache cache((folder / "cache").string(), "test 1");
    auto result = cache.planFor(options, [this](const CompileOptions &o, CompileReport &report) {
      ++compilations;
      fs::copy_file(o.model, o.output);
      std::string text = read(o.model);
      report.files.push_back({o.model, text.size(), sha256Hex(text.data(), text.size())});
      if (meanwhile)
        meanwhile();
      return llmrt::Status::ok();
    });
    EXPECT_TRUE(result.isOk()) << result.status().message();
    return result ? read(*result) : "";
  }
  static std::string read(const fs::path &path) {
    std::ifstream stream(path);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  fs::path folder;
  CompileOptions options;
  int compilations = 0;
  std::function<void()> meanwhile;
};

TEST_F(CompileCacheTest, compilesOnce) {
  EXPECT_EQ(plan(), "weights");
  EXPECT_EQ(plan(), "weights");
  EXPECT_EQ(compilations, 1);
}

TEST_F(CompileCacheTest, touchedFileIsTheSame) {
  plan();
  fs::last_write_time(folder / "model", fs::file_time_type::clock::now());
  plan();
  EXPECT_EQ(compilations, 1);
}

TEST_F(CompileCacheTest, otherContentsOrOptionsAreAnotherPlan) {
  plan();
  write("model", "WEIGHTS"); // as many bytes
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(plan(), "WEIGHTS");
  options.quantization = "int4";
  plan();
  EXPECT_EQ(compilations, 3);
}

TEST_F(CompileCacheTest, newTextFileIsAChange) {
  plan();
  write("tokenizer.json", "{}");
  plan();
  EXPECT_EQ(compilations, 2);
}

TEST_F(CompileCacheTest, fileThatChangesWhileItIsCompiledIsNotRemembered) {
  meanwhile = [this] { write("model", "changed"); };
  EXPECT_EQ(plan(), "weights");
  meanwhile = nullptr;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(plan(), "changed");
  EXPECT_EQ(compilations, 2);
}

TEST_F(CompileCacheTest, damagedIndexIsIgnored) {
  plan();
  for (const auto &entry : fs::directory_iterator(folder / "cache/index"))
    std::ofstream(entry.path()) << "{\"plan\": 3, \"files\": [";
  EXPECT_EQ(plan(), "weights");
  EXPECT_EQ(compilations, 2);
}

} // namespace
