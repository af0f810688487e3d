//===- TestPlan.h - the smallest plan that has everything --------------------===//
//
// Two layers, hidden size 8, two heads of 4 and one KV head, vocabulary 20: weights of three
// formats, shared arena slots, KV kernels, a tokenizer, a self-test, one code module.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEST_PLAN_TESTPLAN_H
#define LLMRT_TEST_PLAN_TESTPLAN_H

#include "runtime/plan/PlanImage.h"

#include <string>
#include <vector>

namespace llmrt::test {

struct TestPlan {
  fbs::PlanT head;
  std::vector<SegmentImage> segments;
};

/// The plan, valid as it stands.
TestPlan makeTestPlan();
/// The same with launches of every kernel on \p architectures as well.
TestPlan makeCudaTestPlan(const std::vector<std::string> &architectures);
/// The bytes of a valid plan file.
std::vector<uint8_t> testPlanImage();

std::vector<uint8_t> readFile(const std::string &path);
void writeFile(const std::string &path, const std::vector<uint8_t> &bytes, unsigned mode = 0644);

/// A folder that is removed, with what is in it, at the end of a test.
class TemporaryFolder {
public:
  TemporaryFolder();
  ~TemporaryFolder();
  std::string operator/(const std::string &name) const { return path_ + "/" + name; }
  const std::string &path() const { return path_; }
  /// Names of the files in it, sorted.
  std::vector<std::string> files() const;

private:
  std::string path_;
};

} // namespace llmrt::test

#endif // LLMRT_TEST_PLAN_TESTPLAN_H
