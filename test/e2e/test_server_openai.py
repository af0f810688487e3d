"""The official openai package, unmodified."""
import json

import openai
import pytest

import servers


@pytest.fixture(scope="module")
def server(plan):
    server = servers.parrot(plan, tools="hermes", key="secret")
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="module")
def client(server):
    return openai.OpenAI(base_url=server.url + "/v1", api_key="secret", max_retries=0, timeout=60)


def user(text):
    return [{"role": "user", "content": text}]


TOOLS = [{"type": "function", "function": {"name": "f", "description": "x", "parameters": {
    "type": "object", "properties": {"a": {"type": "integer"}}}}}]
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'


def test_models(client):
    assert [m.id for m in client.models.list()] == ["parrot", "other/name"]
    assert client.models.retrieve("parrot").id == "parrot"


def test_chat(client):
    answer = client.chat.completions.create(model="parrot", messages=user("[[hello]]"), temperature=0)
    assert answer.choices[0].message.content == "hello" and answer.choices[0].finish_reason == "stop"
    assert answer.usage.prompt_tokens_details.cached_tokens >= 0


def test_chat_stream(client):
    text, usage = "", None
    for chunk in client.chat.completions.create(model="parrot", messages=user("[[one two three]]"), stream=True,
                                                stream_options={"include_usage": True}, temperature=0):
        usage = chunk.usage or usage
        if chunk.choices:
            text += chunk.choices[0].delta.content or ""
    assert text == "one two three" and usage.total_tokens > 0


def test_completions(client):
    answer = client.completions.create(model="parrot", prompt=["[[a]]", "[[b]]"], temperature=0, max_tokens=9)
    assert [c.text for c in answer.choices] == ["a", "b"]
    chunks = client.completions.create(model="parrot", prompt="[[abc]]", stream=True, temperature=0, max_tokens=9)
    assert "".join(c.choices[0].text for c in chunks) == "abc"


def test_logprobs(client):
    answer = client.chat.completions.create(model="parrot", messages=user("[[hi]]"), logprobs=True, top_logprobs=2, temperature=0)
    content = answer.choices[0].logprobs.content
    assert len(content[0].top_logprobs) == 2 and content[0].logprob <= 0


def test_tools(client):
    answer = client.chat.completions.create(model="parrot", messages=user(f"[[{CALL}]]"), tools=TOOLS, temperature=0)
    call = answer.choices[0].message.tool_calls[0]
    assert call.function.name == "f" and json.loads(call.function.arguments) == {"a": 1}
    assert answer.choices[0].finish_reason == "tool_calls"
    history = user("x") + [answer.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "[[done]]"}]
    answer = client.chat.completions.create(model="parrot", messages=history, tools=TOOLS, temperature=0)
    assert answer.choices[0].message.content == "done"


def test_tools_stream(client):
    with client.chat.completions.stream(model="parrot", messages=user(f"[[{CALL}]]"), tools=TOOLS, temperature=0) as stream:
        answer = stream.get_final_completion()
    assert json.loads(answer.choices[0].message.tool_calls[0].function.arguments) == {"a": 1}


def test_responses(client):
    answer = client.responses.create(model="parrot", input="[[hello]]", temperature=0)
    assert answer.output_text == "hello" and answer.status == "completed"
    events = list(client.responses.create(model="parrot", input="[[one two]]", temperature=0, stream=True))
    assert events[0].type == "response.created" and events[-1].type == "response.completed"
    assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == "one two"
    assert events[-1].response.output_text == "one two"
    assert [e.sequence_number for e in events] == list(range(len(events)))
    tools = [{"type": "function", "name": "f", "parameters": {"type": "object"}}]
    answer = client.responses.create(model="parrot", input=f"[[{CALL}]]", tools=tools, temperature=0)
    assert answer.output[0].type == "function_call" and json.loads(answer.output[0].arguments) == {"a": 1}


def test_errors(client, server):
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="parrot", messages=user("a"), temperature=-1)
    assert caught.value.param == "temperature"
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="none", messages=user("a"))
    with pytest.raises(openai.BadRequestError, match="context"):
        client.completions.create(model="parrot", prompt=[5] * 5000)
    with pytest.raises(openai.BadRequestError, match="embeddings"):
        client.embeddings.create(model="parrot", input="a")
    with pytest.raises(openai.AuthenticationError):
        openai.OpenAI(base_url=server.url + "/v1", api_key="no").models.list()


def test_stop_reading(client, server):
    stream = client.chat.completions.create(model="parrot", messages=user("[[" + "w " * 300 + "]]"), stream=True, temperature=0)
    next(iter(stream))
    stream.close()
