/*===- llmrt.h - run a compiled language model: the C API -------------------===*\
|*
|* A plan is a file made by `llmc compile`. An engine runs requests on one.
|*
|*   llmrt_plan *plan; llmrt_engine *engine;
|*   llmrt_plan_open("model.plan", NULL, &plan);
|*   llmrt_engine_create(plan, NULL, &engine);
|*   llmrt_generate_options options;
|*   llmrt_generate_options_init(plan, &options, sizeof options);
|*   options.on_text = print;                      // called as text comes
|*   llmrt_generate(engine, ids, count, &options, NULL);
|*
|* Every function that can fail returns a status; llmrt_last_error() then says what was wrong and
|* what would be right, for the calling thread. Nothing throws. Strings are UTF-8; those given to
|* callbacks live during the call. Structures begin with `size`, the caller's sizeof, so that they
|* can grow: unknown fields of a newer caller must be zero, missing ones of an older are defaults.
|*
|* Plans may be used from any number of threads. An engine belongs to one thread at a time, except
|* for llmrt_cancel and llmrt_engine_get_metrics; its functions must not be called from its own
|* callbacks (with the same exceptions). After llmrt_engine_start it has a thread of its own, and
|* all of its functions but llmrt_step and llmrt_engine_destroy may be called from any thread at any
|* time; callbacks come on the engine's thread, and may submit and cancel.
|*
\*===------------------------------------------------------------------------===*/
#ifndef LLMRT_LLMRT_H
#define LLMRT_LLMRT_H

#include <stddef.h>
#include <stdint.h>

#define LLMRT_VERSION_MAJOR 0
#define LLMRT_VERSION_MINOR 1
#define LLMRT_VERSION_PATCH 0

#if defined(__GNUC__)
#define LLMRT_API __attribute__((visibility("default")))
#else
#define LLMRT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* --- versions and errors --------------------------------------------------------------------- */

typedef enum llmrt_status {
  LLMRT_OK = 0,
  LLMRT_INVALID_ARGUMENT = 1,   /* a value of the caller's: a parameter, a prompt */
  LLMRT_INVALID_FILE = 2,       /* malformed, truncated or damaged */
  LLMRT_UNSUPPORTED = 3,        /* well formed, but not for this build or machine */
  LLMRT_RESOURCE_EXHAUSTED = 4, /* memory, KV blocks, threads */
  LLMRT_IO_ERROR = 5,           /* the operating system refused */
  LLMRT_CANCELLED = 6,
  LLMRT_INTERNAL = 7,           /* a fault of the library */
  LLMRT_QUEUE_FULL = 8,         /* max_queued requests wait already: try again later */
  LLMRT_DEADLINE_EXCEEDED = 9,  /* the request's own timeout */
  LLMRT_UNAVAILABLE = 10        /* the engine drains and takes no more requests */
} llmrt_status;

/* The library's version: major << 16 | minor << 8 | patch. Compare it with the header's. */
LLMRT_API uint32_t llmrt_version(void);
/* "0.1.0" */
LLMRT_API const char *llmrt_version_string(void);
/* What the last failed call of this thread said; "" before any. Valid until its next failure. */
LLMRT_API const char *llmrt_last_error(void);
/* "invalid argument" */
LLMRT_API const char *llmrt_status_name(llmrt_status status);

/* --- plans ----------------------------------------------------------------------------------- */

typedef struct llmrt_plan llmrt_plan;

typedef struct llmrt_plan_options {
  size_t size;                  /* sizeof(llmrt_plan_options) */
  int allow_writable_by_others; /* a plan holds code; one that others may write is refused */
  int verify_weights;           /* read all weights and compare their checksums */
} llmrt_plan_options;

/* Maps and checks a plan file; weights are read when they are used. options may be NULL. */
LLMRT_API llmrt_status llmrt_plan_open(const char *path, const llmrt_plan_options *options,
                                       llmrt_plan **plan);
/* Engines made from it keep what they need. NULL is ignored, here and in llmrt_engine_destroy. */
LLMRT_API void llmrt_plan_close(llmrt_plan *plan);

typedef struct llmrt_plan_info {
  size_t size;              /* sizeof(llmrt_plan_info) */
  const char *name;         /* strings live as long as the plan */
  const char *architecture; /* "llama" */
  uint64_t parameters;
  int32_t layers;
  int32_t vocabulary;       /* rows of the logits */
  int32_t max_context;      /* tokens a sequence */
  uint64_t kv_bytes_per_token;
  int has_tokenizer;
  int has_chat_template;
} llmrt_plan_info;

