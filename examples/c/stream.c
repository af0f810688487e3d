/* Two requests at once on one engine, their events fetched, in C.  Usage: stream PLAN "One" "Two"
 */
#include <llmrt/llmrt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static llmrt_stream *ask(llmrt_engine *engine, const llmrt_plan *plan, const char *text) {
  int32_t ids[512];
  size_t count = 0;
  llmrt_stream *stream = NULL;
  llmrt_generate_options options;
  llmrt_generate_options_init(plan, &options, sizeof options);
  options.max_new_tokens = 32;
  options.timeout_seconds = 120;
  if (llmrt_tokenize(plan, text, strlen(text), LLMRT_TOKENIZE_ADD_SPECIAL, ids, 512, &count) ||
      llmrt_stream_open(engine, ids, count, &options, 1, &stream))
    fprintf(stderr, "%s: %s\n", text, llmrt_last_error());
  return stream;
}

int main(int argc, char **argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: %s PLAN PROMPT PROMPT\n", argv[0]);
    return 2;
  }
  llmrt_plan *plan = NULL;
  llmrt_engine *engine = NULL;
  llmrt_stream *streams[2] = {NULL, NULL};
  llmrt_engine_options settings = {
      .size = sizeof settings, .max_sequences = 2, .speculative_config = "{\"method\": \"ngram\"}"};
  int open = 0, failed = 0;
  if (llmrt_plan_open(argv[1], NULL, &plan) || llmrt_engine_create(plan, &settings, &engine) ||
      llmrt_engine_start(engine)) {
    fprintf(stderr, "%s\n", llmrt_last_error());
    failed = 1;
  }
  for (int i = 0; i < 2 && !failed; ++i) {
    streams[i] = ask(engine, plan, argv[2 + i]);
    open += streams[i] != NULL;
    failed |= streams[i] == NULL;
  }
  while (open > 0) /* whichever has something to say */
    for (int i = 0; i < 2; ++i) {
      llmrt_event event = {.size = sizeof event};
      if (!streams[i])
        continue;
      if (llmrt_stream_next(streams[i], 10, &event) || event.kind == LLMRT_EVENT_END) {
        llmrt_stream_close(streams[i]);
        streams[i] = NULL;
        --open;
      } else if (event.text_length) {
        printf("%d: %.*s\n", i + 1, (int)event.text_length, event.text);
      }
    }
  llmrt_metrics metrics = {.size = sizeof metrics};
  if (!failed && llmrt_engine_get_metrics(engine, &metrics) == LLMRT_OK)
    fprintf(stderr, "%lld tokens in %lld steps\n", (long long)metrics.generation_tokens,
            (long long)metrics.steps);
  llmrt_engine_destroy(engine);
  llmrt_plan_close(plan);
  return failed;
}
