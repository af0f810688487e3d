"""SmolLM2-135M from ONNX, f16 and int4: its kernels for every sm_ and what compiling them costs, and a few tokens of them
on the emulator. Minutes, and the model's files are not part of the tests: LLMC_SMOLLM2=DIR ctest -R cuda_smollm2, where
DIR has optimum-fp16/model.onnx (Optimum's export) and genai-int4/model.onnx (the model builder of ONNX Runtime GenAI).
The time is the processor's: how busy the machine is decides nothing. A compilation uses every core it is given, so what
must take under 60 s on two cores may use 120."""
import json
import os
import pathlib
import resource

import pytest

from conftest import compile_model, generate, llmc
from cuda_plans import ARCHS, MOST_REGISTERS, check_kernels, need_nvrtc
from test_cuda import F32, STANDINS, compile_cuda, ids

FOLDER = os.environ.get("LLMC_SMOLLM2", "")
pytestmark = pytest.mark.skipif(not FOLDER, reason="set LLMC_SMOLLM2 to a folder with optimum-fp16 and genai-int4")
# Optimum's f16 export keeps the output projections in f32: their product for prompts takes every register that a thread of
# two blocks a multiprocessor can have.
MOST = {"optimum-fp16": 255, "genai-int4": MOST_REGISTERS}
FORMS = pytest.mark.parametrize("form", ["optimum-fp16", "genai-int4"])


def seconds(*arguments, **kwargs):
    """Processor time of a run of llmc and all it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    llmc(*arguments, **kwargs)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@FORMS
def test_kernels_for_every_architecture(tiny, tmp_path, form):
    need_nvrtc(tiny, tmp_path)
    model = pathlib.Path(FOLDER, form, "model.onnx")
    cache = {"LLMC_CACHE_DIR": str(tmp_path / "cache")}
    compile = ("compile", model, "-q", "--target", "cuda:sm_80", "-o", tmp_path / "m.plan")
    cold = seconds(*compile, env=cache, timeout=1800)
    cached = min(seconds(*compile, env=cache, timeout=600) for _ in range(2))
    print(f"{form}: sm_80 {cold:.1f} s of processor time, cached {cached:.1f} s")
    assert cold < 120 and cached < 4
    kernels = check_kernels(model, tmp_path / "cuda", ARCHS, most=MOST[form], env=cache, timeout=3000)
    most = max(k["registers"] for kernel in kernels for k in kernel["targets"].values())
    print(f"{form}: {len(kernels)} kernels for {len(ARCHS)} architectures, no spill, at most {most} registers")


@FORMS
@pytest.mark.skipif(not STANDINS, reason="this build has no emulator (x86-64 without sanitizers has one)")
def test_tokens_on_the_emulator_are_those_of_the_cpu(tmp_path, form):
    model = pathlib.Path(FOLDER, form, "model.onnx")
    prompt = [1, 504, 3575, 282, 4649, 314]  # "The capital of France is", after a token that begins a text
    cpu = compile_model(model, tmp_path / "cpu.plan", *F32, timeout=600)
    want = generate(cpu, prompt, 3)
    got = ids(compile_cuda(model, tmp_path / "cuda.plan", *F32), prompt, 3, timeout=3000)
    print(f"{form}: {got}")
    assert got == want