LLMRT_API llmrt_status llmrt_plan_get_info(const llmrt_plan *plan, llmrt_plan_info *info);

/* --- text ------------------------------------------------------------------------------------ */
/* Functions that fill a buffer set the count that the whole result needs, whatever the capacity.
 * With a NULL buffer that is all they do; a buffer that is too small is LLMRT_INVALID_ARGUMENT. */

#define LLMRT_TOKENIZE_ADD_SPECIAL 1u   /* put the model's beginning token before the text */
#define LLMRT_TOKENIZE_PARSE_SPECIAL 2u /* control tokens written in the text become tokens: for
                                           text of templates, not for text of users */
LLMRT_API llmrt_status llmrt_tokenize(const llmrt_plan *plan, const char *text, size_t length,
                                      uint32_t flags, int32_t *ids, size_t capacity, size_t *count);

#define LLMRT_DETOKENIZE_KEEP_SPECIAL 1u /* show control tokens */
/* length counts without the terminating NUL, for which capacity must have room. */
LLMRT_API llmrt_status llmrt_detokenize(const llmrt_plan *plan, const int32_t *ids, size_t count,
                                        uint32_t flags, char *text, size_t capacity,
                                        size_t *length);

typedef struct llmrt_message {
  const char *role; /* "system", "user", "assistant" */
  const char *content;
} llmrt_message;

/* A conversation as token ids, written as the model's own template does: its control tokens become
 * tokens, those that are spelled in a message stay text. add_generation_prompt begins the
 * assistant's answer. */
LLMRT_API llmrt_status llmrt_encode_chat(const llmrt_plan *plan, const llmrt_message *messages,
                                         size_t count, int add_generation_prompt, int32_t *ids,
                                         size_t capacity, size_t *id_count);

/* The same as text, to be shown. Tokenizing it instead of llmrt_encode_chat would turn what users
 * write into control tokens. */
LLMRT_API llmrt_status llmrt_apply_chat_template(const llmrt_plan *plan,
                                                 const llmrt_message *messages, size_t count,
                                                 int add_generation_prompt, char *text,
                                                 size_t capacity, size_t *length);

/* --- engines --------------------------------------------------------------------------------- */

typedef struct llmrt_engine llmrt_engine;

typedef struct llmrt_engine_options {
  size_t size;                /* sizeof(llmrt_engine_options); 0 in the others is "choose" */
  uint32_t threads;           /* default: cores that affinity, cgroup and OMP_NUM_THREADS allow */
  uint32_t max_batched_tokens; /* new tokens a step, which is the prefill chunk; default 512 */
  uint32_t max_sequences;     /* requests that run at a time; default 1 */
  uint32_t block_tokens;      /* tokens a KV block, a multiple of 16; default the plan's */
  uint64_t kv_tokens;         /* tokens of the KV pool; default the context for each sequence, as
                                 far as half the available memory goes. Taken as it is used */
  const char *device;         /* "cpu", "cuda", "cuda:1"; default what the plan's code is for */
  /* appended: the size of an older caller leaves them at their defaults */
  uint32_t max_queued;        /* requests that may wait beside those that run; 0: no limit */
  int no_prefix_caching;      /* 1: don't keep the KV of texts that later requests may begin with */
  uint64_t swap_tokens;       /* room in host memory for the KV of requests that made way; 0: it is
                                 computed again */
  const char *speculative_config; /* JSON as vLLM's --speculative-config, e.g.
                                     {"method": "ngram", "num_speculative_tokens": 8}, or NULL */
} llmrt_engine_options;

LLMRT_API llmrt_status llmrt_engine_create(const llmrt_plan *plan,
                                           const llmrt_engine_options *options,
                                           llmrt_engine **engine);
/* Requests that still run end as cancelled, without a call of their callbacks; those of a started
 * engine hear of their end. No other call may be in progress. */
LLMRT_API void llmrt_engine_destroy(llmrt_engine *engine);

/* Gives the engine a thread of its own, see above. Once. */
LLMRT_API llmrt_status llmrt_engine_start(llmrt_engine *engine);
/* Takes no more requests (LLMRT_UNAVAILABLE), and returns when those that were taken have ended.
 * Of a started engine; not from a callback. */
LLMRT_API llmrt_status llmrt_engine_drain(llmrt_engine *engine);

