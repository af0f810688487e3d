#!/usr/bin/env python3
"""Removes each barrier, wait, commit, fence and bound check of the CUDA kernels in turn: the emulator must notice.

    mutate.py --test build/test/unit/emulator_kernel_test [--only gemm.cuh] [--jobs 2]

A removal is noticed when emulator_kernel_test fails: by a report of the checker, or because results or their bits
differ. What nobody notices must be in harmless.txt beside this file with the reason why nothing can go wrong; a
removal that is noticed must not be. Otherwise the exit status is 1. Prints a line for each removal.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
KERNELS = HERE.parents[1] / "codegen/cuda/kernels"

# Which cases run the text of a header.
CASES = {
    "activations.cuh": "*Gemm.*", "attention.cuh": "*Attention.*", "attention_sm90.cuh": "*Attention.*/hopper*:HopperAttention.*", "attention_splits.cuh": "*Attention.*",
    "attention_block.cuh": "*Attention.*", "elementwise.cuh": "Elementwise.*",
    "embed.cuh": "Embed.*", "gemm.cuh": "*Gemm.*", "gemm_tiled.cuh": "*Gemm.*", "moe.cuh": "Route.*:*Experts.*:Combine.*", "norm.cuh": "Norm.*:Quantize.*",
    "rope.cuh": "Rope.*:*RopeAppend.*:LatentAppend.*", "sampling.cuh": "Sampling.*:*EqualsTheHost/3", "softmax.cuh": "*Attention.*", "weights.cuh": "*Gemm.*",
}

CPU_SECONDS = 90  # of a test without its kernels' compilation; undisturbed it takes 20

STATEMENT = re.compile(r"(?:(?:__syncthreads|__syncwarp|__threadfence|barrier|copyAsyncCommit|copyAsyncWait<[^;]*>|mbarrierInitFence|proxyFence|"
                       r"wgmmaFence|wgmmaCommit|wgmmaWait<[^;]*>)\(\)|(?:mbarrierWait|mbarrierArrive|release|barrierOf)\([^;]*\));")
COMPARISON = r"[^&|?;]*?(?:>=|<=|==|!=|[<>])[^&|?;]*?"
IF = re.compile(r"^(\s*(?:else )?(?:if|while) \()(.*)(\)(?: \{| break;)?)$")
FLAG = re.compile(r"^(\s*(?:const bool )?(?:exists|keep(?:\[j\])?|x) = )(.*?)(;?)$")
ARGUMENT = re.compile(r"^(.*, |\s*)([^,]* && [^,]*)(\);)$")
MINIMUM = re.compile(r"\bmin\(([^(),]+), ([^(),]+)\)")


def clauses(condition):
    """The parts of a condition between && and ||, as (begin, end, operator that joins them)."""
    if "constexpr" in condition:
        return
    begin, depth = 0, 0
    operator = "||" if "||" in condition else "&&"
    for at in range(len(condition) + 1):
        if at == len(condition) or (depth == 0 and condition[at:at + 2] in ("&&", "||")):
            text = condition[begin:at]
            left = begin + len(text) - len(text.lstrip())
            right = at - (len(text) - len(text.rstrip()))
            yield left, right, operator
            begin = at + 2
        elif condition[at] in "([{":
            depth += 1
        elif condition[at] in ")]}":
            depth -= 1


def is_constant(text):
    """Made of what the compiler knows: it chooses a text, and guards nothing."""
    names = re.findall(r"(?:\w+::)*([A-Za-z_]\w*)", re.sub(r"\b0[xX]\w+|\b\d\w*", "", text))
    return all(re.fullmatch(r"k[A-Z]\w*|[CDEKRU]|DV|Kv|E", name) for name in names)


def is_check(text):
    if is_constant(text):
        return False
    return re.fullmatch(COMPARISON, text) or text in ("exists", "keep", "keep[j]", "zero")


def changes(line, following):
    """The lines that take the place of \p line, one removal each."""
    for match in STATEMENT.finditer(line):
        yield line[:match.start()] + ";" + line[match.end():]
    leaves = re.match(r"\s*(return|continue|break);", following) or line.rstrip().endswith(" break;")
    for pattern in (IF, FLAG, ARGUMENT):
        match = pattern.match(line)
        if not match or "constexpr" in line:
            continue
        head, condition, tail = match.groups()
        # A check that leaves is removed when it never does; one that guards what follows, when it always lets pass.
        never = leaves and pattern is IF
        for begin, end, operator in clauses(condition):
            if is_check(condition[begin:end]):
                yield head + condition[:begin] + ("false" if never else "true") + condition[end:] + tail
        return
    for match in MINIMUM.finditer(line):
        if "127" not in match.group():
            for kept in match.groups():
                yield line[:match.start()] + kept + line[match.end():]
    match = re.match(r"^(.*?[=(,] ?|\s*)([^=(,?]*[^=(,?]) \? (.*)$", line)
    if match and "constexpr" not in line and not re.search(r"\[[^]]*\?", line):
        head, condition, rest = match.groups()
        for begin, end, _ in clauses(condition):
            if is_check(condition[begin:end]):
                yield head + condition[:begin] + "true" + condition[end:] + " ? " + rest


def mutations(only):
    """(header, number of the line, what takes its place, its name in harmless.txt)"""
    names = collections.Counter()
    for name in sorted(CASES):
        if only and name != only:
            continue
        lines = (KERNELS / name).read_text().split("\n")
        before = ""
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.lstrip().startswith(("//", "#", "*")) or "static_assert" in line:
                continue
            for changed in changes(line, lines[number] if number < len(lines) else ""):
                k = key(name, line, changed, before)
                names[k] += 1
                yield name, number, changed, k if names[k] == 1 else f"{k} ({names[k]})"
            before = line


def outcome(test, name, number, changed):
    """(noticed, how)"""
    env = {**os.environ, "SIMT_EDIT": f"{name}:{number}:{changed}"}
    # Processor time: how busy the machine is decides nothing.
    limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    run = subprocess.run([test, "--gtest_filter=" + CASES[name], "--gtest_fail_fast"], env=env, text=True, preexec_fn=limit,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if run.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return True, "noticed: does not end"
    if re.search(r"\.cuh:\d+:\d+: error:", run.stdout):
        return False, "DOES NOT COMPILE: " + re.search(r"error: (.*)", run.stdout).group(1)
    if run.returncode == 0:
        return False, ""
    report = re.search(r"^(\w+: [a-z ]+: block .*)$", run.stdout, re.M)
    return True, "reported: " + report.group(1)[:160] if report else "noticed: other results"


def key(name, line, changed, before):
    """What names a removal in harmless.txt; a statement alone is told from its like by the line before."""
    where = f" after {before.strip()}" if STATEMENT.fullmatch(re.sub(r" *//.*", "", line.strip())) else ""
    return f"{name}: {line.strip()} -> {changed.strip()}{where}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--test", type=pathlib.Path, help="emulator_kernel_test")
    parser.add_argument("--only", choices=sorted(CASES), help="mutate this header only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--list", action="store_true", help="only list what would be removed")
    args = parser.parse_args()
    harmless = {}
    for entry in (HERE / "harmless.txt").read_text().split("\n\n"):
        lines = [l for l in entry.split("\n") if l and not l.startswith("#")]
        if lines:
            harmless[lines[0]] = " ".join(l.strip() for l in lines[1:])
    all_of_them = list(mutations(args.only))
    if args.list:
        for _, number, _, k in all_of_them:
            print(f"{number}: {k}")
        return
    noticed, wrong, seen = 0, 0, set()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = [(m, pool.submit(outcome, args.test, *m[:3])) for m in all_of_them]
        for (name, number, _, k), result in results:
            was_noticed, how = result.result()
            seen.add(k)
            noticed += was_noticed
            if was_noticed and k in harmless:
                how += "; NOT HARMLESS, as harmless.txt has it"
                wrong += 1
            elif not was_noticed and not harmless.get(k):
                how = how or "NOT NOTICED"
                wrong += 1
            elif not was_noticed:
                how = "harmless: " + harmless[k]
            print(f"{name}:{number}\n  {k}\n  {how}", flush=True)
    for k in harmless:
        name = k.split(":")[0]
        if k not in seen and (name not in CASES or args.only in (None, name)):
            print(f"harmless.txt names what is not in the kernels: {k}")
            wrong += 1
    print(f"{noticed} of {len(all_of_them)} removals noticed, {wrong} unexplained")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
