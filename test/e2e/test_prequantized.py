"""A checkpoint that is quantized already gives the tokens and logits of the f32 model that it stands for."""
import json
import shutil

import numpy as np
import pytest

import prequantized as q
from conftest import compile_model, generate, golden_runs, llmc

PACKED = {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": {"weights": {
    "num_bits": 4, "type": "int", "strategy": "group", "group_size": 32}}}}
FLOATS = {"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": {"group_0": {"weights": {
    "num_bits": 8, "type": "float", "strategy": "channel"}}}}


def packed(bits):
    copy = json.loads(json.dumps(PACKED))
    copy["config_groups"]["group_0"]["weights"]["num_bits"] = bits
    return copy


# name: quantization_config, the function, whether it is kept as integers
FORMS = {
    "gptq": ({"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": False}, q.gptq, True),
    "gptq-8": ({"quant_method": "gptq", "bits": 8, "group_size": 32, "desc_act": False},
               lambda n, w: q.gptq(n, w, bits=8), True),
    "gptq-v2": ({"quant_method": "gptq", "bits": 4, "group_size": 32, "checkpoint_format": "gptq_v2"},
                lambda n, w: q.gptq(n, w, version=2), True),
    "gptq-act-order": ({"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": True},
                       lambda n, w: q.gptq(n, w, order=np.random.default_rng(3)), False),
    "gptq-row": ({"quant_method": "gptq", "bits": 4, "group_size": -1},  # case Q10
                 lambda n, w: q.gptq(n, w, group=w.shape[1]), True),
    "awq": ({"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": True, "version": "gemm"}, q.awq, True),
    "packed-4": (PACKED, q.pack_quantized, True),
    "packed-4-zeros": (PACKED, lambda n, w: q.pack_quantized(n, w, symmetric=False), True),
    "packed-8": (packed(8), lambda n, w: q.pack_quantized(n, w, bits=8), True),
    "nf4": ({"quant_method": "bitsandbytes", "load_in_4bit": True}, lambda n, w: q.nf4(n, w, nested=False), False),
    "nf4-double": ({"quant_method": "bitsandbytes", "load_in_4bit": True}, q.nf4, False),
    "int8": ({"quant_method": "bitsandbytes", "load_in_8bit": True}, q.row_int8, False),
    "fp8-tensor": ({"quant_method": "fp8", "activation_scheme": "static"}, lambda n, w: q.fp8(n, w, key=".weight_scale"),
                   False),
    "fp8-block": ({"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [32, 32]},
                  lambda n, w: q.fp8(n, w, block=32), False),
    "fp8-row": (FLOATS, lambda n, w: q.fp8(n, w, rows=True, key=".weight_scale"), False),
}
F32 = ("-O0", "--cpu-level", "x86-64-v3", "--kv-cache-dtype", "f32", "--activations", "f32")


def folders(tiny, tmp_path, config, quantize):
    """The quantized folder and its twin."""
    made, twin = tmp_path / "quantized", tmp_path / "twin"
    tensors, other = {}, {}
    for name, value in q.read_safetensors(tiny / "llama/model.safetensors").items():
        other[name] = value
        if name.endswith("_proj.weight"):
            parts, other[name] = quantize(name.removesuffix(".weight"), value)
            tensors |= parts
        else:
            tensors[name] = value
    settings = json.loads((tiny / "llama/config.json").read_text())
    for folder, values, extra in ((made, tensors, {"quantization_config": config}), (twin, other, {})):
        folder.mkdir()
        shutil.copy(tiny / "llama/tokenizer.json", folder)
        (folder / "config.json").write_text(json.dumps(settings | extra))
        q.write_safetensors(folder / "model.safetensors", values)
    return made, twin


@pytest.mark.parametrize("form", FORMS)
def test_equals_its_f32_twin(tiny, tmp_path, form):
    config, quantize, integers = FORMS[form]
    runs = []
    for folder in folders(tiny, tmp_path, config, quantize):
        plan = compile_model(folder, tmp_path / (folder.name + ".plan"), *F32)
        prompt = golden_runs(tiny / "llama")[0]["prompt_ids"]
        out = tmp_path / (folder.name + ".npy")
        runs.append((generate(plan, prompt, 24, "--logits-out", out), np.load(out)))
    assert runs[0][0] == runs[1][0]
    assert np.abs(runs[0][1] - runs[1][1]).max() < 1e-4
    size = (tmp_path / "quantized.plan").stat().st_size
    assert (size < 0.85 * (tmp_path / "twin.plan").stat().st_size) == integers


@pytest.mark.parametrize("config,message", [
    ({"quant_method": "quanto"}, "'quanto', which is not supported; supported: gptq"),
    ({"quant_method": "gptq", "bits": 3}, "weights of 3 bits; 4 and 8 are read"),
    ({"quant_method": "gptq", "bits": 4, "checkpoint_format": "marlin"}, "checkpoint_format 'marlin'"),
    ({"quant_method": "awq", "bits": 4, "version": "gemv"}, "version 'gemv'"),
    ({"quant_method": "fp8", "weight_block_size": [128, 64]}, "two equal numbers"),
    ({"quant_method": "compressed-tensors", "format": "marlin-24", "config_groups": {"g": {"weights": {}}}}, "marlin-24"),
    ({"quant_method": "gptq", "bits": 4, "group_size": 48}, "its scales have"),
    ({"quant_method": "gptq", "bits": 4, "group_size": 0}, "'group_size' is 0"),
    ({"quant_method": "gptq", "bits": 4, "group_size": -2}, "'group_size' is -2"),
    ([], "an object"),
])
def test_refuses_what_it_does_not_read(tiny, tmp_path, config, message):
    made, _ = folders(tiny, tmp_path, config, q.gptq)
    result = llmc("compile", made, "-q", "-o", tmp_path / "m.plan", check=False)
    assert result.returncode == 1 and message in result.stderr, result.stderr


def test_refuses_a_missing_part(tiny, tmp_path):
    drop = lambda n, w: ({k: v for k, v in q.gptq(n, w)[0].items() if "v_proj.qzeros" not in k}, w)
    made, _ = folders(tiny, tmp_path, FORMS["gptq"][0], drop)
    result = llmc("compile", made, "-q", "-o", tmp_path / "m.plan", check=False)
    assert result.returncode == 1 and "v_proj.qzeros', which is missing" in result.stderr, result.stderr


def test_mxfp4_experts(tiny, tmp_path):
    # GPT-OSS as it is published: the experts' matrices [E, out, in] in MXFP4, where the f32 checkpoint has [E, in, out].
    made, twin = tmp_path / "quantized", tmp_path / "twin"
    tensors, other = {}, {}
    for name, value in q.read_safetensors(tiny / "gpt-oss/model.safetensors").items():
        if name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            parts, dense = q.mxfp4(name, np.ascontiguousarray(value.transpose(0, 2, 1)))
            tensors |= parts
            other[name] = dense.transpose(0, 2, 1)
        else:
            tensors[name] = other[name] = value
    settings = json.loads((tiny / "gpt-oss/config.json").read_text())
    config = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router"]}
    runs = []
    for folder, values, extra in ((made, tensors, {"quantization_config": config}), (twin, other, {})):
        folder.mkdir()
        shutil.copy(tiny / "gpt-oss/tokenizer.json", folder)
        (folder / "config.json").write_text(json.dumps(settings | extra))
        q.write_safetensors(folder / "model.safetensors", values)
        plan = compile_model(folder, tmp_path / (folder.name + ".plan"), *F32)
        out = tmp_path / (folder.name + ".npy")
        prompt = golden_runs(tiny / "gpt-oss")[0]["prompt_ids"]
        runs.append((generate(plan, prompt, 24, "--logits-out", out), np.load(out)))
    assert runs[0][0] == runs[1][0]
    assert np.abs(runs[0][1] - runs[1][1]).max() < 1e-4
    assert (tmp_path / "quantized.plan").stat().st_size < (tmp_path / "twin.plan").stat().st_size
    # 4 bits a code, 8 a scale of 32: what the file has.
    assert "e2m1.g32.e8m0" in llmc("inspect", tmp_path / "quantized.plan").stdout

    broken = dict(tensors)
    del broken["model.layers.1.mlp.experts.down_proj_scales"]
    q.write_safetensors(made / "model.safetensors", broken)
    result = llmc("compile", made, "-q", "-o", tmp_path / "m.plan", check=False)
    assert result.returncode == 1 and "down_proj_scales', which is missing" in result.stderr, result.stderr
