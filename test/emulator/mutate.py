#!/usr/bin/env python3
"""Removes each barrier, wait and bound check of the CUDA kernels in turn: the emulator must notice.

    mutate.py --bin build/bin --standins build/test/emulator/driver --model test-data/tiny/llama [--only gemm.cuh]

A mutation is noticed when a checked run in one of three orders of threads reports it, or when the ids or the bits of
the logits differ from those of the unchanged kernels. What nobody notices must be in HARMLESS below with its reason;
otherwise, and for a reason that is no longer needed, the exit status is 1. Prints a table.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile


# What to remove: a pattern, and what takes its place.
RULES = [
    (re.compile(r"__syncthreads\(\);"), ";"),
    (re.compile(r"__syncwarp\(\);"), ";"),
    (re.compile(r"copyAsyncWait<[^;]*>\(\);"), ";"),
    (re.compile(r"^(\s*)if \(\w+ >= (step->\w|countRows<.*>\(step\)|rows|count)( \|\| [^)]*)?\)$"), r"\1if (false)"),
    (re.compile(r"\|\| token >= rows"), ""),
    (re.compile(r"keep\[j\] = token < rows"), "keep[j] = true"),
    (re.compile(r"key >= low\[r\] && key < high\[r\] \?"), "key < high[r] ?"),
    (re.compile(r"key >= low\[r\] && key < high\[r\] \?"), "key >= low[r] ?"),
]

# (file, the line's text) -> why nobody can notice.
HARMLESS = {}


def mutations(folder, only):
    for path in sorted(folder.glob("*.cuh")):
        if path.name == "device.cuh" or (only and path.name != only):
            continue
        for number, line in enumerate(path.read_text().split("\n"), 1):
            for pattern, instead in RULES:
                changed = pattern.sub(instead, line)
                if changed != line:
                    yield path.name, number, line.strip(), changed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of llmc and llmrt")
    parser.add_argument("--standins", type=pathlib.Path, required=True, help="folder of the stand-in libraries")
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--compile-flags", default="", help="further flags of llmc compile")
    parser.add_argument("--only", help="mutate this header only")
    args = parser.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="mutate-"))
    base = {**os.environ, "SIMT_MODE": "checked", "LLMC_NVRTC": str(args.standins / "libnvrtc.so"),
            "SIMT_CACHE": os.environ.get("SIMT_CACHE", str(work / "objects"))}

    def outcome(edit=None):
        """What the runs showed: a report, or ids and logits."""
        env = {**base, "LLMC_CACHE_DIR": str(work / "cache")}
        if edit:
            env["SIMT_EDIT"] = edit
            env["LLMC_CACHE_DIR"] = tempfile.mkdtemp(dir=work)
        plan = work / "m.plan"
        made = subprocess.run([args.bin / "llmc", "compile", args.model, "-q", "--target", "cuda:sm_80", "-o", plan,
                               *args.compile_flags.split()], env=env, capture_output=True, text=True)
        if made.returncode:
            return "does not compile: " + made.stderr.strip()[-300:]
        env["LD_LIBRARY_PATH"] = f"{args.standins}:{os.environ.get('LD_LIBRARY_PATH', '')}"
        seen = []
        # 150 tokens in chunks of 70: three tiles of keys, long query tiles, and then single tokens.
        prompt = ",".join(str(3 + 7 * i % 200) for i in range(150))
        for order in ("forward", "reverse", "random:7"):
            run = subprocess.run([args.bin / "llmrt", "run", plan, "--prompt-ids", prompt, "-n", "2", "--temperature", "0",
                                  "--ignore-eos", "--json", "--max-num-batched-tokens", "70",
                                  "--logits-out", work / "logits.npy"],
                                 env={**env, "SIMT_ORDER": order}, capture_output=True, text=True, timeout=600)
            if run.returncode:
                reports = [line for line in run.stderr.split("\n") if line.startswith("emulated device: ")]
                return "reported (" + order.split(":")[0] + "): " + (reports or [run.stderr.strip()[-200:]])[0][17:]
            seen.append((json.loads(run.stdout)["ids"], (work / "logits.npy").read_bytes()))
        # Five sequences that start and end apart: graphs of four replay steps of three.
        batch = subprocess.run([args.bin / "llmrt", "bench", plan, "-p", "9", "-n", "6", "-b", "5",
                                "--max-num-batched-tokens", "5", "--json"],
                               env=env, capture_output=True, text=True, timeout=600)
        if batch.returncode:
            reports = [line for line in batch.stderr.split("\n") if line.startswith("emulated device: ")]
            return "reported (batch): " + (reports or [batch.stderr.strip()[-200:]])[0][17:]
        return seen

    unchanged = outcome()
    if isinstance(unchanged, str):
        sys.exit("the unchanged kernels: " + unchanged)
    if any(result != unchanged[0] for result in unchanged):
        sys.exit("the unchanged kernels give other results in another order")
    failures = 0
    total = noticed = 0
    # The headers as this compiler has them.
    texts = work / "texts"
    subprocess.run([args.bin / "llmc", "compile", args.model, "-q", "--emit", f"cuda={texts}", *args.compile_flags.split()],
                   env={**base, "LLMC_CACHE_DIR": str(work / "cache")}, check=True)
    for name, number, text, changed in mutations(texts, args.only):
        total += 1
        result = outcome(f"{name}:{number}:{changed}")
        reason = HARMLESS.get((name, text))
        if isinstance(result, str):
            what = result
        elif result != unchanged:
            what = "noticed: other results"
        else:
            what = f"harmless: {reason}" if reason else "NOT NOTICED"
        if what.startswith("does not compile") or what == "NOT NOTICED":
            failures += 1
        noticed += what.startswith(("reported", "noticed"))
        print(f"{name}:{number}: {text}\n    -> {changed.strip()}\n    {what}", flush=True)
    print(f"{noticed} of {total} mutations noticed, {failures} unexplained")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
