"""Bytes that no client should send: halves of requests, floods of headers, JSON bombs; and clients that go."""
import gzip
import json
import random
import re
import socket
import ssl
import subprocess
import threading
import time

import pytest

import servers


@pytest.fixture(scope="module")
def server(plan):
    server = servers.parrot(plan, tools="hermes", request_timeout=2, body=4 << 20, delay=2)
    yield server
    assert server.request("GET", "/health")[0] == 200
    assert server.stop() == 0


BODY = json.dumps({"messages": [{"role": "user", "content": "[[é]]"}], "max_tokens": 4, "temperature": 0.5, "stop": ["x", "y"],
                   "logit_bias": {"5": 1.5}, "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]},
                  ensure_ascii=False).encode()


def post(body, path="/v1/chat/completions", extra=b"", length=None, close=True):
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body) if length is None else length}\r\n".encode()
    return head + (b"Connection: close\r\n" if close else b"") + extra + b"\r\n" + body


def status(answer):
    found = re.match(rb"HTTP/1\.1 (\d+) ", answer)
    return int(found[1]) if found else None


def error(answer):
    return json.loads(answer.split(b"\r\n\r\n", 1)[1])["error"]


def test_every_truncation_of_a_body(server):
    assert status(server.raw(post(BODY))) == 200
    for cut in range(len(BODY)):
        answer = server.raw(post(BODY[:cut]))
        assert status(answer) == 400, (cut, answer)
        assert error(answer)["type"] == "invalid_request_error"


def test_mutated_bodies(server):
    generator = random.Random(7)
    for _ in range(200):
        body = bytearray(BODY)
        for _ in range(generator.randint(1, 4)):
            body[generator.randrange(len(body))] = generator.randrange(256)
        assert status(server.raw(post(bytes(body)))) in (200, 400, 404), bytes(body)


def test_half_requests_time_out(server):
    whole = post(BODY)
    begin = time.time()
    connections = []
    for cut in (0, 1, 10, whole.index(b"\r\n\r\n") + 2, len(whole) - 1):
        s = socket.create_connection(("127.0.0.1", server.port), timeout=20)
        s.sendall(whole[:cut])
        connections.append((cut, s))
    for cut, s in connections:
        received = b""
        while piece := s.recv(65536):
            received += piece
        s.close()
        assert received == b"" if cut == 0 else status(received) == 408, (cut, received)
    assert time.time() - begin < 15


def test_one_byte_at_a_time_times_out(server):
    begin = time.time()
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as s:
        try:
            for byte in post(BODY):
                s.sendall(bytes([byte]))
                time.sleep(0.1)
        except ConnectionError:
            pass
    assert time.time() - begin < 12


