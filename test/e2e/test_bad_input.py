"""Bad input gives exit status 1, one message that names the cause, and no output file."""
import json
import os
import random
import shutil
import struct

import numpy as np
import pytest

from conftest import compile_model, golden_runs, llmc, tool


def refused(model, tmp_path, *flags):
    """Compiles what can't be compiled; returns the message."""
    out = tmp_path / "out"
    out.mkdir(exist_ok=True)
    result = llmc("compile", model, "-q", "-o", out / "m.plan", *flags, check=False)
    assert result.returncode == 1, (result.returncode, result.stderr[-300:])
    assert result.stderr.count("\n") == 1, result.stderr
    assert list(out.iterdir()) == []
    return result.stderr


def copy_folder(tiny, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        shutil.copyfile(tiny / "llama" / name, folder / name)
    return folder


def edit_json(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_missing_model(tmp_path):
    assert "no such file" in refused(tmp_path / "nothing.onnx", tmp_path)


def test_unknown_kind(tmp_path):
    (tmp_path / "model.bin").write_bytes(b"what is this")
    assert "Hugging Face" in refused(tmp_path / "model.bin", tmp_path)


def test_unknown_architecture(tiny, tmp_path):
    folder = copy_folder(tiny, tmp_path)
    edit_json(folder / "config.json", model_type="frobnicator", architectures=["FrobnicatorForCausalLM"])
    assert "frobnicator" in refused(folder, tmp_path).lower()


def test_nan_weight(tiny, tmp_path):
    folder = copy_folder(tiny, tmp_path)
    data = bytearray((folder / "model.safetensors").read_bytes())
    head = struct.unpack("<Q", data[:8])[0]
    tensors = json.loads(data[8 : 8 + head])
    name = "model.layers.1.mlp.up_proj.weight"
    begin = 8 + head + tensors[name]["data_offsets"][0]
    data[begin : begin + 2] = struct.pack("<H", 0x7FC0)  # a bf16 NaN
    (folder / "model.safetensors").write_bytes(data)
    for flags in ((), ("--int4",)):
        assert name in refused(folder, tmp_path, *flags)


def test_missing_tensor(tiny, tmp_path):
    folder = copy_folder(tiny, tmp_path)
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data.replace(b"layers.1.mlp.up_proj", b"layers.1.mlp.xx_proj"))
    assert "up_proj" in refused(folder, tmp_path) or "xx_proj" in refused(folder, tmp_path)


def damaged(path, seed, count):
    """Copies of a file: cut, and with one bit turned; every byte of the head, others sampled."""
    data = path.read_bytes()
    rnd = random.Random(seed)
    for i in range(count):
        if i % 3 == 0:
            yield data[: rnd.randrange(len(data))]
        else:
            at = rnd.randrange(min(len(data), 4096)) if i % 3 == 1 else rnd.randrange(len(data))
            copy = bytearray(data)
            copy[at] ^= 1 << rnd.randrange(8)
            yield bytes(copy)


@pytest.mark.parametrize("name", ["f32.gguf", "q8_0.gguf", "model.onnx", "model.safetensors", "config.json", "tokenizer.json"])
def test_damaged_files_never_crash(tiny, tmp_path, name):
    folder = copy_folder(tiny, tmp_path)
    is_model = name.endswith((".gguf", ".onnx"))
    # What a damaged file is refused for does not depend on the machine code: make little of it.
    quick = ("-O", "0", "--cpu-level", "x86-64-v3")
    for i, data in enumerate(damaged(tiny / "llama" / name, 3, 15)):
        (folder / name).write_bytes(data)
        plan = tmp_path / f"{i}.plan"
        result = llmc("compile", folder / name if is_model else folder, "-q", "-o", plan, *quick, check=False)
        # A turned bit may leave a model that is a model; nothing may be left behind otherwise.
        assert result.returncode in (0, 1), (i, result.returncode, result.stderr[-300:])
        assert (result.returncode == 0) == plan.exists()
        if result.returncode:
            assert result.stderr.startswith("llmc: ") and result.stderr.count("\n") == 1, result.stderr


def test_damaged_plan_is_refused(tiny_plan, tmp_path):
    bad = tmp_path / "bad.plan"
    for data in damaged(tiny_plan, 7, 45):
        bad.write_bytes(data)
        result = llmc("verify", bad, check=False)
        assert result.returncode == 1, result.stderr


def test_plan_for_another_machine_or_version(tiny, tiny_plan, tmp_path):
    """Case M20: what the plan has and what would be needed; headers, formats and GPUs also in PlanTest, CudaExecutorTest."""
    def refusal(plan, *flags, **kwargs):
        result = llmc("run", plan, "--prompt-ids", "5", "-n", 1, *flags, check=False, **kwargs)
        assert result.returncode == 1 and not result.stdout and result.stderr.count("\n") == 1, result
        return result.stderr

    other = tmp_path / "other.plan"
    data = bytearray(tiny_plan.read_bytes())
    assert struct.unpack_from("<I", data, 8) == (1,)
    struct.pack_into("<I", data, 8, 2)
    other.write_bytes(data)
    assert "container version 2 is newer than this build's 1" in refusal(other)
    struct.pack_into(">I", data, 8, 1)
    other.write_bytes(data)
    assert "big-endian" in refusal(other)
    assert "code for CPUs only" in refusal(tiny_plan, "--device", "cuda")
    foreign = "x86-64" if os.uname().machine == "aarch64" else "aarch64"
    compile_model(tiny / "llama", other, "-O0", "--cpu-level", foreign)
    message = refusal(other)
    assert foreign in message and "this machine has" in message, message


def test_no_permission(tiny, tmp_path):
    if os.geteuid() == 0:
        out = "/proc/nothing.plan"  # root may write everywhere else
    else:
        out = "/nothing.plan"
    result = llmc("compile", tiny / "llama", "-q", "-o", out, check=False)
    assert result.returncode == 1 and out in result.stderr


def test_full_disk(tiny, tmp_path):
    # A file size limit ends a write as a full disk does.
    out = tmp_path / "m.plan"
    result = tool("llmc", "compile", tiny / "llama", "-q", "-o", out, check=False,
                  preexec_fn=lambda: __import__("resource").setrlimit(__import__("resource").RLIMIT_FSIZE, (65536, 65536)))
    assert result.returncode == 1, result.returncode
    assert list(tmp_path.iterdir()) == []


def test_prompts(tiny_plan):
    for flags in (["--prompt-ids", ""], ["--prompt-ids", "99999"], ["--prompt-ids", "-1"],
                  ["--prompt-ids", ",".join(["5"] * 400)]):
        result = llmc("run", tiny_plan, *flags, "-n", "4", check=False)
        assert result.returncode in (1, 2) and result.stderr, flags
    result = llmc("run", tiny_plan, "--prompt-ids", ",".join(["5"] * 400), "-n", "4", check=False)
    assert "400" in result.stderr and "256" in result.stderr


def test_cpu_level_that_is_not_there(tiny_plan):
    """Case M20."""
    result = llmc("run", tiny_plan, "--prompt-ids", "5", "-n", "1", check=False, env={"LLMRT_CPU_LEVEL": "z80"})
    assert result.returncode == 1 and "z80" in result.stderr


def test_wrong_usage():
    for arguments in ([], ["compile"], ["frobnicate"], ["compile", "x", "--int5"], ["compile", "x", "-O", "9"]):
        assert llmc(*arguments, check=False).returncode == 2, arguments
