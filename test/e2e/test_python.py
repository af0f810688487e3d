"""The Python module: the same structures as the header, the same tokens as the tools."""
import ctypes
import json
import os
import re
import subprocess
import sys
import threading

import pytest

from conftest import BIN, ROOT, generate, golden_runs

os.environ.setdefault("LLMRT_LIBRARY", str(BIN.parent / "lib/libllmrt.so"))
sys.path.insert(0, str(ROOT / "runtime/python"))
import llmrt  # noqa: E402
from llmrt import _c  # noqa: E402

HEADER = (ROOT / "runtime/include/llmrt/llmrt.h").read_text()
C_TYPES = {"size_t": ctypes.c_size_t, "int": ctypes.c_int, "uint64_t": ctypes.c_uint64, "int64_t": ctypes.c_int64,
           "uint32_t": ctypes.c_uint32, "int32_t": ctypes.c_int32, "float": ctypes.c_float, "double": ctypes.c_double,
           "const char *": ctypes.c_char_p, "void *": ctypes.c_void_p, "llmrt_status": ctypes.c_int,
           "llmrt_event_kind": ctypes.c_int, "llmrt_finish_reason": ctypes.c_int, "llmrt_token": _c.Token,
           "llmrt_result": _c.Result, "const int32_t *": ctypes.POINTER(ctypes.c_int32),
           "const char *const *": ctypes.POINTER(ctypes.c_char_p),
           "const llmrt_token_logprob *": ctypes.POINTER(_c.TokenLogprob),
           "const llmrt_logit_bias *": ctypes.POINTER(_c.LogitBias)}


def structures_of_the_header():
    text = re.sub(r"/\*.*?\*/", "", HEADER, flags=re.S)
    for body, name in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", text, flags=re.S):
        fields = []
        for declaration in body.split(";"):
            if not declaration.strip():
                continue
            kind, names = re.match(r"\s*((?:const )?\w+(?: \*const)?)\s+(.*)", declaration, flags=re.S).groups()
            for field in names.split(","):
                stars, field = re.match(r"\s*((?:\*const )?\**)(\w+)", field).groups()
                fields.append((field, kind + (" " + stars if stars else "")))
        yield name, fields


def test_the_structures_are_those_of_the_header():
    found = dict(structures_of_the_header())
    assert found.keys() == _c.STRUCTURES.keys()
    for name, fields in found.items():
        ours = dict(_c.STRUCTURES[name]._fields_)
        assert list(ours) == [field for field, _ in fields], name
        for field, kind in fields:
            if kind.endswith("_callback"):
                assert ours[field] is ctypes.c_void_p
            elif (name, field) == ("llmrt_event", "text"):
                assert ours[field] is ctypes.c_void_p  # has a length, no NUL
            else:
                assert ours[field] is C_TYPES[kind], f"{name}.{field}: {kind}"


@pytest.fixture(scope="module")
def model(plan):
    with llmrt.Plan(plan) as opened:
        yield opened


@pytest.fixture(scope="module")
def engine(model):
    with llmrt.Engine(model, threads=2, max_sequences=8) as made:
        yield made


def test_the_tokens_are_those_of_the_tools(tiny, plan, engine):
    runs = golden_runs(tiny / "llama")
    alone = [generate(plan, run["prompt_ids"], 16) for run in runs]
    options = {"max_new_tokens": 16, "temperature": 0, "ignore_eos": True}
    got = [None] * len(runs)

    def one(i):
        got[i] = engine.complete(runs[i]["prompt_ids"], **options)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(runs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.ids for answer in got] == alone
    assert all(answer.reason == "length" and answer.result["output_tokens"] == 16 for answer in got)
    assert got[0].text == "".join(engine.generate(runs[0]["prompt_ids"], **options))
    assert engine.metrics["generation_tokens"] >= 16 * len(runs)


