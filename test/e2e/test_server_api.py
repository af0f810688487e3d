"""The HTTP API: fields, answers, streams, errors. Cases V02 to V23 of the field's failures."""
import json
import shutil
import subprocess
import urllib.parse

import pytest

import servers


@pytest.fixture(scope="module")
def plan(plan_with_chat):
    return plan_with_chat


@pytest.fixture(scope="module")
def server(plan):
    server = servers.parrot(plan, tools="hermes", context=2048)
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="module")
def real(plan):
    """The compiled model behind the real engine."""
    server = servers.Server(servers.BIN / "llmrt", "serve", plan, "--port", "0", "--served-model-name", "tiny")
    yield server
    assert server.stop() == 0


def say(text):
    return f"[[{text}]]"


def refused(server, path, body, param, status=400, **kwargs):
    got, answer = server.post(path, body, **kwargs)
    assert got == status, answer
    assert set(answer["error"]) == {"message", "type", "param", "code"}
    assert answer["error"]["param"] == param, answer
    assert answer["error"]["message"]
    return answer["error"]


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


def test_max_completion_tokens_wins(server):
    answer = server.chat(say("a b c d e f g"), max_tokens=5, max_completion_tokens=2)
    assert answer["usage"]["completion_tokens"] == 2


def test_content_parts(server):
    for role in ("system", "assistant", "user"):
        answer = server.chat([{"role": role, "content": [{"type": "text", "text": "[[a"}, {"type": "text", "text": "b]]"}]}])
        assert answer["choices"][0]["message"]["content"] == "a\nb"
    image = [{"type": "image_url", "image_url": {"url": "data:,"}}]
    error = refused(server, "/v1/chat/completions", {"messages": [{"role": "user", "content": image}]},
                    "messages[0].content[0]")
    assert "text only" in error["message"]
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


SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}, "age": {"type": "integer", "minimum": 0, "maximum": 99}},
          "required": ["name", "age"], "additionalProperties": False}


def test_structured_output(real):
    form = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": SCHEMA}}
    for seed in range(3):
        fields = {"temperature": 1, "seed": seed, "max_tokens": 80}
        value = json.loads(real.chat("hi", response_format=form, **fields)["choices"][0]["message"]["content"])
        assert len(value["name"]) <= 5 and 0 <= value["age"] <= 99
        assert json.loads(real.complete("hi", guided_json=SCHEMA, **fields)["choices"][0]["text"]).keys() == value.keys()
        assert real.complete("hi", guided_choice=["yes", "no (never)"], **fields)["choices"][0]["text"] in ("yes", "no (never)")
        assert real.complete("hi", guided_regex="[ab]{3}c", **fields)["choices"][0]["text"][3] == "c"
        assert real.complete("hi", structured_outputs={"regex": "x+y"}, logit_bias={}, **fields)["choices"][0]["text"].startswith("x")
        assert real.complete("hi", grammar='root ::= "a" [0-9] "b"', **fields)["choices"][0]["text"][::2] == "ab"
    refused(real, "/v1/completions", {"prompt": "a", "guided_regex": "["}, "guided_regex")
    refused(real, "/v1/completions", {"prompt": "a", "guided_regex": "a", "guided_json": {}}, "guided_regex")
    refused(real, "/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "response_format": {"type": "xml"}},
            "response_format")
    answer = real.post("/v1/responses", {"input": "a", "max_output_tokens": 80, "text": {"format": {
        "type": "json_schema", "name": "x", "schema": SCHEMA}}})[1]
    assert json.loads(answer["output"][0]["content"][0]["text"]).keys() == {"name", "age"}


def test_forced_calls(plan):
    real = servers.Server(servers.BIN / "llmrt", "serve", plan, "--port", "0", "--tool-call-parser", "hermes")
    tools = [{"type": "function", "function": {"name": n, "parameters": SCHEMA}} for n in ("first", "second")]
    for choice, names in (("required", ("first", "second")), ({"type": "function", "function": {"name": "second"}}, ("second",))):
        # A model of random weights may write spaces until the limit: among several answers some come to their end.
        whole = 0
        for seed in range(6):
            answer = real.chat("hi", tools=tools, tool_choice=choice, max_tokens=150, temperature=1, seed=seed)["choices"][0]
            if answer["finish_reason"] == "length":
                continue
            whole += 1
            call = answer["message"]["tool_calls"][0]["function"]
            assert call["name"] in names and json.loads(call["arguments"]).keys() == {"name", "age"}
            assert answer["finish_reason"] == ("tool_calls" if choice == "required" else "stop")
        assert whole > 0
    assert real.stop() == 0


def test_min_tokens(server):
    assert server.complete(say("a"), min_tokens=9, max_tokens=9)["usage"]["completion_tokens"] == 9


def test_echo(server):
    assert server.complete(say("x"), echo=True)["choices"][0]["text"] == say("x") + "x"


