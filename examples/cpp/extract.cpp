// An answer as JSON that a schema accepts, three times from one prompt.  Usage: extract PLAN "text"
#include <llmrt/llmrt.hpp>

#include <iostream>
#include <vector>

int main(int argc, char **argv) {
  if (argc != 3) {
    std::cerr << "usage: " << argv[0] << " PLAN TEXT\n";
    return 2;
  }
  try {
    llmrt::Plan plan(argv[1]);
    llmrt_engine_options settings = {};
    settings.size = sizeof(settings);
    settings.max_sequences = 3;
    llmrt::Engine engine(plan, &settings);
    engine.start();

    llmrt::Options options(plan);
    options.maxNewTokens(64).temperature(0.8f).seed(1).choices(3).jsonSchema(R"({
      "type": "object",
      "properties": {"name": {"type": "string", "maxLength": 20},
                     "age": {"type": "integer", "minimum": 0, "maximum": 150}},
      "required": ["name", "age"]})");
    llmrt::Stream stream = engine.stream(plan.tokenize(argv[2]), options);
    std::vector<std::string> answers(3);
    for (;;) {
      llmrt_event event = stream.next();
      if (event.kind == LLMRT_EVENT_END)
        break;
      bool isToken = event.kind == LLMRT_EVENT_TOKEN;
      answers[size_t(isToken ? event.token.choice : event.result.choice)].append(event.text,
                                                                                 event.text_length);
    }
    for (const std::string &answer : answers)
      std::cout << answer << "\n";
  } catch (const llmrt::Error &error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
