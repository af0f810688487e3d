"""What quantization costs, as eval measures it, against the same arithmetic in NumPy; and explain."""
import json

import numpy as np
import pytest

from conftest import STORED, compile_model, llmc, tool

TEXT = STORED / "eval/text.txt"


@pytest.fixture(scope="module")
def f32_plan(tiny, tmp_path_factory):
    return compile_model(tiny / "llama", tmp_path_factory.mktemp("eval") / "f32.plan", "--activations", "f32",
                         "--kv-cache-dtype", "f32")


def evaluate(plan, *flags):
    return json.loads(llmc("eval", plan, "--json", "-t", "1", *flags).stdout)


def logits(plan, ids, path):
    llmc("run", plan, "--prompt-ids", ",".join(map(str, ids)), "-n", "1", "--json", "--logits-out", path)
    return np.load(path).astype(np.float64)


def log_softmax(rows):
    rows = rows - rows.max(axis=1, keepdims=True)
    return rows - np.log(np.exp(rows).sum(axis=1, keepdims=True))


def test_the_numbers_are_those_of_the_logits(f32_plan, tiny_plan, tmp_path):
    ids = [(i * 37 + i * i) % 200 for i in range(60)]
    tokens = tmp_path / "ids.npy"
    np.save(tokens, np.array(ids))
    got = evaluate(tiny_plan, "--tokens-file", tokens, "--reference", f32_plan, "--chunk", "16")
    q = log_softmax(logits(tiny_plan, ids, tmp_path / "q.npy"))[:-1]
    p = log_softmax(logits(f32_plan, ids, tmp_path / "p.npy"))[:-1]
    kl = (np.exp(p) * (p - q)).sum(axis=1)
    loss = -q[np.arange(len(ids) - 1), ids[1:]]
    assert got["scored"] == len(ids) - 1
    assert got["loss"] == pytest.approx(loss.mean(), rel=1e-6)
    assert got["perplexity"] == pytest.approx(np.exp(loss.mean()), rel=1e-6)
    assert got["kl"]["mean"] == pytest.approx(kl.mean(), rel=1e-4)
    assert got["kl"]["median"] == pytest.approx(np.median(kl), rel=1e-4)
    assert got["kl"]["p99"] == pytest.approx(np.quantile(kl, 0.99), rel=1e-4)
    assert got["kl"]["max"] == pytest.approx(kl.max(), rel=1e-4)
    assert got["same_top"] == pytest.approx((q.argmax(axis=1) == p.argmax(axis=1)).mean())


def test_fewer_bits_cost_more(tiny, f32_plan, tiny_plan, tmp_path):
    int4 = compile_model(tiny / "llama", tmp_path / "int4.plan", "--int4", "--head", "int8")
    head4 = compile_model(tiny / "llama", tmp_path / "head4.plan", "--int4")
    named = compile_model(tiny / "llama", tmp_path / "named.plan", "--int4", "--head", "int4")
    assert named.read_bytes() == head4.read_bytes()
    text = ("--text", TEXT, "--max-tokens", "300", "--context", "100", "--reference", f32_plan)
    assert head4.stat().st_size < int4.stat().st_size
    same, int8, int4, head4 = (evaluate(plan, *text) for plan in (f32_plan, tiny_plan, int4, head4))
    assert same["kl"]["max"] == 0 and same["same_top"] == 1
    assert same["perplexity"] == same["reference_perplexity"] == int8["reference_perplexity"]
    assert 0 < int8["kl"]["mean"] < int4["kl"]["mean"] < head4["kl"]["mean"]
    assert int8["windows"] == 3 and int8["scored"] == 297


def test_the_text_for_people_and_both_tools(tiny_plan):
    arguments = ("eval", tiny_plan, "--text", TEXT, "--max-tokens", "64")
    table = llmc(*arguments).stdout
    assert "perplexity" in table and "KL" not in table
    assert tool("llmrt", *arguments).stdout == table
    assert llmc("eval", tiny_plan, check=False).returncode == 2


def test_explain(tiny_plan):
    facts = json.loads(llmc("explain", tiny_plan, "--context", "20", "--tokens", "32", "--json").stdout)
    for step, tokens in (("decode", 1), ("prefill", 32)):
        assert facts[step]["tokens"] == tokens
        kernels = facts[step]["kernels"]
        for key in ("used", "bytes", "int_operations", "predicted_s", "measured_s"):
            assert facts[step]["total"][key] == pytest.approx(sum(k[key] for k in kernels), rel=1e-6)
        gemms = [k for k in kernels if k["kind"] == "gemm"]
        assert gemms and all(k["shape"].count(" x ") == 1 and k["format"].startswith("i8") for k in gemms)
    assert "tokens/s" in llmc("explain", tiny_plan, "--context", "20").stdout
