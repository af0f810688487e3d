#!/usr/bin/env python3
"""Greedy tokens and the bits of their log-probabilities must not depend on what else runs: batch_exact.py LIBLLMRT.so PLAN IDS

Runs one prompt alone, then 3 and 8 requests at once, mixed with prompts of other lengths that come and go, and with other
chunk and block sizes, through the C API. Standard library only. Exit 0: all equal."""
import ctypes as c, struct, sys


class Options(c.Structure):
    _fields_ = [("size", c.c_size_t), ("max_new_tokens", c.c_int64), ("temperature", c.c_float), ("top_k", c.c_int32), ("top_p", c.c_float),
                ("min_p", c.c_float), ("repetition_penalty", c.c_float), ("presence_penalty", c.c_float), ("frequency_penalty", c.c_float),
                ("seed", c.c_uint64), ("logprobs", c.c_int32), ("ignore_eos", c.c_int), ("stop_ids", c.c_void_p), ("stop_id_count", c.c_size_t),
                ("stop_strings", c.c_void_p), ("stop_string_count", c.c_size_t), ("on_token", c.c_void_p), ("on_text", c.c_void_p),
                ("on_finish", c.c_void_p), ("user", c.c_void_p)]


class Logprob(c.Structure):
    _fields_ = [("id", c.c_int32), ("logprob", c.c_float)]


class Token(c.Structure):
    _fields_ = [("request", c.c_uint64), ("index", c.c_int64), ("id", c.c_int32), ("logprob", c.c_float), ("top", c.POINTER(Logprob)), ("top_count", c.c_size_t)]


class EngineOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("threads", c.c_uint32), ("max_batched_tokens", c.c_uint32), ("max_sequences", c.c_uint32),
                ("block_tokens", c.c_uint32), ("kv_tokens", c.c_uint64)]


OnToken = c.CFUNCTYPE(c.c_int, c.c_void_p, c.POINTER(Token))


class Runner:
    def __init__(self, library, plan):
        self.lib = c.CDLL(library)
        self.lib.llmrt_last_error.restype = c.c_char_p
        self.plan = c.c_void_p()
        self.check(self.lib.llmrt_plan_open(plan.encode(), None, c.byref(self.plan)))
        self.output = {}
        self.on_token = OnToken(self.take)

    def check(self, status):
        if status:
            raise SystemExit(self.lib.llmrt_last_error().decode())

    def take(self, _, token):
        t = token.contents
        bits = tuple(struct.pack("<f", t.top[i].logprob) + struct.pack("<i", t.top[i].id) for i in range(t.top_count))
        self.output.setdefault(t.request, []).append((t.id, bits))
        return 0

    def run(self, prompts, new, **settings):
        """Outputs of \\p prompts, all submitted at once except every third, which joins some steps later."""
        engine, o = c.c_void_p(), EngineOptions(c.sizeof(EngineOptions), max_sequences=len(prompts), kv_tokens=sum(map(len, prompts)) + 80 * len(prompts), **settings)
        self.check(self.lib.llmrt_engine_create(self.plan, c.byref(o), c.byref(engine)))
        self.output, ids, busy = {}, [], c.c_int(1)
        for i, p in enumerate(prompts):
            g = Options()
            self.lib.llmrt_generate_options_init(None, c.byref(g), c.c_size_t(c.sizeof(g)))
            g.max_new_tokens, g.ignore_eos, g.logprobs, g.on_token = new[i], 1, 20, c.cast(self.on_token, c.c_void_p)
            request = c.c_uint64()
            self.check(self.lib.llmrt_submit(engine, (c.c_int32 * len(p))(*p), c.c_size_t(len(p)), c.byref(g), c.byref(request)))
            ids.append(request.value)
            if i % 3 == 2:
                for _ in range(5):
                    self.check(self.lib.llmrt_step(engine, c.byref(busy)))
        while busy.value:
            self.check(self.lib.llmrt_step(engine, c.byref(busy)))
        self.lib.llmrt_engine_destroy(engine)
        return [self.output[i] for i in ids]


def main():
    library, plan, text = sys.argv[1:4]
    prompt, bad = [int(x) for x in text.split(",")], 0
    runner = Runner(library, plan)
    alone = runner.run([prompt], [24])[0]
    others = [prompt[::-1], prompt[1:] + prompt, prompt[:1], prompt * 2, prompt[3:], prompt[:7] * 5, prompt[2:]]
    for n, settings in ((3, {}), (8, {}), (3, {"max_batched_tokens": 7}), (8, {"block_tokens": 64, "max_batched_tokens": 64}), (8, {"threads": 1})):
        for place in sorted({0, n // 2, n - 1}):
            batch = others[: n - 1]
            batch.insert(place, prompt)
            got = runner.run(batch, [24 if i == place else 5 + 9 * i % 31 for i in range(n)], **settings)[place]
            same = got == alone
            bad += not same
            print(f"{n} at once, place {place}, {settings}: {'same' if same else 'DIFFERENT'}", flush=True)
    print("tokens", [t for t, _ in alone])
    sys.exit(bad != 0)


main()
