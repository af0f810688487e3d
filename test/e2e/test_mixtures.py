"""Mixtures of experts and latent attention give the tokens and logits of Hugging Face in f32."""
import json

import numpy as np
import pytest

from conftest import compile_model, generate, golden_runs, llmc

F32 = ("--kv-cache-dtype", "f32", "--activations", "f32")
QUICK = ("-O0", "--cpu-level", "x86-64-v3")

# family: files (a name that is "" is the Hugging Face folder itself). The GGUF files of the other
# families lost something on the way (test/data/README.md).
MODELS = {
    "mixtral": ["", "f32.gguf", "model.onnx", "dynamo18.onnx", "dynamo23.onnx"],
    "qwen2-moe": ["", "f32.gguf", "model.onnx"],
    "deepseek-v2": ["", "model.onnx"],
    "deepseek-v3": ["", "model.onnx", "dynamo18.onnx", "dynamo23.onnx"],
    "gpt-oss": ["", "model.onnx"],
}


@pytest.mark.parametrize("family,name", [(f, n) for f, names in MODELS.items() for n in names])
def test_tokens_and_logits(tiny, tmp_path, family, name):
    folder = tiny / family
    plan = compile_model(folder / name if name else folder, tmp_path / "m.plan", *QUICK, *F32)
    for i, run in enumerate(golden_runs(folder, onnx=name.endswith(".onnx"))):
        out = tmp_path / f"{i}.npy"
        ids = generate(plan, run["prompt_ids"], len(run["greedy_ids"]), "--logits-out", out)
        assert ids == run["greedy_ids"]
        assert np.abs(np.load(out) - np.load(folder / run["logits"])).max() < 1e-3


@pytest.mark.parametrize("name", ["", "model.onnx", "dynamo23.onnx"])
def test_latent_cache_has_the_latent_size(tiny, tmp_path, name):
    """16 latent and 8 rotated values a token and layer, whatever the file caches."""
    folder = tiny / "deepseek-v3"
    plan = compile_model(folder / name if name else folder, tmp_path / "m.plan", *QUICK, *F32)
    told = json.loads(llmc("inspect", plan, "--json").stdout)
    assert told["kv_bytes_per_token"] == 2 * (16 + 8) * 4


@pytest.mark.parametrize("family,flags", [("mixtral", ("--int4",)), ("deepseek-v3", ("--int8",)), ("gpt-oss", ("--int8",))])
def test_bits_do_not_depend_on_chunks_and_threads(tiny, tmp_path, family, flags):
    folder = tiny / family
    run = golden_runs(folder)[-1]
    plan = compile_model(folder, tmp_path / "m.plan", *QUICK, *flags)
    bits = set()
    for settings in (("-t", "1"), ("-t", "2", "--max-num-batched-tokens", "3"), ("-t", "2", "--block-size", "32")):
        out = tmp_path / "l.npy"
        generate(plan, run["prompt_ids"], 8, "--logits-out", out, *settings)
        bits.add(out.read_bytes())
    assert len(bits) == 1


@pytest.mark.parametrize("flag,least", [("--int8", 0.8), ("--int4", 0.2)])
def test_experts_quantize(tiny, tmp_path, flag, least):
    """Experts are stored as integers, the router is not; 8 bits keep most of a prompt's logits."""
    folder = tiny / "mixtral"
    plan = compile_model(folder, tmp_path / "m.plan", *QUICK, flag)
    listing = llmc("inspect", plan, "--json").stdout
    assert json.loads(listing)["weights"]
    run = golden_runs(folder)[0]
    out = tmp_path / "l.npy"
    generate(plan, run["prompt_ids"], 1, "--logits-out", out)
    want = np.load(folder / run["logits"])
    same = (np.load(out).argmax(-1) == want.argmax(-1)).mean()
    assert same >= least
