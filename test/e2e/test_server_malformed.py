"""llmrt serve and what no client should send to it, field by field: every field that the API's document names with
every wrong value, ill-formed UTF-8 at every place of a text, every truncation. With tools built with sanitizers
(LLMC_BIN of a build with LLMC_SANITIZE) a report of theirs fails the test, too."""
import http.client
import json
import random
import socket

import pytest

import servers

# A valid request to each endpoint, with what the checks of others need.
VALID = {
    "/v1/completions": {"prompt": "a é", "max_tokens": 1},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "a é"}], "max_tokens": 1},
    "/v1/responses": {"input": "a é", "max_output_tokens": 1},
    "/v1/messages": {"messages": [{"role": "user", "content": "a é"}], "max_tokens": 1},
    "/tokenize": {"prompt": "a é"},
    "/detokenize": {"tokens": [5, 6]},
    "/apply-template": {"messages": [{"role": "user", "content": "a é"}]},
    "/v1/embeddings": {"input": "a é"},
}
# Enough of each endpoint that a cut, or a byte, falls into every kind of value.
LARGE = {
    "/v1/completions": {"prompt": "a é", "max_tokens": 1, "stop": ["x", "\n"], "logit_bias": {"5": -1.5e1}, "logprobs": 2,
                        "guided_json": {"type": "object", "properties": {"a": {"enum": [1, "é", None, True]}}}},
    "/v1/chat/completions": {"messages": [{"role": "system", "content": [{"type": "text", "text": "é"}]}, {"role": "user", "content": "b"}],
                             "max_tokens": 1, "tool_choice": "auto", "stream_options": {"include_usage": True}, "stream": True,
                             "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]},
    "/v1/responses": {"input": [{"role": "user", "content": [{"type": "input_text", "text": "é"}]}], "max_output_tokens": 1,
                      "text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "string"}}}},
    "/v1/messages": {"system": "é", "messages": [{"role": "user", "content": [{"type": "text", "text": "b"}]}], "max_tokens": 1,
                     "stop_sequences": ["x"], "tools": [{"name": "f", "input_schema": {"type": "object"}}]},
    "/tokenize": {"messages": [{"role": "user", "content": "é"}], "add_special_tokens": False, "return_token_strs": True},
    "/detokenize": {"tokens": [5, 6, 255]},
    "/apply-template": {"messages": [{"role": "user", "content": "é"}], "chat_template_kwargs": {"a": [None]}},
}
DEEP = "[" * 90 + "]" * 90
# As JSON texts: Python writes no number that is too large for a double.
VALUES = ["true", "false", "0", "5", "-1", "1.5", "1e308", "-1e308", "1e999999", "-1e999999", "1e-999999", "9223372036854775807",
          "9223372036854775808", "-9223372036854775809", "18446744073709551616", "4294967296", "2147483648", "9" * 400, '""', '"x"',
          '"\\u0000"', '"\\ud83d\\ude00"', "[]", "[[]]", "[null]", '["", 5, {}]', "{}", '{"a": 1}', '{"": {"": []}}', '{"type": "x"}', DEEP,
          '{"a":' * 90 + "1" + "}" * 90, "[" + "1," * 5000 + "1]", "{" + ",".join(f'"{i}": 0' for i in range(5000)) + "}"]
ILL_FORMED = [b"\x80", b"\xff", b"\xc0\x80", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xf0\x9f\x98"]


@pytest.fixture(scope="module")
def server(plan):
    server = servers.Server(servers.BIN / "llmrt", "serve", plan, "--port", "0", "--tool-call-parser", "hermes")
    yield server
    assert server.complete("a", max_tokens=2)["usage"]["completion_tokens"] == 2, "after all that it still answers"
    assert server.metric("llmc:kv_cache_usage_perc") == 0
    assert server.stop() == 0


class Client:
    """One connection, kept as long as the server keeps it."""

    def __init__(self, server):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

    def post(self, path, body):
        self.connection.request("POST", path, body)
        response = self.connection.getresponse()
        return response.status, response.read()


def check(status, answer, allowed, what):
    """An answer, or an error in OpenAI's shape."""
    assert status in allowed, (what, status, answer[:300])
    if status != 200:
        error = json.loads(answer)["error"]
        assert set(error) == {"message", "type", "param", "code"} and error["message"], what
        return error
    return None


def raw_json(fields):
    """A JSON text of fields that are JSON texts."""
    return ("{" + ", ".join(f"{json.dumps(name)}: {value}" for name, value in fields.items()) + "}").encode()


def names_of(server, path):
    """The fields that the API's document has for an endpoint."""
    document = server.get("/openapi.json")[1]
    schema = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return list(schema.get("properties", {}))


@pytest.mark.parametrize("path", VALID)
def test_every_field_with_every_wrong_value(server, path):
    client = Client(server)
    names = names_of(server, path)
    assert names or path == "/v1/embeddings"
    for name in names:
        fields = {key: json.dumps(value) for key, value in VALID[path].items()}
        refused = 0
        for value in VALUES:
            fields[name] = value
            # Some change nothing, others ask for more answers than the queue takes.
            error = check(*client.post(path, raw_json(fields)), (200, 400, 404), (name, value[:50]))
            if error and error["param"]:
                refused += error["param"].replace("[", ".").split(".")[0] in (name, "messages", "tools")
        assert refused >= 8, f"'{name}' takes what is no value of it"


@pytest.mark.parametrize("path", LARGE)
def test_every_truncation(server, path):
    body = json.dumps(LARGE[path], ensure_ascii=False).encode()
    client = Client(server)
    check(*client.post(path, body), (200,), path)
    for cut in range(len(body)):
        check(*client.post(path, body[:cut]), (400,), (path, cut))


@pytest.mark.parametrize("path", LARGE)
def test_every_ill_formed_byte(server, path):
    """A byte that is no UTF-8 within a text is refused, wherever it is; elsewhere it is no JSON at all."""
    body = json.dumps(LARGE[path], ensure_ascii=False).encode()
    client = Client(server)
    for at in range(len(body)):
        bad = ILL_FORMED[at % len(ILL_FORMED)]
        # Between the bytes of é, two halves could make a whole.
        if body[at:at + 1] >= b"\x80" or body[at - 1:at] >= b"\x80":
            continue
        check(*client.post(path, body[:at] + bad + body[at:]), (400,), (path, at, bad))


@pytest.mark.parametrize("path", LARGE)
def test_mutations(server, path):
    body = json.dumps(LARGE[path], ensure_ascii=False).encode()
    generator = random.Random(path)
    client = Client(server)
    for _ in range(150):
        mutated = bytearray(body)
        for _ in range(generator.randint(1, 5)):
            at, kind = generator.randrange(len(mutated)), generator.randrange(3)
            if kind == 0:
                mutated[at] = generator.choice(b'"\\{}[]:,0-e\x00\x7f\xff')
            elif kind == 1:
                del mutated[at:at + generator.randint(1, 9)]
            else:
                mutated[at:at] = body[at:at + generator.randint(1, 40)]
            if not mutated:
                break
        check(*client.post(path, bytes(mutated)), (200, 400, 404), bytes(mutated))


def test_every_truncation_of_a_request(server):
    """The bytes of a whole request, cut anywhere: whoever has closed gets nothing, and leaves nothing behind."""
    body = json.dumps(VALID["/v1/completions"]).encode()
    request = b"POST /v1/completions?a=b HTTP/1.1\r\nHost: x\r\nX-Request-Id: y\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    for cut in range(len(request)):
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(request[:cut])
    assert server.idle()


def test_any_bytes_in_the_head(server):
    generator = random.Random(3)
    for _ in range(300):
        noise = bytes(generator.randrange(256) for _ in range(generator.randint(1, 30)))
        head = generator.choice([b"GET /" + noise + b" HTTP/1.1\r\nHost: x", b"GET /health HTTP/1.1\r\nHost: x\r\nX-Request-Id: " + noise,
                                 b"GET /health HTTP/1.1\r\n" + noise + b": x", noise + b" /health HTTP/1.1", noise])
        answer = server.raw(head + b"\r\nConnection: close\r\n\r\n", wait=5, shut=True)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 "), (head, answer)


@pytest.mark.parametrize("path, field", [("/v1/chat/completions", "messages"), ("/v1/messages", "messages"), ("/v1/responses", "input"),
                                         ("/tokenize", "prompt"), ("/apply-template", "messages")])
def test_ten_megabytes(server, path, field):
    """Ten megabytes of text are refused where no context holds them, and never kept."""
    text = "word " * 2_000_000
    value = [{"role": "user", "content": text}] if field == "messages" else text
    status, answer = Client(server).post(path, json.dumps({**VALID[path], field: value}))
    error = check(status, answer, (200, 400), path)
    if path.startswith("/v1/"):
        assert error["param"] == field and error["code"] == "context_length_exceeded"


def test_schemas_that_explode(server):
    """A grammar that is too large, too deep or refers to itself is an error, in a time that a client can wait."""
    deep = {"type": "string"}
    for _ in range(80):
        deep = {"type": "array", "items": deep}
    loop = {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}
    for schema in (deep, loop, {"$ref": "#"}, {"enum": list(range(20000))}, {"type": "string", "minLength": 2**40},
                   {"type": "array", "minItems": 2**31}, {"pattern": "(a{1,1000}){1,1000}", "type": "string"},
                   {"type": "integer", "minimum": -2**70, "maximum": 2**70}, {"properties": {str(i): {} for i in range(3000)}},
                   {"anyOf": [{"const": "x" * i} for i in range(300)]}, {"allOf": [{}] * 500}, {"type": ["nothing"]}, {"enum": []}):
        for body in ({"guided_json": schema}, {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}):
            status, answer = Client(server).post("/v1/completions", json.dumps({**VALID["/v1/completions"], **body}))
            check(status, answer, (200, 400), schema)
    for field, values in {"guided_regex": ["(" * 5000, "(a*)*b" * 50, "a{99999999}", "[", "\\", "(?=a)", "[z-a]", "((a{50}){50}){50}"],
                          "grammar": ["root ::= root", "root ::= " + "(" * 3000, "root ::= a", "::=", 'root ::= "a"{99999999}', "root ::= [^]",
                                      'root ::= root root | "a"']}.items():
        for value in values:
            status, answer = Client(server).post("/v1/completions", json.dumps({**VALID["/v1/completions"], field: value}))
            check(status, answer, (200, 400), value[:60])
