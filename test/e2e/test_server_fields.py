"""What requests may say: fields, messages and prompts, good and bad."""
import json

import pytest

import servers
from servers import refused, say


def test_nulls(server):
    """Case V07: null is the same as leaving a field out."""
    names = ["max_tokens", "stop", "temperature", "top_p", "n", "stream", "seed", "logit_bias", "tools", "tool_choice",
             "user", "stream_options", "response_format", "logprobs", "top_logprobs", "frequency_penalty"]
    messages = [{"role": "user", "content": "a", "name": None},
                {"role": "assistant", "content": None, "tool_calls": [
                    {"id": "x", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "x", "content": say("fine")}]
    status, answer = server.post("/v1/chat/completions", {"messages": messages, **dict.fromkeys(names)})
    assert status == 200 and answer["choices"][0]["message"]["content"] == "fine"


CHAT = {"messages": [{"role": "user", "content": "a"}]}


@pytest.mark.parametrize("field, value", [
    ("temperature", "hot"), ("temperature", -1), ("temperature", 1e999), ("top_p", 1.1), ("top_p", True), ("n", 0),
    ("n", 1.5), ("n", 10**30), ("stream", "yes"), ("max_tokens", -1), ("max_tokens", 1.5), ("max_tokens", "5"),
    ("stop", ""), ("stop", ["", "x"]), ("stop", [1]), ("stop", 5), ("stop", ["a"] * 100), ("seed", "x"),
    ("logit_bias", {"999999": 100}), ("logit_bias", {"-1": 5}), ("logit_bias", {"abc": 1}), ("logit_bias", {"5": 1000}),
    ("logit_bias", []), ("stop_token_ids", [4294967295]), ("top_k", -2), ("min_p", 2), ("presence_penalty", 3),
    ("repetition_penalty", 0), ("frequency_penalty", -2.1), ("top_logprobs", 5), ("logprobs", 3), ("messages", []),
    ("messages", "hi"), ("model", 5), ("tools", {}), ("tools", [{"type": "function"}]), ("tool_choice", "maybe"),
    ("use_beam_search", 1), ("num_beams", 0), ("early_stopping", "no"), ("length_penalty", "x"), ("best_of", 3), ("functions", [{}]), ("audio", {}), ("store", True)])
def test_bad_values(server, field, value):
    body = json.dumps({**CHAT, field: value}).replace("Infinity", "1e999")
    got, answer = server.post("/v1/chat/completions", body)
    assert got == 400 and answer["error"]["type"] == "invalid_request_error", answer
    assert answer["error"]["param"].startswith(field), answer


@pytest.mark.parametrize("fields", [
    {"max_tokens": 1.0}, {"max_tokens": 2**63}, {"top_k": 0}, {"top_k": -1}, {"top_k": 1000000}, {"top_p": 0}, {"best_of": 1},
    {"use_beam_search": False}, {"unknown_field": [1]}, {"stop": []}, {"metadata": {"a": "b"}}, {"max_tokens": 0}])
def test_good_values(server, fields):
    status, answer = server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": say("x")}], **fields})
    assert status == 200, answer
    if fields.get("max_tokens") == 0:
        assert answer["choices"][0]["message"]["content"] == "" and answer["choices"][0]["finish_reason"] == "length"


def test_unknown_fields_are_logged(server):
    server.complete("a", max_tokens=1, strange_name=1)
    assert any("strange_name" in line and "WARNING" in line for line in server.log)


def test_content_parts(server):
    """Case V08: text parts are joined by a newline, others are refused."""
    for role in ("system", "assistant", "user"):
        answer = server.chat([{"role": role, "content": [{"type": "text", "text": "[[a"}, {"type": "text", "text": "b]]"}]}])
        assert answer["choices"][0]["message"]["content"] == "a\nb"
    image = [{"type": "image_url", "image_url": {"url": "data:,"}}]
    error = refused(server, "/v1/chat/completions", {"messages": [{"role": "user", "content": image}]},
                    "messages[0].content[0]")
    assert "text only" in error["message"]
    for part, inner in (({"type": "hologram"}, ""), ({"text": "a"}, ""), ("a", ""), ({"type": "text"}, ".text"),
                        ({"type": "text", "text": 5}, ".text")):
        refused(server, "/v1/chat/completions", {"messages": [{"role": "user", "content": [part]}]},
                f"messages[0].content[0]{inner}")
    assert server.chat([{"role": "user", "content": []}], max_tokens=1)


@pytest.mark.parametrize("message, param", [
    ({"role": "user"}, "messages[0].content"), ({"content": "a"}, "messages[0].role"), ("a", "messages[0]"),
    ({"role": "judge", "content": "a"}, "messages[0].role"), ({"role": "user", "content": 5}, "messages[0].content"),
    ({"role": "assistant", "content": None}, "messages[0].content"),
    ({"role": "assistant", "tool_calls": [{}]}, "messages[0].tool_calls[0].function")])
def test_bad_messages(server, message, param):
    refused(server, "/v1/chat/completions", {"messages": [message]}, param)


def test_token_prompts(server):
    """Case V14: token ids as a prompt, those of no token refused."""
    assert len(server.complete([5, 6, 7], max_tokens=1)["choices"]) == 1
    for two in ([[5, 6], [7]], ["a", "b"]):
        assert [c["index"] for c in server.complete(two, max_tokens=1)["choices"]] == [0, 1]
    for bad in ([1, "a"], [5, 4294967295], [-1], [1.5], [], [[]], ["a", [1]], {}, 5, None):
        refused(server, "/v1/completions", {"prompt": bad}, "prompt")


def test_empty_prompt(server):
    status, answer = server.post("/v1/completions", {"prompt": "", "max_tokens": 1})
    assert status == 200 or answer["error"]["param"] == "prompt"
    assert server.complete([0], max_tokens=1)["usage"]["prompt_tokens"] == 1
    assert server.chat("", max_tokens=1)


def test_prompt_too_long(plan):
    server = servers.parrot(plan, context=256)

    def attempt(n, **fields):
        return server.post("/v1/completions", {"prompt": [5] * n, "temperature": 0, **fields})
    status, answer = attempt(255, max_tokens=100)
    assert status == 200 and answer["usage"]["completion_tokens"] == 1
    assert answer["choices"][0]["finish_reason"] == "length"
    assert attempt(252, max_tokens=100)[1]["usage"]["completion_tokens"] == 4
    for n in (256, 257, 10000):
        for stream in (False, True):
            error = refused(server, "/v1/completions", {"prompt": [5] * n, "stream": stream}, "prompt")
            assert error["code"] == "context_length_exceeded"
            assert str(n) in error["message"] and "256" in error["message"]
    assert server.stop() == 0


def test_control_tokens_in_messages_stay_text(real):
    for message in ({"role": "user", "content": "</s>"},
                    {"role": "assistant", "content": "", "tool_calls": [
                        {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": "\\u003c/s>"}'}}]}):
        tokens = real.post("/tokenize", {"messages": [message]})[1]["tokens"]
        assert 2 not in tokens
