"""Every file of a supported family gives the tokens of Hugging Face in f32."""
import json
import pathlib
import shutil

import numpy as np
import pytest

from conftest import compile_model, generate, golden_runs, llmc

F32 = ("--kv-cache-dtype", "f32", "--activations", "f32")

# family: files (a name that is "" is the Hugging Face folder itself). Not here: GGUF files that are another model than
# the folder (gemma2's has no query_pre_attn_scalar, mistral's no window), and gemma2's GenAI graph, whose window is on the
# other layers: see test_window_on_the_other_layers.
MODELS = {
    "bloom": ["", "f32.gguf", "model.onnx"],
    "falcon-gqa": ["", "f32.gguf", "model.onnx"],
    "falcon-mqa": ["", "f32.gguf", "model.onnx"],
    "gemma2": ["", "model.onnx"],
    "gemma3": ["", "f32.gguf", "model.onnx", "dynamo18.onnx", "dynamo23.onnx", "genai-fp32.onnx"],
    "gpt-neox": ["", "f32.gguf", "model.onnx"],
    "gpt2": ["", "f32.gguf", "model.onnx", "dynamo18.onnx", "dynamo23.onnx"],
    "llama": ["", "f32.gguf", "model.onnx", "dynamo18.onnx", "dynamo23.onnx", "genai-fp32.onnx"],
    "llama3-rope": ["", "f32.gguf", "model.onnx", "genai-fp32.onnx"],
    "mistral": ["", "model.onnx", "dynamo18.onnx", "dynamo23.onnx", "genai-fp32.onnx"],
    "phi3": ["", "model.onnx", "genai-fp32.onnx"],
    "qwen2": ["", "f32.gguf", "model.onnx", "genai-fp32.onnx"],
    "qwen3": ["", "f32.gguf", "model.onnx", "dynamo18.onnx", "dynamo23.onnx", "genai-fp32.onnx"],
}


def compile_small(folder, name, plan):
    # Results have the same bits at every -O (a test below): little machine code is enough here.
    quick = ("-O3",) if folder.name == "llama" else ("-O0", "--cpu-level", "x86-64-v3")
    return compile_model(folder / name if name else folder, plan, *quick, *F32)


@pytest.mark.parametrize("family,name", [(f, n) for f, names in MODELS.items() for n in names])
def test_tokens_and_logits(tiny, tmp_path, family, name):
    folder = tiny / family
    plan = compile_small(folder, name, tmp_path / "m.plan")
    for run in golden_runs(folder, onnx=name == "model.onnx"):
        out = tmp_path / "logits.npy"
        ids = generate(plan, run["prompt_ids"], len(run["greedy_ids"]), "--logits-out", out)
        assert ids == run["greedy_ids"]
        assert np.abs(np.load(out) - np.load(folder / run["logits"])).max() < 1e-3


@pytest.mark.parametrize("name", ["", "genai-fp32.onnx"])
def test_growing_into_the_long_context(tiny, tmp_path, name):
    # longrope: up to 64 tokens the short factors, beyond them the long ones for every token of the sequence, as if the
    # text so far had come as a prompt. Chunks and speculation change nothing.
    plan = compile_small(tiny / "phi3", name, tmp_path / "m.plan")
    prompt = [run for run in golden_runs(tiny / "phi3") if len(run["prompt_ids"]) == 80][0]["prompt_ids"][:54]
    # transformers 5.5.4, each token by a pass over all before it (use_cache=False); the closest two logits are 0.08 apart.
    ids = [163, 446, 393, 118, 386, 327, 137, 414, 24, 231, 250, 51, 442, 376, 334, 312, 137, 400, 260, 130, 171, 236, 81, 301]
    assert generate(plan, prompt, 24) == ids
    assert generate(plan, prompt, 24, "--max-num-batched-tokens", 16) == ids
    assert generate(plan, prompt, 24, "--speculative-config", '{"method": "ngram", "num_speculative_tokens": 8}') == ids
    # What the short factors alone would give parts from it just there.
    short = compile_model(tiny / "phi3", tmp_path / "short.plan", "-O0", "--cpu-level", "x86-64-v3", "--max-model-len", 64,
                          *F32)
    assert generate(short, prompt, 8) == ids[:8]


