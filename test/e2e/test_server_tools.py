"""Answers with a form: tool calls, reasoning, structured output."""
import json

import servers
from servers import refused, say


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
