#!/usr/bin/env python3
"""Makes a SmolLM2 whose weights lie on no quantization grid, to measure quantizers fairly.

The published SmolLM2 file holds 4-bit weights (GGUF Q4_1), so a quantizer that finds the same grid again would win for
nothing. Here every weight of a quantized tensor gets seeded uniform noise of plus or minus half its own quantization
step (Q4_1: the block's scale; Q8_0: likewise), which is the spread of originals that would have rounded to it. The
result is a Hugging Face folder in f32, which serves as its own reference.

    make_dithered.py --gguf SmolLM2-135M-Instruct.Q4_1.gguf --hf HF_FOLDER --out OUT [--seed 1] [--strength 1.0]

HF_FOLDER gives config.json and the tokenizer files. Needs numpy and the `gguf` package. The same arguments give the
same bytes.
"""
import argparse
import json
import pathlib
import shutil
import struct
import sys

import numpy as np

COPIED = ("generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
          "chat_template.jinja")
LAYER_NAMES = {
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
}


def hugging_face_name(name):
    if name == "token_embd.weight":
        return "model.embed_tokens.weight"
    if name == "output_norm.weight":
        return "model.norm.weight"
    block, layer, kind, suffix = name.split(".")
    if block != "blk" or suffix != "weight":
        sys.exit(f"unexpected tensor {name}")
    return f"model.layers.{layer}.{LAYER_NAMES[kind]}.weight"


def read(tensor):
    """Values and quantization steps as f32 matrices; no steps for a float tensor."""
    kind = tensor.tensor_type.name
    shape = [int(d) for d in reversed(tensor.shape)]
    data = np.ascontiguousarray(tensor.data).view(np.uint8)
    if kind == "F32":
        return data.view(np.float32).reshape(shape), None
    if kind == "Q4_1":  # f16 scale, f16 minimum, 16 bytes: element i low nibble of byte i, 16 + i the high one
        blocks = data.reshape(-1, 20)
        scale = blocks[:, 0:2].copy().view(np.float16).astype(np.float32)
        low = blocks[:, 2:4].copy().view(np.float16).astype(np.float32)
        codes = np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], axis=1).astype(np.float32)
        values = codes * scale + low
    elif kind == "Q8_0":  # f16 scale, 32 int8
        blocks = data.reshape(-1, 34)
        scale = blocks[:, 0:2].copy().view(np.float16).astype(np.float32)
        values = blocks[:, 2:].copy().view(np.int8).astype(np.float32) * scale
    else:
        sys.exit(f"{tensor.name}: {kind} is not read here; F32, Q4_1 and Q8_0 are")
    return values.reshape(shape), np.repeat(scale, 32, axis=1).reshape(shape)


def undo_rotation_order(matrix, heads):
    """GGUF's llama files interleave the two rotated halves of each head's rows; Hugging Face keeps them apart."""
    rows, columns = matrix.shape
    return matrix.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gguf", required=True, type=pathlib.Path)
    parser.add_argument("--hf", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--strength", type=float, default=1.0, help="of the noise; 0 gives the plain weights")
    args = parser.parse_args()
    import gguf

    config = json.loads((args.hf / "config.json").read_text())
    config["dtype"] = "float32"
    args.out.mkdir(parents=True, exist_ok=True)
    for name in COPIED:
        if (args.hf / name).exists():
            shutil.copyfile(args.hf / name, args.out / name)
    (args.out / "config.json").write_text(json.dumps(config, indent=2) + "\n")

    tensors = sorted(gguf.GGUFReader(str(args.gguf)).tensors, key=lambda t: hugging_face_name(t.name))
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for tensor in tensors:
        size = 4 * int(np.prod(tensor.shape))
        header[hugging_face_name(tensor.name)] = {"dtype": "F32", "shape": [int(d) for d in reversed(tensor.shape)],
                                                  "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(args.out / "model.safetensors", "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for index, tensor in enumerate(tensors):
            values, steps = read(tensor)
            if steps is not None:
                noise = np.random.default_rng([args.seed, index]).random(values.shape, dtype=np.float32)
                values = values + (noise - np.float32(0.5)) * steps * np.float32(args.strength)
            if "attn_q." in tensor.name:
                values = undo_rotation_order(values, config["num_attention_heads"])
            elif "attn_k." in tensor.name:
                values = undo_rotation_order(values, config["num_key_value_heads"])
            out.write(np.ascontiguousarray(values, dtype="<f4").tobytes())


if __name__ == "__main__":
    main()
