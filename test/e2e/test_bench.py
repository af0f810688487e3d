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
    answer = json.loads(result.stdout)
    prompts = answer["prompts"]
    assert len(prompts) == 10 and all(p["tokens"] == 24 for p in prompts)
    assert all(0 < p["draft_tokens"] == p["accepted_tokens"] for p in prompts)
    costs = {c["tokens"]: c["seconds"] for c in answer["step_costs"]}
    # 23 tokens after the first, by windows of 8 guesses: 9, 9 and the 5 that are left. Those of one token are the plain engine's.
    assert list(costs) == [1, 5, 9] and 0 < costs[1]
    for p in prompts:
        assert p["tokens_per_step"] == pytest.approx(23 / 3)
        assert p["ratio_by_steps"] == pytest.approx(23 * costs[1] / (2 * costs[9] + costs[5]))
    assert answer["lowest_ratio_by_steps"] == min(p["ratio_by_steps"] for p in prompts)
    assert answer["ratio_bound"] >= 9 * costs[1] / costs[9] * 0.9999
    large, small = draft_pair.successors(40000, 0.3, numpy.random.default_rng(1))
    assert (large[300:] == small[300:]).mean() == pytest.approx(0.3, abs=0.01) and large.min() == 300


def test_continuous_beside_static_batches(tiny_plan):
    answer = bench(tiny_plan, "--continuous-batching", 4, "-n", 64, "-r", 1)
    static, dropping, continuous = answer["static"], answer["static_dropping"], answer["continuous"]
    assert answer["ratio"] == pytest.approx(continuous["tokens_per_s"] / static["tokens_per_s"])
    assert answer["ratio_dropping"] == pytest.approx(continuous["tokens_per_s"] / dropping["tokens_per_s"])
    assert answer["mix"]["requests"] == 4 * answer["mix"]["long_requests"] == 48 and answer["mix"]["long_tokens"] == 64
    # A static batch takes as many steps as its longest answer has tokens, at least; its prompts share a step.
    assert static["tokens"] == dropping["tokens"] == continuous["tokens"], "padding is no answer"
    assert static["steps"] == dropping["steps"] == 12 * 64
    assert continuous["steps"] >= static["tokens"] / 4
    assert answer["step_ratio"] == pytest.approx(static["steps"] / continuous["steps"]) and answer["step_ratio"] > 1.5
    assert static["rows_per_step"] == 4, "finished rows are computed until the batch ends"
    # Three short answers of 8 to 24 tokens beside one of 64.
    assert 3 * 40 / 64 <= static["finished_rows_per_step"] <= 3 * 57 / 64
    assert dropping["finished_rows_per_step"] == continuous["finished_rows_per_step"] == 0
    assert dropping["rows_per_step"] == pytest.approx(4 - static["finished_rows_per_step"], abs=0.1)
    assert 1 <= dropping["rows_per_step"] < continuous["rows_per_step"] <= 4, "places are filled again at once"
    assert 0 < static["kv_occupancy"] < dropping["kv_occupancy"] <= 1 and 0 < continuous["kv_occupancy"] <= 1
    assert "with finished rows dropped" in llmc("bench", tiny_plan, "--continuous-batching", 2, "-n", 8, "-r", 1).stdout


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
