/* Writes text with a compiled model, in C.  Usage: generate PLAN "Once upon a time" [TOKENS] */
#include <llmrt/llmrt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *what) {
  fprintf(stderr, "%s: %s\n", what, llmrt_last_error());
  return 1;
}

static int print(void *user, const char *text, size_t length) {
  fwrite(text, 1, length, stdout);
  fflush(stdout);
  return 0; /* anything else ends the request */
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: %s PLAN PROMPT [TOKENS]\n", argv[0]);
    return 2;
  }
  llmrt_plan *plan = NULL;
  llmrt_engine *engine = NULL;
  int32_t *ids = NULL;
  size_t count = 0;
  int status = 1;

  if (llmrt_plan_open(argv[1], NULL, &plan) != LLMRT_OK) {
    fail("open");
    goto done;
  }
  /* Once for the size, once for the ids. */
  if (llmrt_tokenize(plan, argv[2], strlen(argv[2]), LLMRT_TOKENIZE_ADD_SPECIAL, NULL, 0, &count)) {
    fail("tokenize");
    goto done;
  }
  ids = malloc((count ? count : 1) * sizeof *ids);
  if (!ids || llmrt_tokenize(plan, argv[2], strlen(argv[2]), LLMRT_TOKENIZE_ADD_SPECIAL, ids, count,
                             &count)) {
    fail("tokenize");
    goto done;
  }
  if (llmrt_engine_create(plan, NULL, &engine) != LLMRT_OK) {
    fail("engine");
    goto done;
  }

  llmrt_generate_options options;
  llmrt_generate_options_init(plan, &options, sizeof options);
  options.max_new_tokens = argc > 3 ? atoi(argv[3]) : 64;
  options.on_text = print;
  llmrt_result result = {.size = sizeof result};
  if (llmrt_generate(engine, ids, count, &options, &result) != LLMRT_OK) {
    fail("generate");
    goto done;
  }
  printf("\n");
  if (result.output_tokens > 1)
    fprintf(stderr, "%.1f tokens/s\n", (double)(result.output_tokens - 1) / result.decode_seconds);
  status = 0;

done:
  free(ids);
  llmrt_engine_destroy(engine);
  llmrt_plan_close(plan);
  return status;
}
