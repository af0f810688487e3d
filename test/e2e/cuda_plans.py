"""What the tests of CUDA plans share: NVRTC, and what must hold of every kernel."""
import json
import os

import pytest

from conftest import BIN, llmc

ARCHS = ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"]


# A multiprocessor has 65,536: two blocks of 128 threads (attention, narrow products), one of 256 (wide products). The
# compiler itself refuses what two such blocks have no room for; our kernels keep clear of that.
MOST_REGISTERS = 232

# Compiled kernels are kept between runs, by content.
CACHE = {"LLMC_CACHE_DIR": str(BIN.parent / "cuda-test-cache")}


def need_nvrtc(tiny, folder):
    """Skips where there is no NVRTC; any other failure of a compilation fails the test."""
    result = llmc("compile", tiny / "gpt2", "-q", "--target", "cuda:sm_80", "-o", folder / "probe.plan", check=False,
                  env=CACHE, timeout=600)
    if "needs NVRTC" in result.stderr:
        pytest.skip("NVRTC is not installed: " + result.stderr.strip())
    assert result.returncode == 0, result.stderr


def check_kernels(model, folder, archs, *flags, most=MOST_REGISTERS, env=CACHE, timeout=1200):
    """Compiles all kernels of a model; nothing spills, nothing uses local memory."""
    llmc("compile", model, "-q", "--target", "cuda:" + ",".join(archs), "--emit", f"cuda={folder}", *flags, env=env,
         timeout=timeout)
    kernels = json.loads((folder / "manifest.json").read_text())["kernels"]
    assert len(kernels) >= 8
    bad = []
    # Hopper's attention takes the place of the other.
    replaced = {kernel["kernel"] for kernel in kernels if "wgmma" in kernel["entry"]}
    for kernel in kernels:
        wanted = {"sm_90a"} if "wgmma" in kernel["entry"] else set(archs)
        if kernel["kernel"] in replaced and "wgmma" not in kernel["entry"]:
            wanted -= {"sm_90a"}
        assert set(kernel["targets"]) == wanted & set(archs), kernel["entry"]
        for arch, used in kernel["targets"].items():
            if used["spill_bytes"] or used["stack_bytes"] or not 0 < used["registers"] <= most \
                    or used["blocks_per_sm"] < 1:
                bad.append((kernel["entry"], arch, used))
    assert not bad, bad
    return kernels