def test_text_and_chat(model, engine):
    assert model.info["has_tokenizer"] is True and model.info["max_context"] > 0
    ids = model.tokenize("Hello", add_special=False)
    assert model.detokenize(ids) == "Hello"
    chat = model.encode_chat([{"role": "user", "content": "Hello"}])
    assert len(chat) > len(ids)
    asked = engine.complete([{"role": "user", "content": "Hello"}], max_new_tokens=4, temperature=0)
    assert asked.ids == engine.complete(chat, max_new_tokens=4, temperature=0).ids


def test_choices_schema_and_logprobs(engine):
    answers = engine.complete("Hello", max_new_tokens=8, temperature=1, seed=3, choices=3, ignore_eos=True)
    assert len(answers) == 3 and len({tuple(answer.ids) for answer in answers}) > 1
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
    answer = engine.complete("Hello", max_new_tokens=60, temperature=0, json_schema=json.dumps(schema),
                             logit_bias={0: -50})
    if answer.reason == "stop":
        assert isinstance(json.loads(answer.text)["n"], int)
    with engine.stream("Hello", max_new_tokens=2, temperature=0, logprobs=2, ignore_eos=True) as stream:
        tokens = [event for event in stream if isinstance(event, llmrt.Token)]
    assert [len(token.top) for token in tokens] == [2, 2]
    assert tokens[0].top[0] == (tokens[0].id, pytest.approx(tokens[0].logprob))


def test_an_early_end_cancels(model):
    options = {"max_new_tokens": -1, "temperature": 1, "ignore_eos": True}
    with llmrt.Engine(model, max_sequences=1) as engine:
        for _ in engine.generate("Hello", **options):
            break
        first = engine.stream("Hello", **options)
        engine.stream("Hello", **options).close()  # while the first runs
        assert [event.reason for event in first if isinstance(event, llmrt.Finish)] == ["length"]
        engine.drain()  # the engine counts after it tells
        assert engine.metrics["finished_cancelled"] >= 1 and engine.metrics["running"] == 0


@pytest.mark.parametrize("call, message", [
    (lambda model, engine: engine.complete("a", heat=1), "no option 'heat'"),
    (lambda model, engine: engine.complete("a", temperature="hot"), "temperature"),
    (lambda model, engine: engine.complete("a", temperature=-1), "temperature"),
    (lambda model, engine: engine.complete("a", json_schema="{"), "schema"),
    (lambda model, engine: engine.complete([]), "prompt"),
    (lambda model, engine: engine.complete([1 << 30]), "token"),
    (lambda model, engine: engine.complete("a", regex="a\0b"), "NUL"),
    (lambda model, engine: llmrt.Engine(model, device="gpu7"), "gpu7"),
    (lambda model, engine: llmrt.Engine(model, thread=1), "no option 'thread'"),
    (lambda model, engine: llmrt.Plan("/nowhere/m.plan"), "/nowhere/m.plan")])
def test_errors_say_what_is_wrong(model, engine, call, message):
    with pytest.raises(llmrt.Error, match=message):
        call(model, engine)
    assert engine.complete("a", max_new_tokens=1).ids, "the engine goes on"


def test_what_is_closed_says_so(plan):
    with llmrt.Plan(plan) as model:
        engine = llmrt.Engine(model)
        stream = engine.stream("Hello", max_new_tokens=-1, ignore_eos=True)
        engine.close()  # with a stream that still runs
        engine.close()
    for call in (lambda: engine.metrics, lambda: next(stream), lambda: model.info):
        with pytest.raises(llmrt.Error, match="is closed"):
            call()


def test_the_example(plan):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "runtime/python")}
    command = [sys.executable, str(ROOT / "examples/python/generate.py")]
    run = subprocess.run([*command, str(plan), "Hello", "5"], capture_output=True, text=True, env=environment)
    assert run.returncode == 0 and run.stdout.strip() and "5 tokens" in run.stderr, run.stderr
    run = subprocess.run([*command, "/nowhere.plan", "Hello"], capture_output=True, text=True, env=environment)
    assert run.returncode == 1 and "/nowhere.plan" in run.stderr and "Traceback" not in run.stderr
