"""CUDA plans end to end on a machine without a GPU: clang builds the emitted kernels for the emulator (the stand-in for
NVRTC), the runtime's CUDA backend runs them (the stand-in for the driver). See test/emulator/README.md."""
import json
import os
import pathlib
import re

import pytest

from conftest import golden_runs, tool

STANDINS = os.environ.get("LLMC_STANDINS", "")
pytestmark = pytest.mark.skipif(not STANDINS, reason="this build has no emulator (x86-64 without sanitizers has one)")
LARGE = pytest.mark.skipif(not os.environ.get("LLMC_LARGE"), reason="minutes long: set LLMC_LARGE=1")

# On every family f32 is exact enough for Hugging Face's own tokens.
F32 = ("--kv-cache-dtype", "f32", "--activations", "f32")


def compile_cuda(model, plan, *flags, mode="fast"):
    tool("llmc", "compile", model, "-q", "-o", plan, "--target", "cuda:sm_80", *flags, timeout=600,
         env={"LLMC_NVRTC": str(pathlib.Path(STANDINS, "libnvrtc.so")), "SIMT_MODE": mode,
              "LLMC_CACHE_DIR": str(plan) + ".cache"})
    return plan


def run(plan, prompt, count, *flags, env=None, check=True, temperature=0, timeout=600):
    """llmrt on the stand-in."""
    path = ":".join(filter(None, (STANDINS, os.environ.get("LD_LIBRARY_PATH"))))
    return tool("llmrt", "run", plan, "--prompt-ids", ",".join(map(str, prompt)), "-n", count, "--temperature", temperature,
                "--ignore-eos", "--json", *flags, timeout=timeout, check=check, env={"LD_LIBRARY_PATH": path, **(env or {})})


def ids(*args, **kwargs):
    return json.loads(run(*args, **kwargs).stdout)["ids"]


@pytest.fixture(scope="module")
def checked_plan(tiny, tmp_path_factory):
    return compile_cuda(tiny / "llama", tmp_path_factory.mktemp("cuda") / "checked.plan", mode="checked")


def test_checked_run_has_no_report_in_any_order(tiny, checked_plan, tmp_path):
    golden = golden_runs(tiny / "llama")[0]
    results = []
    # A chunk of the prompt at a time, in several orders of threads: the same bits, and no report.
    for i, (order, chunk) in enumerate((("forward", 512), ("reverse", 5), ("random:3", 1))):
        out = tmp_path / f"{i}.npy"
        result = run(checked_plan, golden["prompt_ids"], 4, "--max-num-batched-tokens", chunk, "--logits-out", out,
                     env={"SIMT_ORDER": order})
        assert "emulated device" not in result.stderr
        results.append((json.loads(result.stdout)["ids"], out.read_bytes()))
    assert results[0] == results[1] == results[2]
    assert results[0][0] == golden["greedy_ids"][:4]


def test_draws_of_the_device_are_those_of_the_host(tiny, checked_plan):
    prompt = golden_runs(tiny / "llama")[0]["prompt_ids"]
    for flags in ((), ("--top-p", 0.7), ("--top-k", 9, "--top-p", 0.9), ("--min-p", 0.2), ("--top-k", 20)):
        def drawn(*more, seed=3):
            return ids(checked_plan, prompt, 5, "--seed", seed, *flags, *more, temperature=1.5)
        # Log-probabilities need the logits: such a request's tokens are drawn on the host.
        assert drawn() == drawn("--logprobs", 1), flags
    assert drawn(seed=4) != drawn(seed=5)


def test_guesses_change_no_token(tiny, checked_plan):
    prompt = golden_runs(tiny / "llama")[0]["prompt_ids"] * 2
    guess = ("--speculative-config", '{"method": "ngram", "num_speculative_tokens": 3, "adaptive": false}')
    for temperature in (0, 1.5):
        assert ids(checked_plan, prompt, 5, *guess, temperature=temperature) == \
            ids(checked_plan, prompt, 5, temperature=temperature)
    result = run(checked_plan, prompt, 2, "--speculative-config", json.dumps({"model": str(checked_plan)}), check=False)
    assert result.returncode == 1 and "a draft model is not supported on cuda" in result.stderr, result.stderr


@LARGE
@pytest.mark.parametrize("family", ["llama", "qwen2", "gemma2", "gpt2", "mistral", "deepseek-v2"])
def test_tokens_are_those_of_hugging_face(tiny, tmp_path, family):
    plan = compile_cuda(tiny / family, tmp_path / "m.plan", *F32)
    for golden in golden_runs(tiny / family):
        assert ids(plan, golden["prompt_ids"], len(golden["greedy_ids"])) == golden["greedy_ids"]


def test_no_driver(checked_plan):
    result = tool("llmrt", "run", checked_plan, "--prompt-ids", "1", "-n", 1, check=False)
    if result.returncode == 0:
        pytest.skip("this machine has a GPU, or its driver refused the plan otherwise")
    assert result.returncode == 1
    assert re.search("no CUDA device can be used|does not take the code", result.stderr), result.stderr


def test_no_visible_device(checked_plan):
    result = run(checked_plan, [1], 1, check=False, env={"CUDA_VISIBLE_DEVICES": "-1"})
    assert result.returncode == 1
    assert "shows none (CUDA_VISIBLE_DEVICES is '-1')" in result.stderr


def test_choice_of_device(checked_plan):
    env = {"SIMT_DEVICES": "7.5:512,8.6:512"}
    assert "cuda:1" not in run(checked_plan, [1, 2], 2, "--device", "cuda:1", env=env).stderr
    result = run(checked_plan, [1, 2], 2, check=False, env=env)
    assert result.returncode == 1 and "this device is sm_75" in result.stderr
    # The second one alone is the first that is seen.
    chosen = json.loads(run(checked_plan, [1, 2], 2, env={**env, "CUDA_VISIBLE_DEVICES": "1"}).stdout)
    assert "sm_86" in chosen["timings"]["device"]


def test_too_little_memory(checked_plan):
    result = run(checked_plan, [1, 2], 2, check=False, env={"SIMT_DEVICES": "8.0:64"})
    assert result.returncode == 1
    assert re.search(r"has 64 MiB of free memory; the model needs \d+ MiB \(", result.stderr), result.stderr
