"""Contrib operators in a graph of any kind: what ONNX Runtime 1.31.1 computes on a CPU."""
import tarfile

import numpy as np
import pytest

from conftest import STORED, llmc

NAMES = ["attention", "fused_matmul", "gqa_bias_smooth", "gqa_decode", "gqa_noncausal", "gqa_packed_sink", "gqa_prompt",
         "gqa_prompt_rotary_past", "gqa_window_softcap", "mha_bias_mask", "moe_gelu_0", "moe_gelu_1", "moe_relu_0",
         "moe_relu_1", "moe_silu_0", "moe_silu_1", "moe_swiglu", "qmoe4", "qmoe8"]


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("contrib")
    with tarfile.open(STORED / "contrib.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "contrib"


def valid_rows(present, inputs):
    """A cache [batch, heads, room, size] up to each sequence's length: what lies beyond is nobody's."""
    return [present[b, :, :length + 1] for b, length in enumerate(inputs["i5"])]


def test_every_case_is_listed(cases):
    assert sorted(NAMES) == sorted(path.stem for path in cases.glob("*.onnx"))


@pytest.mark.parametrize("name", NAMES)
def test_as_onnx_runtime(cases, tmp_path, name):
    llmc("compile", cases / f"{name}.onnx", "-O0", "-q", "-o", tmp_path / "g.plan")
    inputs = dict(np.load(cases / f"{name}.npz"))
    flags = []
    for key, value in inputs.items():
        np.save(tmp_path / f"{key}.npy", value)
        flags += ["--input", f"{key}={tmp_path / key}.npy"]
    llmc("run", tmp_path / "g.plan", *flags, "--output-dir", tmp_path / "out")
    for key, expected in np.load(cases / f"{name}.ort.npz").items():
        got = np.load(tmp_path / "out" / f"{key}.npy")
        assert got.shape == expected.shape and got.dtype == expected.dtype, key
        pairs = [(got, expected)]
        if name.startswith("gqa") and key in ("o1", "o2"):
            pairs = list(zip(valid_rows(got, inputs), valid_rows(expected, inputs)))
        for a, b in pairs:
            assert np.abs(a - b).max() <= 2e-5 * max(1, np.abs(b).max()), key
