"""The HTTP API: answers and streams, whole and in every form. Cases V02 to V23 of the field's failures."""
import pytest

from servers import refused, say


def test_models(server):
    status, answer = server.get("/v1/models")
    assert status == 200 and answer["object"] == "list"
    assert [m["id"] for m in answer["data"]] == ["parrot", "other/name"]
    assert all({"id", "object", "created", "owned_by"} <= set(m) for m in answer["data"])
    assert server.get("/v1/models/other/name")[1]["id"] == "other/name"
    assert server.get("/v1/models/other%2Fname")[1]["id"] == "other/name"
    assert server.get("/v1/models/none")[0] == 404


def test_unknown_model(server):
    for path, body in [("/v1/completions", {"prompt": "a"}),
                       ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]})]:
        for name in ("no-such-model", ""):
            error = refused(server, path, {**body, "model": name}, "model", 404)
            assert error["code"] == "model_not_found" and "parrot" in error["message"]
        for name in (None, "parrot", "other/name"):
            status, answer = server.post(path, {**body, "model": name, "max_tokens": 1})
            assert status == 200 and answer["model"] == "parrot"


def test_completion(server):
    answer = server.complete(say("hello there"))
    assert answer["choices"][0]["text"] == "hello there"
    assert answer["choices"][0]["finish_reason"] == "stop"
    usage = answer["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert usage["prompt_tokens_details"]["cached_tokens"] >= 0


def test_cached_tokens(server):
    prompt = "the same beginning of a prompt that is long enough for several blocks of sixteen tokens " + say("x")
    server.complete(prompt)
    assert server.complete(prompt)["usage"]["prompt_tokens_details"]["cached_tokens"] >= 16


def test_chat(server):
    answer = server.chat(say("hi"))
    message = answer["choices"][0]["message"]
    assert message["role"] == "assistant" and message["content"] == "hi"
    assert answer["object"] == "chat.completion"


@pytest.mark.parametrize("text", ["a b c", "line\n\nline", "data: x\n\ndata: [DONE]\n\n", "é中文🙂 \" \\ "])
def test_stream_framing(server, text):
    body = {"messages": [{"role": "user", "content": say(text)}], "temperature": 0}
    chunks = server.stream("/v1/chat/completions", body)
    assert len({(c["id"], c["created"], c["model"], c["object"]) for c in chunks}) == 1
    deltas = [c["choices"][0]["delta"] for c in chunks]
    assert deltas[0]["role"] == "assistant" and not any("role" in d for d in deltas[1:])
    reasons = [c["choices"][0]["finish_reason"] for c in chunks]
    assert reasons[-1] == "stop" and set(reasons[:-1]) == {None}
    joined = "".join(d.get("content") or "" for d in deltas)
    assert joined == text == server.chat(say(text))["choices"][0]["message"]["content"]

    chunks = server.stream("/v1/completions", {"prompt": say(text), "temperature": 0, "max_tokens": 64})
    assert "".join(c["choices"][0]["text"] for c in chunks) == text


def test_stream_usage(server):
    body = {"prompt": say("a b"), "max_tokens": 9, "temperature": 0, "stream_options": {"include_usage": True}}
    chunks = server.stream("/v1/completions", body)
    assert chunks[-1]["choices"] == [] and chunks[-1]["usage"]["completion_tokens"] > 0
    assert all(c["usage"] is None for c in chunks[:-1])
    refused(server, "/v1/completions", {"prompt": "a", "stream_options": {"include_usage": True}}, "stream_options")


def test_finish_reasons(server):
    tokens = server.complete(say("a b c d e f"), max_tokens=3)
    assert tokens["choices"][0]["finish_reason"] == "length" and tokens["usage"]["completion_tokens"] == 3
    whole = server.complete(say("a b"))
    n = whole["usage"]["completion_tokens"]  # with the end token
    assert whole["choices"][0]["finish_reason"] == "stop"
    assert server.complete(say("a b"), max_tokens=n)["choices"][0]["finish_reason"] == "stop"
    assert server.complete(say("a b"), max_tokens=n - 1)["choices"][0]["finish_reason"] == "length"
    stopped = server.complete(say("one two STOP three"), stop=["STOP"])
    assert stopped["choices"][0] == {"index": 0, "text": "one two ", "logprobs": None, "finish_reason": "stop",
                                     "stop_reason": "STOP"}
    assert server.complete(say("a STOP b"), stop="STOP", include_stop_str_in_output=True)["choices"][0]["text"] == "a STOP"


@pytest.mark.parametrize("text, stops, expected", [
    ("UNO DUE TRE", ["TRE\nAAAAAAAA"], "UNO DUE TRE"), ("abc", ["abd"], "abc"), ("aaab", ["aab"], "a"),
    ("The user is a,", ["a", "is", ","], "The user "), ("x é y", ["é"], "x ")])
def test_stop_strings(server, text, stops, expected):
    assert server.complete(say(text), stop=stops)["choices"][0]["text"] == expected
    chunks = server.stream("/v1/completions", {"prompt": say(text), "stop": stops, "temperature": 0, "max_tokens": 64})
    assert "".join(c["choices"][0]["text"] for c in chunks) == expected


def test_choices(server):
    """Case V09: each choice of a stream has its index and its own end."""
    body = {"messages": [{"role": "user", "content": say("one two three")}], "n": 3, "temperature": 0}
    whole = server.chat(body["messages"], n=3)
    assert [c["index"] for c in whole["choices"]] == [0, 1, 2]
    assert whole["usage"]["prompt_tokens"] == server.chat(body["messages"])["usage"]["prompt_tokens"]
    assert whole["usage"]["completion_tokens"] == 3 * server.chat(body["messages"])["usage"]["completion_tokens"]
    ends = [0, 0, 0]
    texts = ["", "", ""]
    for chunk in server.stream("/v1/chat/completions", body):
        choice = chunk["choices"][0]
        texts[choice["index"]] += choice["delta"].get("content") or ""
        ends[choice["index"]] += choice["finish_reason"] is not None
    assert ends == [1, 1, 1] and texts == [c["message"]["content"] for c in whole["choices"]]


def test_choices_with_a_seed(real):
    def texts(n):
        return [c["text"] for c in real.complete("once", n=n, seed=5, temperature=1, max_tokens=16)["choices"]]
    four = texts(4)
    assert len(set(four)) == 4 and four == texts(4) and texts(2) == four[:2]


def test_max_completion_tokens_wins(server):
    answer = server.chat(say("a b c d e f g"), max_tokens=5, max_completion_tokens=2)
    assert answer["usage"]["completion_tokens"] == 2


def test_logprobs(real):
    answer = real.chat("hi", max_tokens=4, logprobs=True, top_logprobs=3, top_k=1)
    entries = answer["choices"][0]["logprobs"]["content"]
    assert len(entries) == 4
    for entry in entries:
        assert len(entry["top_logprobs"]) == 3 and entry["logprob"] <= 0
        assert bytes(entry["bytes"]).decode(errors="replace") == entry["token"]
    text = real.complete("hi", max_tokens=4, logprobs=2)["choices"][0]
    assert {len(v) for v in text["logprobs"].values()} == {4}
    assert text["logprobs"]["text_offset"][0] == 0


def test_logit_bias(real):
    plain = real.complete([5, 6], max_tokens=1, logprobs=0)
    top = real.post("/tokenize", {"prompt": plain["choices"][0]["text"], "add_special_tokens": False})[1]["tokens"]
    if len(top) == 1:
        assert real.complete([5, 6], max_tokens=1, logit_bias={str(top[0]): -100}) != plain
    forced = real.complete([5, 6], max_tokens=3, logit_bias={"40": 100})
    assert real.post("/tokenize", {"prompt": forced["choices"][0]["text"], "add_special_tokens": False})[1]["tokens"] == [40] * 3


def test_min_tokens(server):
    assert server.complete(say("a"), min_tokens=9, max_tokens=9)["usage"]["completion_tokens"] == 9


def test_echo(server):
    assert server.complete(say("x"), echo=True)["choices"][0]["text"] == say("x") + "x"


def test_text_endpoints(real):
    status, tokens = real.post("/tokenize", {"prompt": "hello world", "add_special_tokens": False})
    assert status == 200 and tokens["count"] == len(tokens["tokens"]) > 0
    assert real.post("/detokenize", {"tokens": tokens["tokens"]})[1]["prompt"] == "hello world"
    chat = real.post("/apply-template", {"messages": [{"role": "user", "content": "hi"}]})[1]["prompt"]
    assert chat == "<user>hi<assistant>"
    assert real.post("/tokenize", {"messages": [{"role": "user", "content": "hi"}]})[1]["count"] > 0
    refused(real, "/detokenize", {"tokens": [10**9]}, "tokens")
    refused(real, "/v1/embeddings", {"input": "a"}, "model")
    assert real.get("/plan")[1]["model"]["architecture"] == "llama"
    assert real.get("/version")[0] == 200


def test_responses_endpoint(server):
    status, answer = server.post("/v1/responses", {"input": say("hello"), "temperature": 0})
    assert status == 200, answer
    assert answer["status"] == "completed" and answer["output"][0]["content"][0]["text"] == "hello"
    cut = server.post("/v1/responses", {"input": say("a b c d e"), "max_output_tokens": 2, "temperature": 0})[1]
    assert cut["status"] == "incomplete" and cut["incomplete_details"] == {"reason": "max_output_tokens"}
    refused(server, "/v1/responses", {"input": "a", "previous_response_id": "x"}, "previous_response_id")
    refused(server, "/v1/responses", {"input": [{"type": "item_reference", "id": "x"}]}, "input[0]")
