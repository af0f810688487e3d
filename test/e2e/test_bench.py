"""bench's comparisons: what they print adds up, and wrong input is named. Speeds are never tested."""
import json
import pathlib
import subprocess
import sys

import numpy
import pytest

import draft_pair
from conftest import BIN, llmc


def bench(plan, *flags):
    return json.loads(llmc("bench", plan, *flags, "--json").stdout)


def test_speculation_beside_plain_decoding(tiny_plan, tmp_path):
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"name": "loop", "prompt": "the cat the cat the cat"}\n{"name": "other", "prompt": "b"}\n')
    answer = bench(tiny_plan, "--prompts", prompts, "--speculative-config", '{"method": "ngram"}', "-n", 16, "-r", 1)
    assert [p["name"] for p in answer["prompts"]] == ["loop", "other"]
    ratios = [p["ratio"] for p in answer["prompts"]]
    assert answer["lowest_ratio"] == pytest.approx(min(ratios))
    for p in answer["prompts"]:
        assert p["ratio"] == pytest.approx(p["speculative"] / p["plain"])
    assert "geometric mean" in llmc("bench", tiny_plan, "--prompts", prompts, "--speculative-config", '{"method": "ngram"}',
                                    "-n", 4, "-r", 1).stdout


def test_a_pair_of_models_agrees_as_often_as_asked_for(tiny, tmp_path):
    script = pathlib.Path(__file__).with_name("draft_pair.py")
    result = subprocess.run([sys.executable, script, "--llmc", BIN / "llmc", "--tokenizer", tiny / "llama", "--directory", tmp_path,
                             "--tiny", "--acceptance", "1", "--not-adaptive", "--threads", "1", "--tokens", "24",
                             "--repetitions", "1", "--json"], check=True, capture_output=True, text=True)
    prompts = json.loads(result.stdout)["prompts"]
    assert len(prompts) == 10 and all(p["tokens"] == 24 for p in prompts)
    assert all(0 < p["draft_tokens"] == p["accepted_tokens"] for p in prompts)
    large, small = draft_pair.successors(40000, 0.3, numpy.random.default_rng(1))
    assert (large[300:] == small[300:]).mean() == pytest.approx(0.3, abs=0.01) and large.min() == 300


def test_continuous_beside_static_batches(tiny_plan):
    answer = bench(tiny_plan, "--continuous-batching", 4, "-n", 64, "-r", 1)
    static, continuous = answer["static"], answer["continuous"]
    assert answer["ratio"] == pytest.approx(continuous["tokens_per_s"] / static["tokens_per_s"])
    assert answer["mix"]["requests"] == 4 * answer["mix"]["long_requests"] == 48 and answer["mix"]["long_tokens"] == 64
    # A static batch takes as many steps as its longest answer has tokens, at least; its prompts share a step.
    assert static["tokens"] == continuous["tokens"] and static["steps"] == 12 * 64
    assert continuous["steps"] >= static["tokens"] / 4
    assert answer["step_ratio"] == pytest.approx(static["steps"] / continuous["steps"]) and answer["step_ratio"] > 1.5
    assert 1 <= static["sequences_per_step"] < continuous["sequences_per_step"] <= 4, "places are filled again at once"
    assert 0 < continuous["kv_occupancy"] <= 1


def test_prefix_cache(tiny_plan):
    answer = bench(tiny_plan, "--prefix-cache", 128)
    assert answer["prefix_tokens"] == 128
    # The ratio is the median of the rounds' own, so it need not be that of the medians.
    assert 0 < answer["ratio"] and 0 < answer["second_ttft_ms"] and 0 < answer["first_ttft_ms"]


@pytest.mark.parametrize("flags,part", [
    (["--continuous-batching", "0"], "not in range"),
    (["--prefix-cache", "100000"], "beyond the model's context"),
    (["--prompts", "missing.jsonl"], "--speculative-config"),
    (["--prompts", "missing.jsonl", "--speculative-config", '{"method": "ngram"}'], "missing.jsonl"),
])
def test_what_is_wrong_is_named(tiny_plan, flags, part):
    result = llmc("bench", tiny_plan, *flags, check=False)
    assert result.returncode in (1, 2)
    assert part in result.stderr and "\n\n" not in result.stderr
