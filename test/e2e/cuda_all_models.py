"""Every tiny model's kernels for sm_80 and sm_90a (ctest -L large): minutes, so not part of a default run."""
import pytest

from conftest import DATA, llmc
from cuda_plans import MOST_REGISTERS, check_kernels, need_nvrtc

# Kernels that need more registers than the others may: bloom's products of f32 weights.
MORE_REGISTERS = {("bloom", ()): 253, ("bloom", ("--kv-cache-dtype", "f32")): 253}
MODELS = sorted(d.name for d in (DATA / "tiny").iterdir() if d.is_dir())


@pytest.fixture(scope="module")
def nvrtc(tiny, tmp_path_factory):
    need_nvrtc(tiny, tmp_path_factory.mktemp("probe"))


@pytest.mark.parametrize("flags", [[], ["--int4"], ["--int8", "--kv-cache-dtype", "int8"],
                                   ["--kv-cache-dtype", "f32"]], ids=["as-is", "int4", "int8-kv8", "kv-f32"])
@pytest.mark.parametrize("model", MODELS)
def test_kernels(nvrtc, tiny, tmp_path, model, flags):
    # What the CPU can't compile either is another test's matter.
    if llmc("compile", tiny / model, "-q", "--emit", "lower-to-plan=" + str(tmp_path / "x.mlir"), *flags,
            check=False).returncode:
        pytest.skip("no plan for this model yet")
    check_kernels(tiny / model, tmp_path / "cuda", ["sm_80", "sm_90a"], *flags,
                  most=MORE_REGISTERS.get((model, tuple(flags)), MOST_REGISTERS))
