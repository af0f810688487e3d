// Makes the plan file of WrapperTest.cpp, which may not see internals.
#include "test/unit/engine/TinyPlan.h"

extern "C" const char *llmrtTestPlanPath() {
  static llmrt::test::TinyPlanFile file([] {
    llmrt::test::TinyPlanOptions options;
    options.tokenizer = true;
    options.stopIds = {96};
    options.next = {{0, 27}, {27, 28}, {28, 29}, {29, 30}, {30, 96}}; // " ONE TWO STOP THREE<end>"
    return options;
  }());
  return file.path().c_str();
}