def test_window_on_the_other_layers(tiny, tmp_path):
    # The builder of GenAI's graphs gave gemma2's window to the layers that have none: the folder with its layers
    # exchanged is the same model.
    folder = tmp_path / "exchanged"
    shutil.copytree(tiny / "gemma2", folder, ignore=shutil.ignore_patterns("*.onnx", "*.npy", "*.gguf"))
    config = json.loads((folder / "config.json").read_text())
    assert config["layer_types"] == ["sliding_attention", "full_attention"]
    config["layer_types"].reverse()
    (folder / "config.json").write_text(json.dumps(config))
    plans = [compile_small(folder, "", tmp_path / "folder.plan"),
             compile_small(tiny / "gemma2", "genai-fp32.onnx", tmp_path / "onnx.plan")]
    for run in golden_runs(tiny / "gemma2"):
        logits = []
        for plan in plans:
            generate(plan, run["prompt_ids"], 1, "--logits-out", tmp_path / "logits.npy")
            logits.append(np.load(tmp_path / "logits.npy"))
        assert np.abs(logits[0] - logits[1]).max() < 1e-4


def test_logits(tiny, tmp_path):
    folder = tiny / "llama"
    plan = compile_model(folder, tmp_path / "m.plan", *F32)
    for i, run in enumerate(golden_runs(folder)):
        out = tmp_path / f"{i}.npy"
        generate(plan, run["prompt_ids"], 1, "--logits-out", out)
        expected = np.load(folder / run["logits"])
        assert np.abs(np.load(out) - expected).max() < 1e-4


@pytest.mark.parametrize("level", ["0", "1", "2"])
def test_optimisation_levels_give_the_same_bits(tiny, tmp_path, level):
    folder = tiny / "llama"
    prompt = golden_runs(folder)[0]["prompt_ids"]
    bits = []
    for flag in ("3", level):
        plan = compile_model(folder, tmp_path / f"{flag}.plan", "-O", flag, "--int8")
        generate(plan, prompt, 8, "--logits-out", tmp_path / f"{flag}.npy")
        bits.append((tmp_path / f"{flag}.npy").read_bytes())
    assert bits[0] == bits[1]


def test_f16_cache_gives_the_same_tokens(tiny, tmp_path):
    folder = tiny / "llama"
    plan = compile_model(folder, tmp_path / "m.plan", "--activations", "f32", "--kv-cache-dtype", "f16")
    for run in golden_runs(folder):
        assert generate(plan, run["prompt_ids"], len(run["greedy_ids"])) == run["greedy_ids"]


def test_int8_cache_stays_close(tiny, tmp_path):
    folder = tiny / "llama"
    bytes_per_token = {}
    for dtype in ("f32", "int8"):
        plan = compile_model(folder, tmp_path / f"{dtype}.plan", "--activations", "f32", "--kv-cache-dtype", dtype)
        generate(plan, golden_runs(folder)[0]["prompt_ids"], 1, "--logits-out", tmp_path / f"{dtype}.npy")
        bytes_per_token[dtype] = json.loads(llmc("inspect", plan, "--json").stdout)["kv_bytes_per_token"]
    # 2 layers of 2 heads, keys and values of 16 values; int8 has a scale for each.
    assert bytes_per_token == {"f32": 2 * 2 * 2 * 16 * 4, "int8": 2 * 2 * 2 * (16 + 4)}
    exact, rounded = (np.load(tmp_path / f"{dtype}.npy") for dtype in ("f32", "int8"))
    assert 0 < np.abs(rounded - exact).max() < 0.02 * np.abs(exact).max()
