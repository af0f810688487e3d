"""Compiled language models in Python: libllmrt without a dependency.

    import llmrt

    with llmrt.Plan("model.plan") as plan, llmrt.Engine(plan) as engine:
        for piece in engine.generate("Once upon a time", max_new_tokens=64):
            print(piece, end="", flush=True)

A prompt is text, a list of token ids, or a list of {"role", "content"} messages for the model's chat template. What a
request may say beside it are the fields of llmrt_generate_options (llmrt.h): temperature, top_k, seed, stop_strings,
json_schema, choices and the others, with the plan's own sampling as the default. An engine has a thread of its own;
its methods may be called from any thread, and requests of several threads run in one batch.
"""
import collections
import ctypes
import weakref

from . import _c

__all__ = ["Plan", "Engine", "Stream", "Token", "Finish", "Answer", "Error", "version"]

_library = _c.load()
version = _library.llmrt_version_string().decode()

_REASONS = {1: "stop", 2: "length", 3: "cancelled", 4: "error"}

Token = collections.namedtuple("Token", "id index choice logprob top text")
Token.__doc__ = """A token of an answer: its id, its index in the output, which answer (from 0), the model's own log-probability
(with logprobs=N; else 0) and [(id, logprob)] of the N likeliest, and the text that can be shown by now, maybe ""."""
Finish = collections.namedtuple("Finish", "choice reason text stop_string result")
Finish.__doc__ = """The end of an answer: "stop", "length", "cancelled" or "error"; text that was held back; the stop string that
ended it, or None; the numbers of llmrt_result as a dict."""
Answer = collections.namedtuple("Answer", "text ids reason result")


class Error(RuntimeError):
    """A call that failed: `status` is llmrt.h's name for it ("invalid argument"), the text says what would be right."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = _library.llmrt_status_name(status).decode()


def _check(status):
    if status:
        raise Error(status, _library.llmrt_last_error().decode(errors="replace"))


def _bytes(text):
    if text is None or isinstance(text, bytes):
        return text
    encoded = text.encode()
    if b"\0" in encoded:
        raise Error(1, "the text has a NUL character in it, which C strings end with")
    return encoded


class _Handle:
    """What the library made, released once."""

    def __init__(self, pointer, release):
        self._pointer = pointer
        self._finalizer = weakref.finalize(self, release, pointer)

    def close(self):
        self._finalizer()

    @property
    def _open(self):
        if not self._finalizer.alive:
            raise Error(1, f"this {type(self).__name__} is closed")
        return self._pointer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Plan(_Handle):
    """A compiled model. `info` has the fields of llmrt_plan_info."""

    def __init__(self, path, *, allow_writable_by_others=False, verify_weights=False):
        options = _c.PlanOptions(ctypes.sizeof(_c.PlanOptions), allow_writable_by_others, verify_weights)
        pointer = ctypes.c_void_p()
        _check(_library.llmrt_plan_open(_bytes(str(path)), options, pointer))
        super().__init__(pointer, _library.llmrt_plan_close)

    @property
    def info(self):
        raw = _c.PlanInfo(size=ctypes.sizeof(_c.PlanInfo))
        _check(_library.llmrt_plan_get_info(self._open, raw))
        fields = {name: getattr(raw, name) for name, _ in raw._fields_[1:]}
        fields.update({name: value.decode() for name, value in fields.items() if isinstance(value, bytes)})
        fields.update({name: bool(value) for name, value in fields.items() if name.startswith("has_")})
        return fields

    def _ids(self, call):
        """The ids that call(ids, capacity, count) fills in: asked once for their number."""
        count = ctypes.c_size_t()
        _check(call(None, 0, count))
        ids = (ctypes.c_int32 * count.value)()
        _check(call(ids, count.value, count))
        return list(ids[:count.value])

    def tokenize(self, text, *, add_special=True, parse_special=False):
        """Token ids of a text; parse_special makes control tokens of their spellings: not for text of users."""
        encoded = text.encode()
        flags = _c.TOKENIZE_ADD_SPECIAL * add_special | _c.TOKENIZE_PARSE_SPECIAL * parse_special
        return self._ids(lambda ids, capacity, count: _library.llmrt_tokenize(
            self._open, encoded, len(encoded), flags, ids, capacity, count))

    def detokenize(self, ids, *, keep_special=False):
        array, length = (ctypes.c_int32 * len(ids))(*ids), ctypes.c_size_t()
        flags = _c.DETOKENIZE_KEEP_SPECIAL * keep_special
        _check(_library.llmrt_detokenize(self._open, array, len(ids), flags, None, 0, length))
        text = ctypes.create_string_buffer(length.value + 1)
        _check(_library.llmrt_detokenize(self._open, array, len(ids), flags, text, length.value + 1, length))
        return text.raw[:length.value].decode(errors="replace")

    def encode_chat(self, messages, *, add_generation_prompt=True):
        """Token ids of a conversation, written as the model's own template does."""
        array = (_c.Message * len(messages))(*[_c.Message(_bytes(m["role"]), _bytes(m["content"])) for m in messages])
        return self._ids(lambda ids, capacity, count: _library.llmrt_encode_chat(
            self._open, array, len(messages), add_generation_prompt, ids, capacity, count))

    def encode(self, prompt):
        """Token ids of a prompt: a text, a list of messages, or ids as they are."""
        if isinstance(prompt, str):
            return self.tokenize(prompt)
        prompt = list(prompt)
        return self.encode_chat(prompt) if prompt and isinstance(prompt[0], dict) else prompt