/* What an engine does and has done. */
typedef struct llmrt_metrics {
  size_t size;             /* sizeof(llmrt_metrics), set by the caller */
  int64_t running, waiting; /* answers now */
  double kv_usage;         /* share of the KV pool that requests hold */
  double kv_occupancy;     /* share of what they hold that has tokens in it */
  int64_t prefix_queries, prefix_hits; /* prompt tokens looked up in the prefix cache, found */
  int64_t prompt_tokens, generation_tokens;
  int64_t preemptions, swaps;
  int64_t queue_refusals;
  int64_t drafts, draft_tokens, accepted_tokens; /* of speculation */
  int64_t finished_stop, finished_length, finished_cancelled, finished_error; /* answers */
  int64_t steps;
  double step_seconds;
  int64_t slow_fallbacks; /* what could not go the fast way: /metrics of the server tells the kinds */
} llmrt_metrics;
LLMRT_API llmrt_status llmrt_engine_get_metrics(const llmrt_engine *engine, llmrt_metrics *metrics);

/* --- requests -------------------------------------------------------------------------------- */

typedef struct llmrt_token_logprob {
  int32_t id;
  float logprob;
} llmrt_token_logprob;

typedef struct llmrt_token {
  uint64_t request;
  int64_t index;   /* in the output, from 0 */
  int32_t id;
  float logprob;   /* of the model's own distribution; 0 unless logprobs were asked for */
  const llmrt_token_logprob *top; /* the likeliest, if asked for */
  size_t top_count;
  int32_t choice;  /* which of the request's answers, from 0 */
} llmrt_token;

typedef enum llmrt_finish_reason {
  LLMRT_FINISH_NONE = 0,
  LLMRT_FINISH_STOP = 1,   /* an end token, a stop id or a stop string */
  LLMRT_FINISH_LENGTH = 2, /* max_new_tokens, or the context is full */
  LLMRT_FINISH_CANCELLED = 3,
  LLMRT_FINISH_ERROR = 4
} llmrt_finish_reason;

typedef struct llmrt_result {
  size_t size; /* sizeof(llmrt_result); set by the caller of llmrt_generate */
  uint64_t request;
  llmrt_finish_reason reason;
  llmrt_status status;         /* LLMRT_OK unless reason is LLMRT_FINISH_ERROR */
  const char *stop_string;     /* the one that ended it, or NULL; valid in on_finish, and after
                                  llmrt_generate until the engine is used again */
  int64_t prompt_tokens;
  int64_t output_tokens;       /* with the end token, if one was drawn */
  double prefill_seconds;      /* to the first token */
  double decode_seconds;       /* from the first token to the last */
  /* appended: the size of an older caller leaves them at their defaults */
  int32_t choice;
  int last;                    /* no other answer of this request comes */
  int64_t cached_tokens;       /* of the prompt, found in the prefix cache */
  int64_t preemptions;         /* times it made way for others */
  int64_t draft_tokens, accepted_tokens; /* of speculation */
  double sum_logprob;          /* of the output, if logprobs were asked for */
  double queue_seconds;        /* before it ran */
} llmrt_result;

/* Called from within llmrt_generate or llmrt_step. A value other than 0 cancels the request. */
typedef int (*llmrt_token_callback)(void *user, const llmrt_token *token);
/* A piece of text, whole characters, not NUL-terminated; the last may come after the last token. */
typedef int (*llmrt_text_callback)(void *user, const char *text, size_t length);
typedef void (*llmrt_finish_callback)(void *user, const llmrt_result *result);
/* The same as llmrt_text_callback for requests with several answers. */
typedef int (*llmrt_choice_text_callback)(void *user, int32_t choice, const char *text,
                                          size_t length);

typedef struct llmrt_logit_bias {
  int32_t id;
  float bias; /* -100 .. 100 */
} llmrt_logit_bias;

