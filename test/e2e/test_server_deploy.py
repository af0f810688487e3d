"""What README.md and examples/deploy show works: curl, the configuration, the dashboard's metrics; the load generator."""
import json
import re
import subprocess

import pytest

import servers
from conftest import ROOT, tool


@pytest.fixture(scope="module")
def server(plan):
    server = servers.Server(servers.BIN / "llmrt", "serve", plan, "--config", ROOT / "examples/deploy/serve.yaml",
                            "--host", "127.0.0.1", "--port", "0")
    yield server
    assert server.stop() == 0


def test_configuration(server):
    assert json.loads(server.log[0])["event"] == "listening"  # log-json: true
    assert server.get("/plan")[1]["engine"]["max_num_seqs"] == 32


def test_curl_of_the_readme(server):
    command = re.search(r"^    (curl (?:[^\n]*\\\n)*[^\n]*)", (ROOT / "README.md").read_text(), re.M)[1]
    assert "/v1/chat/completions" in command
    command = command.replace("\\\n", " ").replace("127.0.0.1:8000", f"127.0.0.1:{server.port}")
    answer = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60).stdout
    assert answer.startswith("data: {") and answer.rstrip().endswith("data: [DONE]"), answer


def test_dashboard(server):
    server.complete("a", max_tokens=2)
    _, _, raw = server.request("GET", "/metrics")
    shown = set(re.findall(r"^llmc:(\w+)", raw.decode(), re.M))
    dashboard = (ROOT / "examples/deploy/grafana.json").read_text()
    json.loads(dashboard)
    named = set(re.findall(r"llmc:(\w+)", dashboard))
    assert len(named) > 15 and named <= shown, named - shown


def test_load_generator(server):
    result = tool("llmrt", "bench", "--serve", server.url, "--num-prompts", "12", "--concurrency", "1,4", "--request-rate", "40",
                  "--input-len", "4:8", "--output-len", "5", "--json")
    tests = json.loads(result.stdout)["tests"]
    assert [t["test"] for t in tests] == ["1 client", "4 clients", "40.0 req/s"]
    for test in tests:
        assert test["requests"] == 12 and test["failed"] == 0
        assert test["output_tokens"] == 60 and test["prompt_tokens"] > 12 * 4
        assert 0 < test["ttft_ms"]["p50"] <= test["e2e_ms"]["p50"] <= test["e2e_ms"]["p99"]
    table = tool("llmrt", "bench", "--serve", server.url + "/v1", "--num-prompts", "2", "--concurrency", "2", "--input-len", "4",
                 "--output-len", "2")
    assert "TTFT" in table.stdout and "2 clients" in table.stdout


def test_load_generator_times(plan):
    """Events are timed when they come: a step of the parrot takes 30 ms."""
    server = servers.parrot(plan, delay=30)
    result = tool("llmrt", "bench", "--serve", server.url, "--num-prompts", "2", "--concurrency", "1", "--input-len", "2",
                  "--output-len", "8", "--json")
    test = json.loads(result.stdout)["tests"][0]
    assert 28 <= test["inter_token_ms"]["p50"] < test["e2e_ms"]["p50"]
    assert test["ttft_ms"]["p50"] + 6 * 30 <= test["e2e_ms"]["p50"]
    assert server.stop() == 0


def test_load_generator_failures(server):
    for arguments, code, words in ((["--serve", "nonsense"], 2, "URL"), (["--serve", server.url, "--output-len", "9:1"], 2, "--output-len"),
                                   (["--serve", "http://127.0.0.1:1", "--num-prompts", "1"], 1, "refused"), ([], 2, "--serve")):
        result = tool("llmrt", "bench", *arguments, check=False)
        assert result.returncode == code and words in result.stderr, result.stderr
