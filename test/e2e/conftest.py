"""What the end-to-end tests share: the tools as a user has them, and the test models."""
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("LLMC_BIN", ROOT / "build/bin"))
DATA = pathlib.Path(os.environ.get("LLMC_TEST_DATA", ROOT / "build/test-data"))
STORED = ROOT / "test/data"


def tool(name, *arguments, check=True, env=None, timeout=120, **kwargs):
    """Runs a tool of the build; with check, a failure shows its message."""
    command = [str(BIN / name), *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=timeout,
                            env={**os.environ, **(env or {})}, **kwargs)
    if check:
        assert result.returncode == 0, f"{' '.join(command)}: exit {result.returncode}: {result.stderr[-500:]}"
    return result


def llmc(*arguments, **kwargs):
    return tool("llmc", *arguments, **kwargs)


def compile_model(model, plan, *flags, **kwargs):
    llmc("compile", model, "-q", "-o", plan, *flags, **kwargs)
    return plan


def generate(plan, prompt, count, *flags, env=None):
    """Greedy ids after a prompt of ids."""
    result = llmc("run", plan, "--prompt-ids", ",".join(map(str, prompt)), "-n", count, "--temperature", 0,
                  "--ignore-eos", "--json", *flags, env=env)
    return json.loads(result.stdout)["ids"]


def golden_runs(folder, onnx=False):
    golden = json.loads((folder / "golden.json").read_text())
    runs = golden["runs"]
    if onnx and golden.get("onnx_runs"):
        runs = [runs[r] if isinstance(r, int) else r for r in golden["onnx_runs"]]
    return runs


@pytest.fixture(scope="session")
def tiny():
    folder = DATA / "tiny"
    assert folder.is_dir(), f"{folder}: the tiny models are not unpacked (build the target llmc_test_data)"
    return folder


@pytest.fixture(scope="session")
def plan(tiny, tmp_path_factory):
    """Of servers: the tiny llama with a chat template."""
    import servers
    return servers.chat_plan(tiny, tmp_path_factory.mktemp("server"))


@pytest.fixture(scope="module")
def server(plan):
    """The parrot."""
    import servers
    server = servers.parrot(plan, tools="hermes", context=2048)
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="module")
def real(plan):
    """The compiled model behind the real engine."""
    import servers
    server = servers.Server(servers.BIN / "llmrt", "serve", plan, "--port", "0", "--served-model-name", "tiny", "--max-num-seqs", "8")
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="session")
def tiny_plan(tiny, tmp_path_factory):
    """The tiny llama with int8 weights: small, and with everything that a quantized plan has."""
    return compile_model(tiny / "llama", tmp_path_factory.mktemp("plan") / "tiny.plan", "--int8")