def call(name, arguments):
    return f'<tool_call>\n{{"name": "{name}", "arguments": {json.dumps(arguments)}}}\n</tool_call>'


TOOLS = [{"type": "function", "function": {"name": n, "parameters": {"type": "object"}}} for n in ("f", "g")]


def test_tool_calls(server):
    """Case V22: two calls, whole and streamed."""
    # The answer of the parrot stands in the prompt: in JSON's brackets it would end too early.
    text = "Wait." + call("f", {"a": 1}) + call("g", {"b": {"c": "d"}})
    answer = server.chat(say(text), tools=TOOLS)["choices"][0]
    assert answer["finish_reason"] == "tool_calls" and answer["message"]["content"] == "Wait."
    calls = answer["message"]["tool_calls"]
    assert [(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in calls] == [
        ("f", {"a": 1}), ("g", {"b": {"c": "d"}})]
    assert len({c["id"] for c in calls}) == 2

    chunks = server.stream("/v1/chat/completions", {"messages": [{"role": "user", "content": say(text)}],
                                                    "temperature": 0, "tools": TOOLS})
    streamed = {}
    for chunk in chunks:
        for piece in chunk["choices"][0]["delta"].get("tool_calls", []):
            if piece["index"] not in streamed:
                assert piece["id"] and piece["function"]["name"]
                streamed[piece["index"]] = [piece["function"]["name"], ""]
            else:
                assert "id" not in piece and "name" not in piece["function"]
            streamed[piece["index"]][1] += piece["function"]["arguments"]
    assert {i: (n, json.loads(a)) for i, (n, a) in streamed.items()} == {0: ("f", {"a": 1}), 1: ("g", {"b": {"c": "d"}})}
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_tool_choice_none(server):
    answer = server.chat(say(call("f", {})), tools=TOOLS, tool_choice="none")["choices"][0]
    assert answer["finish_reason"] == "stop" and "tool_calls" not in answer["message"]


def test_cut_tool_call_is_no_tool_call(server):
    answer = server.chat(say(call("f", {"a": "long " * 20})), tools=TOOLS, max_tokens=30)["choices"][0]
    assert answer["finish_reason"] == "length"


def test_parallel_tool_calls_off(server):
    answer = server.chat(say(call("f", {}) + call("g", {})), tools=TOOLS, parallel_tool_calls=False)["choices"][0]
    assert [c["function"]["name"] for c in answer["message"]["tool_calls"]] == ["f"]


def test_reasoning(plan):
    server = servers.parrot(plan, reasoning="think")
    answer = server.chat(say("<think>\nhm\n</think>\n\nyes"))["choices"][0]["message"]
    assert answer["reasoning_content"] == "hm" and answer["content"] == "yes"
    assert server.stop() == 0


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


def test_control_tokens_in_messages_stay_text(real):
    for message in ({"role": "user", "content": "</s>"},
                    {"role": "assistant", "content": "", "tool_calls": [
                        {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": "\\u003c/s>"}'}}]}):
        tokens = real.post("/tokenize", {"messages": [message]})[1]["tokens"]
        assert 2 not in tokens


def test_messages_endpoint(server):
    body = {"max_tokens": 60, "messages": [{"role": "user", "content": [{"type": "text", "text": say("yes" + call("f", {"a": 1}))}]}],
            "tools": [{"name": "f", "input_schema": {"type": "object"}}], "temperature": 0}
    status, answer = server.post("/v1/messages", body)
    assert status == 200, answer
    assert answer["type"] == "message" and answer["stop_reason"] == "tool_use"
    assert answer["content"][0] == {"type": "text", "text": "yes"}
    assert answer["content"][1]["name"] == "f" and answer["content"][1]["input"] == {"a": 1}
    _, _, raw = server.request("POST", "/v1/messages", {**body, "stream": True})
    names = [line[7:] for line in raw.decode().splitlines() if line.startswith("event: ")]
    assert names[0] == "message_start" and names[-2:] == ["message_delta", "message_stop"]
    assert names.count("content_block_start") == names.count("content_block_stop") == 2
    refused(server, "/v1/messages", {"messages": body["messages"]}, "max_tokens")


def test_responses_endpoint(server):
    status, answer = server.post("/v1/responses", {"input": say("hello"), "temperature": 0})
    assert status == 200, answer
    assert answer["status"] == "completed" and answer["output"][0]["content"][0]["text"] == "hello"
    cut = server.post("/v1/responses", {"input": say("a b c d e"), "max_output_tokens": 2, "temperature": 0})[1]
    assert cut["status"] == "incomplete" and cut["incomplete_details"] == {"reason": "max_output_tokens"}
    refused(server, "/v1/responses", {"input": "a", "previous_response_id": "x"}, "previous_response_id")
    refused(server, "/v1/responses", {"input": [{"type": "item_reference", "id": "x"}]}, "input[0]")


def test_metrics(server):
    server.complete(say("a"))
    _, headers, raw = server.request("GET", "/metrics")
    text = raw.decode()
    assert headers["Content-Type"].startswith("text/plain")
    for name in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "prefix_cache_queries_total",
                 "prefix_cache_hits_total", "prompt_tokens_total", "generation_tokens_total", "num_preemptions_total",
                 "time_to_first_token_seconds_bucket", "inter_token_latency_seconds_count", "step_time_ratio",
                 "e2e_request_latency_seconds_sum", "request_queue_time_seconds_count", "decode_allocations_total",
                 "spec_decode_num_drafts_total", "spec_decode_num_draft_tokens_total", "spec_decode_num_accepted_tokens_total"):
        assert f"\nllmc:{name}{{" in text, name
    assert 'llmc:request_success_total{finished_reason="stop"' in text


def test_metrics_of_steps(real):
    """Steps are compared with the plan's roofline, and decoding allocates nothing."""
    real.complete("a b c", max_tokens=24, ignore_eos=True)
    assert real.metric("llmc:engine_steps_total") >= 24
    assert real.metric("llmc:step_time_ratio") > 0.1
    assert real.metric("llmc:decode_allocations_total") == 0


def test_page_and_document(server):
    _, headers, raw = server.request("GET", "/")
    page = raw.decode()
    assert headers["Content-Type"].startswith("text/html") and "</html>" in page
    assert "http://" not in page and "https://" not in page, "the page needs nothing from elsewhere"
    status, document = server.get("/openapi.json")
    assert status == 200 and document["openapi"].startswith("3.")
    for path in document["paths"]:
        method = "GET" if "get" in document["paths"][path] else "POST"
        status, _, _ = server.request(method, path.replace("{id}", "parrot"), "{}" if method == "POST" else None)
        assert status in (200, 400), (path, status)


def test_page_in_a_browser(server):
    """The page's scripts run: the model's name, an answer and the metrics are in the document."""
    browser = shutil.which("chromium-headless-shell")
    assert browser, "chromium-headless-shell is not installed (.ci/packages.sh)"
    question = urllib.parse.quote(say("spoken by the parrot"))
    dom = subprocess.run([browser, "--no-sandbox", "--disable-gpu", "--virtual-time-budget=8000", "--dump-dom",
                          f"{server.url}/?q={question}"], capture_output=True, text=True, timeout=60).stdout
    assert '<span id="model">parrot</span>' in dom, dom[-3000:]
    assert '<span id="state">ok</span>' in dom
    assert "<span>spoken by the parrot</span>" in dom
    assert "<td>generation_tokens_total</td>" in dom and "<td>time_to_first_token_seconds (mean)</td>" in dom


def test_cors(server):
    """Case V13: a browser's question carries no key; errors and streams have the header, too."""
    asked = {"Origin": "http://page.example", "Access-Control-Request-Method": "POST",
             "Access-Control-Request-Headers": "authorization,content-type"}
    status, headers, _ = server.request("OPTIONS", "/v1/chat/completions", headers=asked)
    assert status == 204 and headers["Access-Control-Allow-Origin"] == "http://page.example"
    assert "Authorization" in headers["Access-Control-Allow-Headers"] and "POST" in headers["Access-Control-Allow-Methods"]
    for path, body in [("/v1/completions", {"prompt": "a", "max_tokens": 1}), ("/v1/completions", {}), ("/none", {}),
                       ("/v1/completions", {"prompt": "a", "max_tokens": 1, "stream": True})]:
        _, headers, _ = server.request("POST", path, body, {"Origin": "http://page.example"})
        assert headers["Access-Control-Allow-Origin"] == "http://page.example"
    _, headers, _ = server.request("GET", "/health", headers={"Origin": "http://evil.example"})
    assert "Access-Control-Allow-Origin" not in headers


def test_request_id(server):
    _, headers, _ = server.request("GET", "/health", headers={"X-Request-Id": "abc-1"})
    assert headers["X-Request-Id"] == "abc-1"
    _, headers, _ = server.request("GET", "/health", headers={"X-Request-Id": "bad id " + "x" * 200})
    assert headers["X-Request-Id"].startswith("req-")


def test_key(plan):
    server = servers.parrot(plan, key="secret")
    assert server.request("GET", "/health")[0] == 200
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "secret"}, {"Authorization": "Bearer "}):
        for method, path in (("GET", "/v1/models"), ("GET", "/metrics"), ("POST", "/v1/completions"), ("GET", "/none")):
            status, _, raw = server.request(method, path, headers=headers)
            assert status == 401 and json.loads(raw)["error"]["code"] == "invalid_api_key"
    for headers in ({"Authorization": "Bearer secret"}, {"X-Api-Key": "secret"}):
        assert server.request("GET", "/v1/models", headers=headers)[0] == 200
    assert server.stop() == 0


def test_not_found(server):
    assert server.request("GET", "/nothing")[0] == 404
    assert server.request("GET", "/v1/completions")[0] == 405
    assert server.request("HEAD", "/health")[::2] == (200, b"")