class Engine(_Handle):
    """Runs requests on a plan. The keywords are the fields of llmrt_engine_options; 0 and None are its defaults."""

    def __init__(self, plan, **options):
        raw = _c.EngineOptions(size=ctypes.sizeof(_c.EngineOptions))
        known = [name for name, _ in raw._fields_[1:]]
        for name, value in options.items():
            if name not in known:
                raise Error(1, f"an engine has no option '{name}'; there are {', '.join(known)}")
            setattr(raw, name, _bytes(value) if isinstance(value, str) else value)
        pointer = ctypes.c_void_p()
        _check(_library.llmrt_engine_create(plan._open, raw, pointer))
        super().__init__(pointer, _library.llmrt_engine_destroy)
        self.plan = plan
        self._streams = weakref.WeakSet()
        _check(_library.llmrt_engine_start(self._open))

    def close(self):
        for stream in list(self._streams):  # before the engine
            stream.close()
        super().close()

    def drain(self):
        """Takes no more requests, and returns when all have ended."""
        _check(_library.llmrt_engine_drain(self._open))

    @property
    def metrics(self):
        raw = _c.Metrics(size=ctypes.sizeof(_c.Metrics))
        _check(_library.llmrt_engine_get_metrics(self._open, raw))
        return {name: getattr(raw, name) for name, _ in raw._fields_[1:]}

    def stream(self, prompt, *, want_text=None, **options):
        """Submits a request; iterate over the Stream for its events. Text needs a plan with a tokenizer: the default."""
        return Stream(self, self.plan.encode(prompt), want_text, options)

    def generate(self, prompt, **options):
        """Pieces of text as they come. Ending the loop early cancels the request."""
        if options.get("choices", 1) > 1:
            raise Error(1, "generate gives one answer; stream or complete give several")
        with self.stream(prompt, want_text=True, **options) as stream:
            for event in stream:
                if event.text:
                    yield event.text

    def complete(self, prompt, **options):
        """The Answer when it is complete; a list of them with choices=N."""
        count = max(1, options.get("choices", 1))
        texts, ids, ends = [""] * count, [[] for _ in range(count)], [None] * count
        with self.stream(prompt, **options) as stream:
            for event in stream:
                texts[event.choice] += event.text
                if isinstance(event, Token):
                    ids[event.choice].append(event.id)
                else:
                    ends[event.choice] = event
        answers = [Answer(text, i, end.reason, end.result) for text, i, end in zip(texts, ids, ends)]
        return answers if options.get("choices", 1) > 1 else answers[0]


def _generate_options(plan, options):
    """The C structure, and what it points to."""
    raw = _c.GenerateOptions()
    _library.llmrt_generate_options_init(plan._open, raw, ctypes.sizeof(raw))
    types, keep = dict(raw._fields_), []
    callbacks = {"size", "user", "on_token", "on_text", "on_finish", "on_choice_text"}
    lists = {"stop_ids": ("stop_id_count", ctypes.c_int32), "stop_strings": ("stop_string_count", ctypes.c_char_p),
             "logit_bias": ("logit_bias_count", _c.LogitBias)}
    known = [name for name in types if name not in callbacks and not name.endswith("_count")]
    for name, value in options.items():
        if name not in known:
            raise Error(1, f"a request has no option '{name}'; there are {', '.join(known)}")
        if name in lists:
            count, element = lists[name]
            if name == "logit_bias":
                items = [_c.LogitBias(int(i), bias) for i, bias in dict(value).items()]
            else:
                items = [_bytes(item) if isinstance(item, str) else item for item in value]
            keep.append((element * len(items))(*items))
            setattr(raw, name, keep[-1])
            setattr(raw, count, len(items))
        else:
            try:
                setattr(raw, name, _bytes(value) if isinstance(value, str) else value)
            except TypeError as error:
                raise Error(1, f"{name}: {value!r} is of the wrong type: {error}") from None
    return raw, keep


class Stream(_Handle):
    """The events of a request: Token and Finish, in order. Closing it cancels what still runs."""

    def __init__(self, engine, ids, want_text, options):
        if want_text is None:
            want_text = engine.plan.info["has_tokenizer"]
        self._options, self._keep = _generate_options(engine.plan, options)
        prompt, pointer = (ctypes.c_int32 * len(ids))(*ids), ctypes.c_void_p()
        _check(_library.llmrt_stream_open(engine._open, prompt, len(ids), self._options, want_text, pointer))
        super().__init__(pointer, _library.llmrt_stream_close)
        self._engine = engine  # lives as long as this
        engine._streams.add(self)
        self._ended = False

    def __iter__(self):
        return self

    def __next__(self):
        if self._ended:
            raise StopIteration
        raw = _c.Event(size=ctypes.sizeof(_c.Event))
        # In slices, so that Ctrl-C is heard.
        while raw.kind == _c.EVENT_NONE:
            _check(_library.llmrt_stream_next(self._open, 100, raw))
        if raw.kind == _c.EVENT_END:
            self._ended = True
            self.close()
            raise StopIteration
        text = ctypes.string_at(raw.text, raw.text_length).decode() if raw.text_length else ""
        if raw.kind == _c.EVENT_TOKEN:
            t = raw.token
            return Token(t.id, t.index, t.choice, t.logprob, [(o.id, o.logprob) for o in t.top[:t.top_count]], text)
        r = raw.result
        if r.status and _REASONS.get(r.reason) == "error":
            raise Error(r.status, _library.llmrt_status_name(r.status).decode())
        numbers = {name: getattr(r, name) for name, _ in r._fields_[1:] if name not in ("reason", "status", "stop_string")}
        stop = r.stop_string.decode() if r.stop_string else None
        return Finish(r.choice, _REASONS.get(r.reason, "error"), text, stop, numbers)
