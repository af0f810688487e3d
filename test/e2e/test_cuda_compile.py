"""CUDA kernels through NVRTC, on a machine without a GPU. The rest of the models: cuda_all_models.py."""
import json
import re

import pytest

from conftest import llmc
from cuda_plans import ARCHS, CACHE, check_kernels, need_nvrtc


@pytest.fixture(scope="module")
def nvrtc(tiny, tmp_path_factory):
    need_nvrtc(tiny, tmp_path_factory.mktemp("probe"))


def test_kernels_of_llama_for_every_architecture(nvrtc, tiny, tmp_path):
    check_kernels(tiny / "llama", tmp_path, ARCHS, "--int4")


def test_plan_holds_both_targets_and_the_same_bytes_each_time(nvrtc, tiny, tmp_path):
    plans = []
    for name in ("a.plan", "b.plan"):
        llmc("compile", tiny / "llama", "-q", "--int4", "--target", "cpu,cuda:sm_80", "-o", tmp_path / name, env=CACHE,
             timeout=600)
        plans.append((tmp_path / name).read_bytes())
    assert plans[0] == plans[1]
    j = json.loads(llmc("inspect", tmp_path / "a.plan", "--json").stdout)
    assert {k["target"] for k in j["kernels"]} == {"cpu", "sm_80"}
    assert {m["level"] for m in j["modules"] if m["target"] == "cuda"} >= {"sm_80.gemm", "compute_80.gemm"}
    for k in j["kernels"]:
        if k["target"] == "sm_80":
            assert k["registers"] > 0 and k["spill_bytes"] == 0 and k["block"] % 32 == 0
    draws = [k for k in j["kernels"] if k["kind"] == "sampling"]
    assert [k["name"] for k in draws] == ["sample_top", "sample_select", "sample_draw", "sample_pick"]
    vocabulary = j["model"]["vocab_size"]
    assert all(k["used"] == 1 and k["target"] == "sm_80" and k["constants"]["vocabulary"] >= vocabulary for k in draws)
    assert [k["shared_bytes"] > 0 for k in draws] == [True, True, True, False]
    assert "sample_select  sampling" in re.sub("  +", "  ", llmc("inspect", tmp_path / "a.plan").stdout)
    llmc("verify", tmp_path / "a.plan")
    # A CPU runs it as any other.
    assert json.loads(llmc("run", tmp_path / "a.plan", "--prompt-ids", "1,2,3", "-n", 4, "--ignore-eos",
                           "--json").stdout)["ids"]
    # What its kernels ask of a GPU that is not there.
    j = json.loads(llmc("explain", tmp_path / "a.plan", "--gpu", "a100", "--tokens", 100, "--json").stdout)
    assert [s["step"] for s in j["steps"]] == ["decode", "prefill"]
    for step in j["steps"]:
        assert step["predicted_s"] > 0 and step["launches"] >= len(step["kernels"])
        for k in step["kernels"]:
            assert k["bytes"] >= k["least_bytes"] > 0 and k["operations"] >= k["least_operations"] >= 0
            assert k["blocks"] > 0 and 0 < k["occupancy"] <= 1, k
        draws = {k["name"]: k for k in step["kernels"] if k["name"].startswith("sample_")}
        assert len(draws) == 4 and all(k["used"] == 1 and k["registers"] > 0 and k["predicted_s"] > 0 for k in draws.values())
        # The logits of one row, once; the threshold is found in four passes.
        for name, passes in (("top", 1), ("select", 4), ("draw", 1)):
            k = draws["sample_" + name]
            assert 4 * vocabulary <= k["least_bytes"] < 4 * vocabulary + 4096
            assert 4 * vocabulary * passes <= k["bytes"] < 4 * vocabulary * passes + 4096
        assert abs(step["predicted_s"] - sum(k["predicted_s"] for k in step["kernels"])) < 1e-12
        assert step["launches"] == sum(k["used"] for k in step["kernels"])
        hot = [k for k in step["kernels"] if "bank_wavefronts_over_least" in k]
        assert any("gemm" in k["name"] for k in hot) and any("attention" in k["name"] for k in hot)
        assert all(k["bank_wavefronts_over_least"] == k["sectors_over_least"] == 1 for k in hot)
    missing = llmc("explain", tmp_path / "a.plan", "--gpu", "h200", check=False)
    assert missing.returncode == 1 and "has no code for sm_90a, which h200 runs" in missing.stderr
