"""Servers for the tests: llmrt serve, and the parrot of test/unit/server, whose model says what stands in [[...]]."""
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time

from conftest import BIN, compile_model

PARROT = BIN.parent / "test/unit/llmrt_parrot_server"
TEMPLATE = ("{% for m in messages %}<{{ m.role }}>{{ m.content or '' }}"
            "{% for c in m.tool_calls or [] %}{{ c.function | tojson }}{% endfor %}\n{% endfor %}"
            "{% if tools %}<tool_call> {{ tools | length }}\n{% endif %}"
            "{% if add_generation_prompt %}<assistant>{% endif %}")


def chat_plan(tiny, folder):
    """The tiny llama with a chat template."""
    model = folder / "parrot"
    shutil.copytree(tiny / "llama", model, ignore=shutil.ignore_patterns("*.onnx", "*.gguf", "*.npy"))
    (model / "chat_template.jinja").write_text(TEMPLATE)
    return compile_model(model, folder / "parrot.plan", "--int8")


class Server:
    """A server process on a port that it chose; its log is kept."""

    def __init__(self, *command, env=None):
        self.process = subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        text=True, errors="replace", env={**os.environ, **(env or {})})
        self.log, self.port = [], None
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self._ready.wait(60) or self.port is None:
            self.process.kill()
            raise AssertionError("the server did not start: " + "".join(self.log)[-2000:])

    def _read(self):
        for line in self.process.stderr:
            self.log.append(line)
            found = re.search(r"https?://[^\s\"]*:(\d+)", line)
            if found:
                self.port = int(found[1])
            if " ready " in line or '"ready"' in line:
                self._ready.set()
        self._ready.set()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def request(self, method, path, body=None, headers=None, timeout=60):
        """(status, headers, body) of one request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            if body is not None and not isinstance(body, (bytes, str)):
                body = json.dumps(body)
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()
        finally:
            connection.close()

    def post(self, path, body, **kwargs):
        status, _, answer = self.request("POST", path, body, **kwargs)
        return status, json.loads(answer)

    def get(self, path, **kwargs):
        status, _, answer = self.request("GET", path, **kwargs)
        return status, json.loads(answer)

    def complete(self, prompt, **fields):
        status, answer = self.post("/v1/completions", {"prompt": prompt, "temperature": 0, "max_tokens": 64, **fields})
        assert status == 200, answer
        return answer

    def chat(self, content, **fields):
        messages = content if isinstance(content, list) else [{"role": "user", "content": content}]
        status, answer = self.post("/v1/chat/completions", {"messages": messages, "temperature": 0, **fields})
        assert status == 200, answer
        return answer

    def stream(self, path, body):
        """The data of the events of a stream, parsed; checks the framing."""
        status, headers, raw = self.request("POST", path, {**body, "stream": True})
        assert status == 200, raw
        assert headers["Content-Type"].startswith("text/event-stream")
        events = raw.decode().split("\n\n")
        assert events[-1] == "", "the last event is not complete"
        assert events[-2] == "data: [DONE]"
        for event in events[:-2]:
            assert event.startswith("data: ") and "\n" not in event, event
        return [json.loads(event[6:]) for event in events[:-2]]

    def raw(self, data, wait=10, shut=False):
        """Sends bytes as they are; returns everything that comes until the server closes or `wait` seconds pass."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait) as s:
            s.sendall(data)
            if shut:
                s.shutdown(socket.SHUT_WR)
            received = b""
            try:
                while piece := s.recv(65536):
                    received += piece
            except (TimeoutError, ConnectionError):
                pass
            return received

    def metric(self, name):
        _, _, text = self.request("GET", "/metrics")
        values = [float(line.rsplit(" ", 1)[1]) for line in text.decode().splitlines()
                  if line.startswith(name) and line[len(name)] in "{, "]
        assert values, f"no metric {name}"
        return sum(values)

    def rss(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1]) * 1024

    def idle(self, seconds=10):
        """Waits until nothing runs."""
        end = time.time() + seconds
        while time.time() < end:
            if self.metric("llmc:num_requests_running") + self.metric("llmc:num_requests_waiting") == 0:
                return True
            time.sleep(0.05)
        return False

    def stop(self, timeout=30):
        if self.process.poll() is None:
            self.process.terminate()
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError("the server does not stop: " + "".join(self.log)[-1000:])
        self._reader.join(timeout)
        reports = [line for line in self.log if re.search(r"runtime error: |ERROR: \w+Sanitizer|WARNING: ThreadSanitizer", line)]
        assert not reports, "a sanitizer's reports: " + "".join(self.log[self.log.index(reports[0]):][:60])
        return code


def parrot(plan, **values):
    return Server(PARROT, plan, *[f"{name}={value}" for name, value in values.items()])


def say(text):
    """A prompt that the parrot answers with the text."""
    return f"[[{text}]]"


def refused(server, path, body, param, status=400, **kwargs):
    """The error of a request that is refused for this field; checks its form."""
    got, answer = server.post(path, body, **kwargs)
    assert got == status, answer
    assert set(answer["error"]) == {"message", "type", "param", "code"}
    assert answer["error"]["param"] == param, answer
    assert answer["error"]["message"]
    return answer["error"]
