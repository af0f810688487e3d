#!/usr/bin/env python3
"""Writes checkpoints.safetensors: random matrices in the layouts of pre-quantized checkpoints ("CASE.field", as raw
bytes) and the f32 values they stand for ("CASE.want"), computed by the formulas with which AutoGPTQ, AutoAWQ,
compressed-tensors, bitsandbytes and DeepSeek's FP8 reader unpack them. Needs numpy and ml_dtypes."""
import json
import pathlib
import struct

import ml_dtypes
import numpy as np

R = np.random.default_rng(7)
OUT = {}
N, K = 48, 96


def put(case, **fields):
    for name, value in fields.items():
        OUT[f"{case}.{name}"] = np.ascontiguousarray(value)


def pack_rows(codes, bits):
    """[K, N] -> words [K / per, N], the first of a word in its lowest bits."""
    per = 32 // bits
    words = np.zeros((codes.shape[0] // per, codes.shape[1]), np.uint32)
    for i in range(per):
        words |= codes[i::per].astype(np.uint32) << np.uint32(bits * i)
    return words.view(np.int32)


def scales(shape, dtype):
    return R.uniform(0.001, 0.05, shape).astype(dtype)


def gptq(case, bits, group, dtype, version, act_order=False):
    groups = -(-K // group)
    top = 2**bits
    codes, zeros = R.integers(0, top, (K, N)), R.integers(0, top, (groups, N))
    scale = scales((groups, N), dtype)
    index = R.permutation(np.arange(K) // group).astype(np.int32) if act_order else (np.arange(K) // group).astype(np.int32)
    stored = (zeros - 1) % top if version == 1 else zeros
    want = scale.astype(np.float32)[index] * (codes - zeros[index]).astype(np.float32)
    put(case, data=pack_rows(codes, bits), scales=scale, zeros=pack_rows(stored.T, bits).T, want=want.T,
        **({"index": index} if act_order else {}))


def awq(case, group, dtype):
    order = [0, 2, 4, 6, 1, 3, 5, 7]

    def pack(codes):
        words = np.zeros((codes.shape[0], codes.shape[1] // 8), np.uint32)
        for i, column in enumerate(order):
            words |= codes[:, column::8].astype(np.uint32) << np.uint32(4 * i)
        return words.view(np.int32)
    codes, zeros = R.integers(0, 16, (K, N)), R.integers(0, 16, (K // group, N))
    scale = scales((K // group, N), dtype)
    spread = lambda x: np.repeat(x, group, axis=0)
    put(case, data=pack(codes), scales=scale, zeros=pack(zeros),
        want=(spread(scale.astype(np.float32)) * spread_diff(codes, spread(zeros))).T)


def spread_diff(codes, zeros):
    return (codes - zeros).astype(np.float32)


def packed_int(case, bits, group, dtype, zero_points):
    half = 2**(bits - 1)
    codes = R.integers(-half, half, (N, K))
    scale = scales((N, K // group), dtype)
    zeros = R.integers(-half, half, (N, K // group)) if zero_points else np.zeros((N, K // group), int)
    want = np.repeat(scale.astype(np.float32), group, 1) * (codes - np.repeat(zeros, group, 1)).astype(np.float32)
    put(case, data=pack_rows((codes + half).T, bits).T, scales=scale, want=want,
        **({"zeros": pack_rows(zeros + half, bits)} if zero_points else {}))


def nf4(case, nested):
    levels = np.sort(R.uniform(-1, 1, 16)).astype(np.float32)
    codes = R.integers(0, 16, N * K)
    blocks = N * K // 64
    if nested:
        absmax = R.integers(0, 256, blocks).astype(np.uint8)
        nested_levels = np.sort(R.uniform(-1, 1, 256)).astype(np.float32)
        nested_scales = R.uniform(0.01, 0.1, -(-blocks // 256)).astype(np.float32)
        offset = np.float32(0.0625)
        scale = nested_levels[absmax] * nested_scales[np.arange(blocks) // 256] + offset
        extra = dict(scales=absmax, nested_levels=nested_levels, nested_scales=nested_scales)
    else:
        scale = R.uniform(0.01, 0.1, blocks).astype(np.float32)
        extra = dict(scales=scale)
    put(case, data=(codes[0::2] << 4 | codes[1::2]).astype(np.uint8), levels=levels,
        want=(levels[codes] * np.repeat(scale, 64)).reshape(N, K), **extra)


def row_int8(case):
    codes = R.integers(-128, 128, (N, K)).astype(np.int8)
    scale = R.uniform(0.1, 2, N).astype(np.float32)
    put(case, data=codes, scales=scale, want=codes.astype(np.float32) * scale[:, None] * np.float32(7.874015718698502e-3))


def fp8(case, shape, dtype, block=1):
    codes = R.integers(0, 256, (N, K)).astype(np.uint8)
    codes[codes & 127 == 127] = 0x7e  # no NaN
    scale = scales(shape, dtype)
    grid = np.broadcast_to(scale.astype(np.float32), shape)
    if len(shape) == 2 and block > 1:
        grid = np.repeat(np.repeat(grid, block, 0), block, 1)[:N, :K]
    put(case, data=codes, scales=scale, want=codes.view(ml_dtypes.float8_e4m3fn).astype(np.float32) * grid)


def split_mxfp4(case):
    """As transformers' convert_moe_packed_tensors has it, but for the sign of zeros."""
    levels = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, 0, -.5, -1, -1.5, -2, -3, -4, -6], np.float32)
    codes, exponents = R.integers(0, 16, (N, K)), R.integers(100, 140, (N, K // 32)).astype(np.uint8)
    exponents[0, :2] = 0, 254  # the smallest; a large one with small codes
    codes[0, 32:64] &= 1
    put(case, data=(codes[:, 0::2] | codes[:, 1::2] << 4).astype(np.uint8), scales=exponents,
        want=np.ldexp(levels[codes], np.repeat(exponents.astype(int), 32, 1) - 127).astype(np.float32))


gptq("gptq4", 4, 32, np.float16, 1)
gptq("gptq8", 8, 16, np.float16, 1)
gptq("gptq_v2", 4, 96, np.float32, 2)
gptq("gptq_order", 4, 16, np.float16, 1, act_order=True)
awq("awq", 32, np.float16)
packed_int("packed4", 4, 32, ml_dtypes.bfloat16, False)
packed_int("packed4_zeros", 4, 96, np.float16, True)
packed_int("packed8", 8, 32, np.float32, False)
nf4("nf4", False)
nf4("nf4_nested", True)
row_int8("row_int8")
fp8("fp8_tensor", (1,), np.float32)
fp8("fp8_row", (N, 1), ml_dtypes.bfloat16)
fp8("fp8_block", (2, 3), np.float32, 32)
split_mxfp4("split_mxfp4")

header, offset = {}, 0
for name, value in OUT.items():
    header[name] = {"dtype": "F32" if name.endswith("want") else "U8",
                    "shape": list(value.shape) if name.endswith("want") else [value.nbytes],
                    "data_offsets": [offset, offset + value.nbytes]}
    if name.endswith("want"):
        assert value.dtype == np.float32 and value.shape == (N, K), name
    offset += value.nbytes
text = json.dumps(header, separators=(",", ":")).encode()
text += b" " * (-len(text) % 8)
(pathlib.Path(__file__).parent / "checkpoints.safetensors").write_bytes(
    struct.pack("<Q", len(text)) + text + b"".join(v.tobytes() for v in OUT.values()))
