"""The tools' own promises: help, inspect, dumps that parse."""
import json
import math
import os
import shutil
import time

import pytest

from conftest import compile_model, golden_runs, llmc, tool

COMMANDS = ["compile", "run", "bench", "eval", "explain", "inspect", "verify"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command):
    text = llmc(command, "--help").stdout
    assert "llmc " + command in text or command in text
    assert "Options" in text or "OPTIONS" in text


def test_version():
    assert llmc("--version").stdout.strip() == tool("llmrt", "--version").stdout.strip()


def test_inspect(tiny, tiny_plan):
    facts = json.loads(llmc("inspect", tiny_plan, "--json").stdout)
    for key in ("model", "weights", "kv_bytes_per_token", "arena", "kernels", "predicted"):
        assert key in facts
    # 2 layers of 2 heads with keys and values of 16 f16 values
    assert facts["kv_bytes_per_token"] == 2 * 2 * (16 + 16) * 2
    with open(tiny / "llama/model.safetensors", "rb") as f:
        header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
    assert facts["model"]["parameters"] == sum(math.prod(t["shape"]) for t in header.values() if "shape" in t)
    scratch = max(kernel["scratch_bytes"] for kernel in facts["kernels"])
    assert scratch <= facts["arena"]["scratch_bytes_per_thread"] < scratch + 4096
    partials = [json.loads(llmc("inspect", tiny_plan, "--json", "-t", threads).stdout)["arena"]["partials_bytes_at_limits"]
                for threads in (1, 2)]
    assert partials[0] == 0 < partials[1], "one thread has nobody to share with"
    text = llmc("inspect", tiny_plan, "-t", 2).stdout
    assert "llama" in text and f"= {facts['arena']['scratch_bytes_per_thread']} a thread" in text


def test_verify(tiny_plan):
    llmc("verify", tiny_plan)
    tool("llmrt", "verify", tiny_plan)


def test_verify_runs_the_self_test(tiny_plan, tmp_path):
    assert "self-test: 24 prompt tokens, 8 new tokens: ok" in llmc("verify", "--self-test", tiny_plan).stdout
    assert "self-test" not in llmc("verify", tiny_plan).stdout


@pytest.mark.parametrize("model", ["", "f32.gguf", "model.onnx"])
def test_dumps_parse_and_continue(tiny, tmp_path, model):
    source = tiny / "llama" / model if model else tiny / "llama"
    dumps = tmp_path / "ir"
    compile_model(source, tmp_path / "m.plan", "--int4", "--dump-ir", dumps)
    files = sorted(dumps.rglob("*.mlir"))
    assert len(files) >= 8
    for file in files:
        once = tool("llmc-opt", file).stdout
        again = tmp_path / "again.mlir"
        again.write_text(once)
        assert tool("llmc-opt", again).stdout == once
        # bytecode holds the same
        tool("llmc-opt", file, "--emit-bytecode", "-o", tmp_path / "b.mlirbc")
        assert tool("llmc-opt", tmp_path / "b.mlirbc").stdout == once


def test_text_in_text_out(tiny_plan):
    first = llmc("run", tiny_plan, "-p", "hello", "-n", "8", "--temperature", "0").stdout
    assert first and first == llmc("run", tiny_plan, "-p", "hello", "-n", "8", "--temperature", "0").stdout


def test_llmrt_runs_what_llmc_compiled(tiny, tiny_plan):
    prompt = ",".join(map(str, golden_runs(tiny / "llama")[0]["prompt_ids"]))
    arguments = ("run", tiny_plan, "--prompt-ids", prompt, "-n", "8", "--temperature", "0", "--json")
    assert json.loads(tool("llmrt", *arguments).stdout)["ids"] == json.loads(llmc(*arguments).stdout)["ids"]


def with_external_weights(folder):
    import onnx

    model = onnx.load(folder / "model.onnx")
    onnx.save_model(model, folder / "model.onnx", save_as_external_data=True, location="model.onnx.data", size_threshold=64)


@pytest.mark.parametrize("name, change, external", [
    (".", "model.safetensors", False), (".", "tokenizer.json", False), ("f32.gguf", "f32.gguf", False),
    ("model.onnx", "model.onnx", False), ("model.onnx", "model.onnx", True), ("model.onnx", "model.onnx.data", True)])
def test_a_model_is_compiled_once(tiny, tmp_path, name, change, external):
    """`llmc run MODEL` compiles what it has not seen, whichever file of it changed."""
    folder = tmp_path / "model"
    shutil.copytree(tiny / "llama", folder)
    if external:
        with_external_weights(folder)
    time.sleep(0.05)  # a file must be older than the compilation to be remembered
    environment = {"LLMC_CACHE_DIR": str(tmp_path / "cache")}

    def run():
        result = llmc("run", folder / name, "--prompt-ids", "1,2,3", "-n", 2, "--ignore-eos", env=environment)
        return "kernels" in result.stderr  # the progress of a compilation

    assert run()
    assert not run()
    os.utime(folder / change)
    assert not run(), "the same bytes are the same model"
    time.sleep(0.05)
    bytes_before = (folder / change).read_bytes()
    if change == "model.onnx":  # an empty doc_string
        (folder / change).write_bytes(bytes_before + b"\x32\x00")
    elif change == "tokenizer.json":
        (folder / change).write_bytes(bytes_before + b"\n")
    else:  # a weight
        (folder / change).write_bytes(bytes_before[:-4] + bytes(4))
    assert run()
    assert not run()
