"""Quantizes f32 matrices [N, K] into the layouts that quantization tools write. Each function gives the tensors that take
the place of NAME.weight, and the f32 matrix that they stand for."""
import json
import struct

import numpy as np

DTYPES = {"float32": "F32", "float16": "F16", "int32": "I32", "int64": "I64", "int8": "I8", "uint8": "U8"}


def read_safetensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + size])
    out = {}
    for name, entry in head.items():
        if name == "__metadata__":
            continue
        raw = data[8 + size:][slice(*entry["data_offsets"])]
        if entry["dtype"] == "BF16":
            values = (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
        else:
            values = np.frombuffer(raw, {"F32": np.float32, "F16": np.float16}[entry["dtype"]]).astype(np.float32)
        out[name] = values.reshape(entry["shape"])
    return out


def write_safetensors(path, tensors):
    """A value is an array, or (dtype, array) for types that numpy doesn't know."""
    head, blobs, offset = {}, [], 0
    for name, value in tensors.items():
        dtype, array = value if isinstance(value, tuple) else (DTYPES[value.dtype.name], value)
        array = np.ascontiguousarray(array)
        head[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        blobs.append(array.tobytes())
        offset += array.nbytes
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def words(codes, bits):
    """[K, N] -> int32 [K / per, N], the first code in the lowest bits."""
    per = 32 // bits
    packed = np.zeros((codes.shape[0] // per, codes.shape[1]), np.uint32)
    for i in range(per):
        packed |= codes[i::per].astype(np.uint32) << np.uint32(bits * i)
    return packed.view(np.int32)


def affine(groups, bits):
    """Scale (f16) and zero point of each row of values, and the codes."""
    top = 2**bits - 1
    low, high = np.minimum(groups.min(1), 0), np.maximum(groups.max(1), 0)
    scale = np.maximum((high - low) / top, 1e-4).astype(np.float16)
    zero = np.clip(np.round(-low / scale.astype(np.float32)), 0, top).astype(np.int64)
    codes = np.clip(np.round(groups / scale.astype(np.float32)[:, None]) + zero[:, None], 0, top).astype(np.int64)
    return scale, zero, codes


def by_group(w, bits, group, index=None):
    """codes [N, K], scales and zeros [N, G], the matrix they stand for; index: the group of each column."""
    n, k = w.shape
    index = np.arange(k) // group if index is None else index
    codes, scales, zeros = np.zeros((n, k), np.int64), [], []
    for g in range(k // group):
        scale, zero, codes[:, index == g] = affine(w[:, index == g], bits)
        scales.append(scale)
        zeros.append(zero)
    scales, zeros = np.stack(scales, 1), np.stack(zeros, 1)
    return codes, scales, zeros, scales.astype(np.float32)[:, index] * (codes - zeros[:, index]).astype(np.float32)


def gptq(name, w, bits=4, version=1, order=None, group=32):
    index = None if order is None else order.permutation(np.arange(w.shape[1]) // group)
    codes, scales, zeros, twin = by_group(w, bits, group, index)
    stored = (zeros.T - 1) % 2**bits if version == 1 else zeros.T
    index = np.arange(w.shape[1]) // group if index is None else index
    return {name + ".qweight": words(codes.T, bits), name + ".qzeros": words(stored.T, bits).T,
            name + ".scales": scales.T, name + ".g_idx": index.astype(np.int32)}, twin


def awq(name, w):
    codes, scales, zeros, twin = by_group(w, 4, 32)
    places = np.array([0, 2, 4, 6, 1, 3, 5, 7])
    pack = lambda x: words(x.reshape(x.shape[0], -1, 8)[:, :, places].reshape(x.shape).T, 4).T
    return {name + ".qweight": pack(codes.T), name + ".qzeros": pack(zeros.T), name + ".scales": scales.T}, twin


def pack_quantized(name, w, bits=4, symmetric=True):
    n, k = w.shape
    if symmetric:
        groups = w.reshape(n, -1, 32)
        scale = np.maximum(np.abs(groups).max(2) / (2**(bits - 1) - 0.5), 1e-4).astype(np.float32)
        codes = np.clip(np.round(groups / scale[:, :, None]), -2**(bits - 1), 2**(bits - 1) - 1)
        twin = (codes.astype(np.float32) * scale[:, :, None]).reshape(n, k)
        codes, extra = codes.reshape(n, k).astype(np.int64) + 2**(bits - 1), {}
    else:
        codes, scale, zeros, twin = by_group(w, bits, 32)
        extra = {name + ".weight_zero_point": words(zeros, bits)}
    return {name + ".weight_packed": words(codes.T, bits).T, name + ".weight_scale": scale,
            name + ".weight_shape": np.array([n, k], np.int64), **extra}, twin


NF4 = np.array([-1, -.6962, -.5251, -.3949, -.2844, -.1848, -.0911, 0, .0796, .1609, .2461, .3379, .4407, .5626, .723, 1],
               np.float32)


def nf4(name, w, nested=True):
    blocks = w.reshape(-1, 64)
    absmax = np.abs(blocks).max(1)
    own = name + ".weight"
    state = {"quant_type": "nf4", "blocksize": 64, "dtype": "float32", "shape": list(w.shape)}
    parts = {own + ".quant_map": NF4}
    if nested:
        levels, offset = np.linspace(-1, 1, 256).astype(np.float32), np.float32(absmax.mean())
        rest = absmax - offset
        scale = np.array([max(np.abs(rest[i:i + 256]).max(), 1e-6) for i in range(0, len(rest), 256)], np.float32)
        each = scale[np.arange(len(rest)) // 256]
        codes = np.abs(rest[:, None] / each[:, None] - levels).argmin(1).astype(np.uint8)
        absmax = levels[codes] * each + offset
        parts |= {own + ".absmax": codes, own + ".nested_absmax": scale, own + ".nested_quant_map": levels}
        state |= {"nested_blocksize": 256, "nested_offset": float(offset), "nested_dtype": "float32"}
    else:
        parts[own + ".absmax"] = absmax.astype(np.float32)
    absmax = absmax.astype(np.float32)
    codes = np.abs(blocks[:, :, None] / np.maximum(absmax, 1e-9)[:, None, None] - NF4).argmin(2)
    flat = codes.reshape(-1)
    parts[own] = (flat[0::2] << 4 | flat[1::2]).astype(np.uint8)[:, None]
    parts[own + ".quant_state.bitsandbytes__nf4"] = np.frombuffer(json.dumps(state).encode(), np.uint8)
    return parts, (NF4[codes] * absmax[:, None]).reshape(w.shape)


def row_int8(name, w):
    scb = np.maximum(np.abs(w).max(1), 1e-6).astype(np.float32)
    codes = np.round(w / scb[:, None] * 127).astype(np.int8)
    return {name + ".weight": codes, name + ".SCB": scb, name + ".weight_format": np.array(0, np.uint8)}, \
        codes.astype(np.float32) * scb[:, None] * np.float32(7.874015718698502e-3)


def e4m3_values():
    bits = np.arange(256)
    exponent, mantissa = bits >> 3 & 15, bits & 7
    values = np.where(exponent > 0, (8 + mantissa) * 2.0**(exponent - 10), mantissa * 2.0**-9)
    return np.where(bits & 127 == 127, np.nan, np.where(bits & 128, -values, values)).astype(np.float32)


def fp8(name, w, block=None, rows=False, key=".weight_scale_inv"):
    values = e4m3_values()
    n, k = w.shape
    if block:
        grid = [[np.abs(w[i:i + block, j:j + block]).max() for j in range(0, k, block)] for i in range(0, n, block)]
        scale = (np.array(grid) / 448).astype(np.float32)
        full = np.repeat(np.repeat(scale, block, 0), block, 1)[:n, :k]
    elif rows:
        scale = (np.abs(w).max(1, keepdims=True) / 448).astype(np.float32)
        full = np.broadcast_to(scale, w.shape)
    else:
        scale = np.array([np.abs(w).max() / 448], np.float32)
        full = np.broadcast_to(scale, w.shape)
    order = np.argsort(values[:255 - 128])  # the codes that are not negative, without NaN
    sorted_values = values[order]
    magnitude = np.abs(w / full)
    at = np.clip(np.searchsorted(sorted_values, magnitude), 1, len(order) - 1)
    at -= magnitude - sorted_values[at - 1] < sorted_values[at] - magnitude
    codes = (order[at] | np.where(w < 0, 128, 0)).astype(np.uint8)
    return {name + ".weight": ("F8_E4M3", codes), name + key: scale}, values[codes] * full


def mxfp4(name, w):
    """GPT-OSS's experts [E, N, K]: NAME_blocks and NAME_scales."""
    levels = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6], np.float32)
    blocks = w.reshape(*w.shape[:2], -1, 32)
    exponent = np.floor(np.log2(np.maximum(np.abs(blocks).max(3), 1e-20))).astype(int) - 2
    codes = np.abs(np.ldexp(blocks, -exponent[..., None])[..., None] - levels).argmin(4)
    return {name + "_blocks": (codes[..., 0::2] | codes[..., 1::2] << 4).astype(np.uint8),
            name + "_scales": (exponent + 127).astype(np.uint8)}, \
        np.ldexp(levels[codes], exponent[..., None]).reshape(w.shape).astype(np.float32)
