"""Attention with TMA and wgmma, end to end: compiled for sm_90a, run on the emulator by way of the runtime's tensor maps."""
import json
import pathlib
import re

import numpy as np
import pytest

from conftest import llmc, tool
from cuda_plans import CACHE, check_kernels, need_nvrtc
from prequantized import write_safetensors
from test_cuda import STANDINS, run

emulated = pytest.mark.skipif(not STANDINS, reason="this build has no emulator (x86-64 without sanitizers has one)")
SM90 = {"SIMT_DEVICES": "9.0:4096"}


def write_llama(folder, head_size, heads, kv_heads):
    """A random Llama of two layers whose heads are as wide as those of large models."""
    hidden, inner, vocabulary, layers = 64, 96, 128, 2
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": hidden, "head_dim": head_size,
              "intermediate_size": inner, "num_hidden_layers": layers, "num_attention_heads": heads,
              "num_key_value_heads": kv_heads, "vocab_size": vocabulary, "max_position_embeddings": 512,
              "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": True,
              "torch_dtype": "float32", "bos_token_id": 1, "eos_token_id": 2}
    rng = np.random.default_rng(head_size)
    def matrix(rows, columns, scale=1.0):
        return (scale * rng.standard_normal((rows, columns)) / columns ** 0.5).astype(np.float32)
    tensors = {"model.embed_tokens.weight": matrix(vocabulary, hidden, 4), "model.norm.weight": np.ones(hidden, np.float32)}
    for i in range(layers):
        own = f"model.layers.{i}."
        # Large queries: attention decides the result.
        tensors[own + "self_attn.q_proj.weight"] = matrix(heads * head_size, hidden, 3)
        tensors[own + "self_attn.k_proj.weight"] = matrix(kv_heads * head_size, hidden)
        tensors[own + "self_attn.v_proj.weight"] = matrix(kv_heads * head_size, hidden)
        tensors[own + "self_attn.o_proj.weight"] = matrix(hidden, heads * head_size, 2)
        tensors[own + "mlp.gate_proj.weight"] = matrix(inner, hidden)
        tensors[own + "mlp.up_proj.weight"] = matrix(inner, hidden)
        tensors[own + "mlp.down_proj.weight"] = matrix(hidden, inner)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            tensors[own + norm + ".weight"] = np.ones(hidden, np.float32)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    write_safetensors(folder / "model.safetensors", tensors)
    return folder


def compile_emulated(model, plan, mode, target="cuda:sm_90a"):
    tool("llmc", "compile", model, "-q", "-o", plan, "--target", target, "--kv-cache-dtype", "f16", "--activations", "f32",
         timeout=600, env={"LLMC_NVRTC": str(pathlib.Path(STANDINS, "libnvrtc.so")), "SIMT_MODE": mode,
                           "LLMC_CACHE_DIR": str(plan) + ".cache"})
    return plan


@emulated
def test_a_token_has_the_same_bits_in_every_chunk_and_those_of_the_cpu_are_near(tmp_path):
    model = write_llama(tmp_path / "m", 64, 4, 2)
    plan = compile_emulated(model, tmp_path / "m.plan", "checked")
    prompt = [int(x) for x in np.random.default_rng(3).integers(3, 128, 37)]
    results = []
    for i, (order, chunk) in enumerate((("forward", 512), ("reverse", 5), ("random:3", 1))):
        out = tmp_path / f"{i}.npy"
        result = run(plan, prompt, 3, "--max-num-batched-tokens", chunk, "--logits-out", out,
                     env={**SM90, "SIMT_ORDER": order})
        assert "emulated device" not in result.stderr
        results.append((json.loads(result.stdout)["ids"], out.read_bytes()))
    assert results[0] == results[1] == results[2]
    llmc("compile", model, "-q", "-o", tmp_path / "cpu.plan", "--kv-cache-dtype", "f16", "--activations", "f32")
    cpu = json.loads(llmc("run", tmp_path / "cpu.plan", "--prompt-ids", ",".join(map(str, prompt)), "-n", 3, "--temperature",
                          0, "--ignore-eos", "--json", "--logits-out", tmp_path / "cpu.npy").stdout)
    assert cpu["ids"] == results[0][0]
    a, b = np.load(tmp_path / "0.npy"), np.load(tmp_path / "cpu.npy")
    assert np.abs(a - b).max() < 2e-2 * np.abs(b).max()


@emulated
def test_an_older_gpu_runs_the_same_plan(tmp_path):
    plan = compile_emulated(write_llama(tmp_path / "m", 128, 8, 1), tmp_path / "m.plan", "fast", "cuda:sm_80,sm_90a")
    ids = [json.loads(run(plan, [5, 6, 7, 8], 4, env={"SIMT_DEVICES": device}).stdout)["ids"]
           for device in ("8.0:4096", "9.0:4096")]
    assert ids[0] == ids[1]


@pytest.mark.parametrize("cache", ["f16", "bf16"])
@pytest.mark.parametrize("head_size,heads,kv_heads", [(64, 4, 2), (128, 8, 1)])
def test_kernels_keep_to_their_registers(tiny, tmp_path, head_size, heads, kv_heads, cache):
    need_nvrtc(tiny, tmp_path)
    model = write_llama(tmp_path / "m", head_size, heads, kv_heads)
    kernels = check_kernels(model, tmp_path / "cuda", ["sm_80", "sm_90a"], "--int4", "--kv-cache-dtype", cache)
    # A block of three warpgroups begins with 168 registers a thread, of which consumers make 232.
    hopper = {k["entry"].split("_", 2)[2]: k["targets"]["sm_90a"] for k in kernels if "wgmma" in k["entry"]}
    assert hopper["prefill_wgmma"]["registers"] == 168 and hopper["decode_wgmma"]["registers"] <= 232
    llmc("compile", model, "-q", "--int4", "--target", "cuda:sm_90a", "--kv-cache-dtype", cache, "-o", tmp_path / "m.plan",
         env=CACHE, timeout=600)
    steps = json.loads(llmc("explain", tmp_path / "m.plan", "--gpu", "h200", "--tokens", 100, "--json").stdout)["steps"]
    for step, entry in zip(steps, ("decode_wgmma", "prefill_wgmma")):
        # No bank conflict, and whole sectors of weights, keys and values: of all products and of attention.
        hot = [k for k in step["kernels"] if re.match("(gemm|attention)_", k["name"])]
        assert len(hot) >= 5 and any(k["name"].endswith(entry) for k in hot)
        assert all(k["bank_wavefronts_over_least"] == k["sectors_over_least"] == 1 for k in hot), hot
    table = llmc("explain", tmp_path / "m.plan", "--gpu", "h200", "--tokens", 100).stdout.splitlines()
    rows = [line.split() for line in table if re.match(" *(gemm|attention)_", line)]
    assert len(rows) >= 10 and all(row[-2:] == ["1.00", "1.00"] for row in rows), rows