typedef struct llmrt_generate_options {
  size_t size;            /* set by llmrt_generate_options_init */
  int64_t max_new_tokens; /* -1: until the context is full; 0: no new token */
  float temperature;      /* 0: the likeliest token always */
  int32_t top_k;          /* 0: off */
  float top_p;            /* 1: off */
  float min_p;            /* 0: off */
  float repetition_penalty; /* 1: off */
  float presence_penalty;   /* -2 .. 2 */
  float frequency_penalty;  /* -2 .. 2 */
  uint64_t seed;
  int32_t logprobs;       /* -1: none; n up to 20: the n likeliest tokens beside the chosen one */
  int ignore_eos;         /* end tokens are ordinary output */
  const int32_t *stop_ids;
  size_t stop_id_count;
  const char *const *stop_strings; /* none of them empty; need a tokenizer */
  size_t stop_string_count;
  llmrt_token_callback on_token;
  llmrt_text_callback on_text;     /* needs a tokenizer */
  llmrt_finish_callback on_finish;
  void *user;                      /* given to the callbacks */
  /* appended: the size of an older caller leaves them at their defaults */
  int32_t choices;         /* answers to the prompt, each with its own draws; 0 and 1: one */
  llmrt_choice_text_callback on_choice_text; /* as on_text, with the answer's number */
  int32_t priority;        /* smaller ones go first */
  double timeout_seconds;  /* 0: none; else it ends with LLMRT_DEADLINE_EXCEEDED */
  const char *cache_salt;  /* cached prefixes are shared among equal salts only; NULL: "" */
  int32_t min_tokens;      /* no end token and no stop id before so many */
  const char *json_schema; /* what the text must be: JSON that a schema accepts, ... */
  const char *regex;       /* ... a text that a regular expression matches, ... */
  const char *grammar;     /* ... or what a GBNF grammar says; at most one. Need a tokenizer */
  const llmrt_logit_bias *logit_bias;
  size_t logit_bias_count;
  float typical_p;         /* 1: off */
  float dry_multiplier;    /* 0: off */
  float dry_base;
  int32_t dry_allowed_length;
  float xtc_probability;   /* 0: off */
  float xtc_threshold;
  int32_t mirostat;        /* 0: off, 2 */
  float mirostat_tau, mirostat_eta;
} llmrt_generate_options;

/* Fills in the defaults: the plan's recommended sampling, or greedy with a NULL plan. */
LLMRT_API void llmrt_generate_options_init(const llmrt_plan *plan, llmrt_generate_options *options,
                                           size_t size);

/* Runs one request to its end. Requests submitted before go on meanwhile. result may be NULL. A
 * cancelled request gives LLMRT_CANCELLED, one that failed its status. */
LLMRT_API llmrt_status llmrt_generate(llmrt_engine *engine, const int32_t *prompt, size_t count,
                                      const llmrt_generate_options *options, llmrt_result *result);

/* Queues a request, to be run by llmrt_step; prompt and options are copied. */
LLMRT_API llmrt_status llmrt_submit(llmrt_engine *engine, const int32_t *prompt, size_t count,
                                    const llmrt_generate_options *options, uint64_t *request);
/* One step for all requests; busy is 0 when none is left. */
LLMRT_API llmrt_status llmrt_step(llmrt_engine *engine, int *busy);
/* Ends a request before its next token; LLMRT_ALL_REQUESTS ends all. Any thread, any time. */
#define LLMRT_ALL_REQUESTS 0u
LLMRT_API llmrt_status llmrt_cancel(llmrt_engine *engine, uint64_t request);

/* --- streams --------------------------------------------------------------------- */
/* A request whose events are fetched instead of called back; of a started engine. */

typedef struct llmrt_stream llmrt_stream;

typedef enum llmrt_event_kind {
  LLMRT_EVENT_NONE = 0,   /* nothing came in the time that was given */
  LLMRT_EVENT_TOKEN = 1,  /* token, and text if there is some to show */
  LLMRT_EVENT_FINISH = 2, /* result, and text that was held back; of each answer */
  LLMRT_EVENT_END = 3     /* all answers have ended */
} llmrt_event_kind;

typedef struct llmrt_event {
  size_t size; /* sizeof(llmrt_event), set by the caller */
  llmrt_event_kind kind;
  llmrt_token token;
  llmrt_result result;
  const char *text; /* UTF-8, not NUL-terminated. Pointers are valid until the next call */
  size_t text_length;
} llmrt_event;

/* Submits a request; its options have no callbacks. want_text asks for text, which needs a
 * tokenizer. */
LLMRT_API llmrt_status llmrt_stream_open(llmrt_engine *engine, const int32_t *prompt, size_t count,
                                         const llmrt_generate_options *options, int want_text,
                                         llmrt_stream **stream);
/* Waits up to timeout_ms for the next event; 0 doesn't wait, -1 waits as long as it takes. A stream
 * belongs to one thread at a time. */
LLMRT_API llmrt_status llmrt_stream_next(llmrt_stream *stream, int timeout_ms, llmrt_event *event);
/* Cancels what still runs. NULL is ignored. Before llmrt_engine_destroy. */
LLMRT_API void llmrt_stream_close(llmrt_stream *stream);

#ifdef __cplusplus
}
#endif

#endif /* LLMRT_LLMRT_H */
