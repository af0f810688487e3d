// Talks with a compiled chat model, in C++.  Usage: chat PLAN [SYSTEM]
#include <llmrt/llmrt.hpp>

#include <iostream>
#include <string>
#include <vector>

int main(int argc, char **argv) {
  if (argc < 2) {
    std::cerr << "usage: " << argv[0] << " PLAN [SYSTEM]\n";
    return 2;
  }
  try {
    llmrt::Plan plan(argv[1]);
    llmrt::Engine engine(plan);
    std::vector<llmrt::Message> conversation;
    if (argc > 2)
      conversation.push_back({"system", argv[2]});

    for (std::string line; std::cout << "> " << std::flush, std::getline(std::cin, line);) {
      conversation.push_back({"user", line});
      std::vector<int32_t> prompt = plan.encodeChat(conversation);
      std::string answer;
      engine.generate(prompt, llmrt::Options(plan).maxNewTokens(512), [&](std::string_view text) {
        answer += text;
        std::cout << text << std::flush;
      });
      std::cout << "\n";
      conversation.push_back({"assistant", answer});
    }
    std::cout << "\n";
  } catch (const llmrt::Error &error) {
    std::cerr << llmrt_status_name(error.status()) << ": " << error.what() << "\n";
    return 1;
  }
  return 0;
}