def test_slow_but_whole(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as s:
        data = post(BODY)
        for at in range(0, len(data), 40):
            s.sendall(data[at:at + 40])
            time.sleep(0.02)
        assert status(s.recv(65536)) == 200


def test_keep_alive_and_pipelining(server):
    one = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
    answer = server.raw(one * 20 + b"\r\n" + one + post(BODY))
    assert answer.count(b"HTTP/1.1 200 OK") == 22


def test_header_bombs(server):
    assert status(server.raw(b"GET /health HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 100000)) == 431
    assert status(server.raw(b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 50000)) == 431
    assert status(server.raw(b"GET /" + b"a" * 100000)) == 431


@pytest.mark.parametrize("data", [
    b"nonsense\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01",
    b"GET /health\r\n\r\n", b"GET /health HTTP/1.1\r\nBad Name: x\r\n\r\n", b"POST /tokenize HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    b"POST /tokenize HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n", b"GET /%zz HTTP/1.1\r\n\r\n",
    b"POST /tokenize HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    b"POST /tokenize HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /tokenize HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n"])
def test_no_http(server, data):
    answer = server.raw(data, wait=5)
    assert status(answer) in (400, 408, 413), answer
    assert error(answer)["message"]


def test_chunked_body(server):
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(BODY[i:i + 7]), BODY[i:i + 7]) for i in range(0, len(BODY), 7))
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    assert status(server.raw(head + chunks + b"0\r\n\r\n")) == 200
    begin = time.time()
    assert status(server.raw(head + chunks[:20])) == 408, "case V17: a body that never ends"
    assert time.time() - begin < 12
    endless = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    assert status(server.raw(head + endless * 8)) == 413


def test_compressed_body_is_refused(server):
    """Case V17: at once, whatever it is, before its bytes are read."""
    for encoding in (b"gzip", b"br", b"gzip, gzip"):
        assert status(server.raw(post(b"\x1f\x8b" + b"x" * 100, extra=b"Content-Encoding: " + encoding + b"\r\n"))) == 415
    assert status(server.raw(post(b"", extra=b"Transfer-Encoding: gzip\r\n", length=""))) in (400, 501)
    before, bomb = server.rss(), gzip.compress(bytes(1 << 20)) * 1024
    wrong = bomb[:-8] + bytes(4) + bomb[-4:]  # of its CRC
    begin = time.time()
    for body, length in ((bomb, None), (wrong, None), (b"", 3 << 20)):
        answer = server.raw(post(body, extra=b"Content-Encoding: gzip\r\n", length=length))
        assert status(answer) == 415 and "gzip" in error(answer)["message"]
    assert time.time() - begin < 2 and server.rss() - before < 68 << 20


def test_large_body(server):
    answer = server.raw(post(b"", length=50 << 20))
    assert status(answer) == 413 and error(answer)["code"] == "request_too_large"


def test_expect_continue(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as s:
        head, body = post(BODY, extra=b"Expect: 100-continue\r\n").split(b"\r\n\r\n")
        s.sendall(head + b"\r\n\r\n")
        assert s.recv(100).startswith(b"HTTP/1.1 100 ")
        s.sendall(body)
        assert status(s.recv(65536)) == 200
    answer = server.raw(post(BODY, extra=b"Expect: a-miracle\r\n"))
    assert status(answer) == 417 and "100-continue" in error(answer)["message"]


@pytest.mark.parametrize("body", [
    b"", b"null", b"[]", b"5", b'"x"', b"{", b"{}", b"\xff\xfe{}", b"{\"a\": \"\xff\"}", b'{"a": "\\ud800"}', b"[" * 100000,
    b'{"a":' * 100000, b'{"messages": ' + b"[" * 120 + b"]" * 120 + b"}", b'{"max_tokens": 1e999999}', b'{"max_tokens": ' + b"9" * 100000 + b"}",
    b'{"temperature": -0.0e-999999, "messages": 1}', b'{"messages": [{"role": "user", "content": "\\u0000"}], "stop": 1}',
    b'{"messages":[{"role":"user",' + b",".join(b'"k%d":0' % i for i in range(20000)) + b"}]}"])
def test_malformed_json(server, body):
    answer = server.raw(post(body))
    assert status(answer) == 400, answer
    assert set(error(answer)) == {"message", "type", "param", "code"}


def test_deep_tool_arguments(server):
    deep = "[" * 90 + "]" * 90
    body = json.dumps({"messages": [{"role": "user", "content": "a"}], "max_tokens": 1, "tools": [
        {"type": "function", "function": {"name": "f", "parameters": {"x": json.loads(deep)}}}]}).encode()
    assert status(server.raw(post(body))) in (200, 400)


def test_ten_megabyte_prompt(plan):
    server = servers.Server(servers.BIN / "llmrt", "serve", plan, "--port", "0")
    before = server.rss()
    for content in ("word " * 2_000_000, "a" * 10_000_000):
        got, answer = server.post("/v1/completions", {"prompt": content}, timeout=120)
        assert got == 400 and answer["error"]["code"] == "context_length_exceeded", answer
    assert server.rss() - before < 400 << 20
    assert server.stop() == 0


def test_disconnect_cancels(server):
    body = json.dumps({"prompt": "[[" + "word " * 600 + "]]", "max_tokens": 3000, "stream": True, "temperature": 0}).encode()
    for stream in (True, False):
        request = post(body if stream else body.replace(b"true", b"false"), "/v1/completions")
        connections = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(8)]
        for s in connections:
            s.sendall(request)
        end = time.time() + 10
        while server.metric("llmc:num_requests_running") < 8 and time.time() < end:
            time.sleep(0.01)
        assert server.metric("llmc:num_requests_running") == 8
        for s in connections:
            s.close()
        assert server.idle(3), "requests of clients that have gone still run"
    assert server.metric("llmc:kv_cache_usage_perc") == 0
    assert server.metric('llmc:request_success_total{finished_reason="abort"') >= 16


def test_clients_that_do_not_read(plan):
    """Answers wait for clients that stall; others are served meanwhile."""
    server = servers.parrot(plan)
    body = json.dumps({"prompt": "[[" + "word " * 500 + "]]", "max_tokens": 2500, "stream": True, "logprobs": 5}).encode()
    stalled = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(4)]
    for s in stalled:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.sendall(post(body, "/v1/completions"))
    begin = time.time()
    assert server.complete("[[quick]]")["choices"][0]["text"] == "quick"
    assert time.time() - begin < 10
    for s in stalled:
        s.close()
    assert server.idle()
    assert server.stop() == 0


def test_ping_while_nothing_happens(plan):
    server = servers.parrot(plan, delay=1500, ping=1)
    answer = server.raw(post(json.dumps({"prompt": "[[a b]]", "stream": True, "max_tokens": 2}).encode(), "/v1/completions"), wait=15)
    assert b"\n: ping\n\n" in answer and b"data: [DONE]" in answer
    assert server.stop() == 0


def test_stuck_step_is_not_healthy(plan):
    server = servers.parrot(plan, hang=1, step_timeout=1)
    assert server.request("GET", "/health")[0] == 200
    with socket.create_connection(("127.0.0.1", server.port)) as s:
        s.sendall(post(BODY))
        end = time.time() + 10
        while time.time() < end and server.request("GET", "/health")[0] == 200:
            time.sleep(0.1)
        got, answer = server.get("/health")
        assert got == 503 and answer["status"] == "stuck"
        # It can't drain; a second signal ends it.
        server.process.terminate()
        time.sleep(0.5)
        assert server.process.poll() is None
        server.process.terminate()
        assert server.process.wait(10) == 1


def test_drain(plan):
    server = servers.parrot(plan, delay=20)
    answers = []

    def ask(i):
        answers.append(server.complete(f"[[{'w ' * 30}{i}]]", max_tokens=100)["choices"][0]["text"].endswith(str(i)))
    threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    end = time.time() + 10
    while server.metric("llmc:num_requests_running") < 8 and time.time() < end:
        time.sleep(0.01)
    server.process.terminate()
    states = set()
    while server.process.poll() is None and "draining" not in states:
        try:
            states.add(server.get("/health")[1]["status"])
            got, answer = server.post("/v1/completions", {"prompt": "late"})
            assert got == 503 and answer["error"]["code"] == "draining"
        except (ConnectionError, OSError):
            break
    for t in threads:
        t.join()
    assert answers == [True] * 8
    assert "draining" in states
    assert server.process.wait(20) == 0


def test_drain_closes_what_only_waits(plan):
    """Connections that are kept for later, or have sent half a request, end with the signal; answers go on, and when they
    have ended nothing holds the process, not even a client that keeps its connection in a pool."""
    server = servers.parrot(plan, delay=100)
    connect = lambda: socket.create_connection(("127.0.0.1", server.port), timeout=20)
    fresh, asking, used, head, body, streaming = [connect() for _ in range(6)]
    used.sendall(post(BODY, close=False))
    received = b""
    while not received.endswith(b"}"):
        received += used.recv(65536)
    assert status(received) == 200 and b"keep-alive" in received
    head.sendall(post(BODY)[:20])
    body.sendall(post(BODY)[:-5])
    streaming.sendall(post(json.dumps({"prompt": "[[" + "w " * 20 + "]]", "stream": True, "max_tokens": 64}).encode(),
                           "/v1/completions", close=False))
    begun = streaming.recv(65536)
    assert status(begun) == 200 and b"Connection: keep-alive" in begun
    time.sleep(0.2)
    server.process.terminate()
    begin = time.time()
    assert used.recv(1) == b""
    time.sleep(0.2)
    asking.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")  # on the way when the signal came
    told = b""
    while piece := asking.recv(65536):
        told += piece
    assert b'"draining"' in told
    assert fresh.recv(1) == b""
    for half in (head, body):
        refusal = b""
        while piece := half.recv(65536):
            refusal += piece
        assert status(refusal) == 503 and b'"draining"' in refusal
    late = connect()  # asks nothing
    assert server.process.poll() is None, "the answer is not at its end"
    while not begun.endswith(b"0\r\n\r\n"):
        begun += streaming.recv(65536)
    assert b"data: [DONE]" in begun
    assert time.time() - begin > 0.5, "the test's answer is too short"
    answered = time.time()
    assert server.process.wait(20) == 0  # with `streaming` and `late` open
    assert time.time() - answered < 1
    assert late.recv(1) == b""
    server.stop()


def test_tls(plan, tmp_path):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", tmp_path / "k.pem", "-out",
                    tmp_path / "c.pem", "-days", "2", "-subj", "/CN=localhost"], check=True, capture_output=True)
    server = servers.Server(servers.BIN / "llmrt", "serve", plan, "--port", "0", "--ssl-certfile", tmp_path / "c.pem",
                            "--ssl-keyfile", tmp_path / "k.pem")
    context = ssl.create_default_context(cafile=tmp_path / "c.pem")
    context.check_hostname = False
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as plain, context.wrap_socket(plain) as s:
        s.sendall(post(BODY))
        received = b""
        while piece := s.recv(65536):
            received += piece
            if received.endswith(b"}"):
                break
        assert status(received) == 200
    assert status(server.raw(post(BODY), wait=3)) is None
    assert server.stop() == 0
