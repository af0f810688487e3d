"""Nothing but the model and the prompt decides a bit of the logits."""
import json
import shutil

import pytest

from conftest import compile_model, generate, golden_runs

VARIANTS = {
    "threads": (("-t", "2"), None),
    "chunk of 1": (("--max-num-batched-tokens", "1"), None),
    "chunk of 7": (("--max-num-batched-tokens", "7"), None),
    "chunk of 64": (("--max-num-batched-tokens", "64"), None),
    "blocks of 64": (("--block-size", "64"), None),
    "lowest CPU level": ((), {"LLMRT_CPU_LEVEL": "x86-64-v3"}),
}


@pytest.fixture(scope="module", params=["--int4", "--int8", "--quantization=none", "--int4 --kv-cache-dtype=int8"])
def plan(request, tiny, tmp_path_factory):
    return compile_model(tiny / "llama", tmp_path_factory.mktemp("exact") / "m.plan", *request.param.split())


def ids_and_logits(plan, prompt, out, flags, env):
    ids = generate(plan, prompt, 24, "--logits-out", out, *flags, env=env)
    return ids, out.read_bytes()


def test_same_bits(plan, tiny, tmp_path):
    prompt = golden_runs(tiny / "llama")[0]["prompt_ids"] * 11
    base = ids_and_logits(plan, prompt, tmp_path / "base.npy", ("-t", "1"), None)
    for name, (flags, env) in VARIANTS.items():
        assert ids_and_logits(plan, prompt, tmp_path / "other.npy", flags, env) == base, name


def test_compiling_twice_gives_the_same_bytes(tiny, tmp_path):
    for model in (tiny / "llama", tiny / "llama/f32.gguf", tiny / "llama/model.onnx"):
        first = compile_model(model, tmp_path / "1.plan", "--int4", "-j", "1")
        second = compile_model(model, tmp_path / "2.plan", "--int4", "-j", "2")
        assert first.read_bytes() == second.read_bytes(), model


def test_end_tokens_in_a_prompt_are_seen(tiny, tmp_path):
    """Case O18: which id pads a batch elsewhere says nothing of the prompt, not even if it is the end's."""
    seen = []
    for pad in (2, 99):
        folder = tmp_path / str(pad)
        shutil.copytree(tiny / "llama", folder, ignore=shutil.ignore_patterns("*.onnx*", "*.gguf"))
        settings = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(settings | {"pad_token_id": pad, "eos_token_id": 2}))
        plan = compile_model(folder, tmp_path / f"{pad}.plan", "-O0", "--cpu-level", "x86-64-v3")
        seen.append(ids_and_logits(plan, [5, 2, 6, 2, 7], tmp_path / "logits.npy", (), None))
    assert seen[0] == seen[1]
    assert seen[0] != ids_and_logits(plan, [5, 6, 7], tmp_path / "logits.npy", (), None)
