#!/usr/bin/env python3
"""Removes each barrier, wait, commit, fence and bound check of the CUDA kernels in turn: the emulator must notice.

    mutate.py --test build/test/unit/emulator_kernel_test --work DIR [--only gemm.cuh ...] [--quick] [--jobs 2]

The kernels are built once, with every removal in them as a branch (Removals.h), and each test runs once with nothing
removed: it notes the removals with which it would go another way from some point on. Those that it doesn't note can't
change it, since runs are deterministic. So a removal runs the tests that noted it alone, the shortest first, up to the
first that fails: by a report of the checker, or because results or their bits differ. What nobody notices must be in
harmless.txt beside this file with the reason why nothing can go wrong; a removal that is noticed must not be.
Otherwise the exit status is 1. Prints a line for each removal. --quick: those of harmless.txt are not run.
DIR keeps objects and notes by their content.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
KERNELS = HERE.parents[1] / "codegen/cuda/kernels"

# The tests whose kernels may hold the text of a header.
CASES = {
    "activations.cuh": "*Gemm.*:*Experts.*", "attention.cuh": "*Attention.*", "attention_sm90.cuh": "*Attention.*/hopper*:HopperAttention.*", "attention_splits.cuh": "*Attention.*",
    "attention_block.cuh": "*Attention.*", "elementwise.cuh": "Elementwise.*",
    "embed.cuh": "Embed.*", "gemm.cuh": "*Gemm.*:*Experts.*", "gemm_tiled.cuh": "*Gemm.*:*Experts.*", "moe.cuh": "Route.*:*Experts.*:Combine.*", "norm.cuh": "Norm.*:Quantize.*",
    "rope.cuh": "Rope.*:*RopeAppend.*:LatentAppend.*", "sampling.cuh": "*Sampling*", "softmax.cuh": "*Attention.*", "weights.cuh": "*Gemm.*:*Experts.*",
}

STATEMENT = re.compile(r"(?:(?:__syncthreads|__syncwarp|__threadfence|barrier|copyAsyncCommit|copyAsyncWait<[^;]*>|mbarrierInitFence|proxyFence|"
                       r"wgmmaFence|wgmmaCommit|wgmmaWait<[^;]*>)\(\)|(?:mbarrierWait|mbarrierArrive|release|barrierOf)\([^;]*\));")
COMPARISON = r"[^&|?;]*? (?:>=|<=|==|!=|<|>) [^&|?;]*?"  # with spaces: no shift, no template
IF = re.compile(r"^(\s*(?:else )?(?:if|while) \()(.*)(\)(?: \{| break;)?)$")
FLAG = re.compile(r"^(\s*(?:const bool )?(?:exists|keep(?:\[j\])?|x) = )(.*?)(;?)$")
RETURN = re.compile(r"^(\s*return )([^?]* (?:&&|\|\|) [^?]*)(;)$")
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


Change = collections.namedtuple("Change", "begin end kind text")  # text: what takes the place of line[begin:end]


def changes(line, following):
    """The removals of \p line."""
    for match in STATEMENT.finditer(line):
        yield Change(match.start(), match.end(), "statement", ";")
    leaves = re.match(r"\s*(return( false)?|continue|break);", following) or line.rstrip().endswith(" break;")
    for pattern in (IF, FLAG, RETURN, ARGUMENT):
        match = pattern.match(line)
        if not match or "constexpr" in line:
            continue
        # A check that leaves is removed when it never does; one that guards what follows, when it always lets pass.
        never = leaves and pattern is IF
        yield from clause_changes(match.group(2), match.start(2), "false" if never else "true")
        return
    for match in MINIMUM.finditer(line):
        if "127" not in match.group():
            yield Change(*match.span(), "left", match.group(1))
            yield Change(*match.span(), "right", match.group(2))
    at = line.find(" ? ")
    if at >= 0 and "constexpr" not in line and not re.search(r"\[[^]]*\?", line):
        begin = condition_begin(line, at)
        yield from clause_changes(line[begin:at], begin, "true")


def condition_begin(line, end):
    """Where the condition begins that ends at \p end, before a question mark."""
    depth = 0
    for at in range(end - 1, -1, -1):
        if line[at] in ")]}":
            depth += 1
        elif line[at] in "([{":
            depth -= 1
        left = line[:at + 1]
        if depth < 0 or (depth == 0 and (line[at] == "," or left.endswith((" :", "return")) or re.search(r"[^=!<>]=$", left))):
            return end - len(line[at + 1:end].lstrip())
    return len(line) - len(line.lstrip())


def clause_changes(condition, at, instead):
    for begin, end, _ in clauses(condition):
        if is_check(condition[begin:end]):
            yield Change(at + begin, at + end, instead, instead)


Removal = collections.namedtuple("Removal", "number header line change key")


def removals():
    """Those of all kernels, numbered from 1; and the texts of the headers with all of them as branches."""
    found, texts, names = [], {}, collections.Counter()
    for path in sorted(KERNELS.glob("*.cuh")):
        name, lines, branching, before = path.name, path.read_text().split("\n"), [], ""
        for number, line in enumerate(lines, 1):
            branching.append(line)
            if name not in CASES or not line.strip() or line.lstrip().startswith(("//", "#", "*")) or "static_assert" in line:
                continue
            here = []
            for change in changes(line, lines[number] if number < len(lines) else ""):
                k = key(name, line, line[:change.begin] + change.text + line[change.end:], before)
                names[k] += 1
                here.append(Removal(len(found) + 1, name, number, change, k if names[k] == 1 else f"{k} ({names[k]})"))
                found.append(here[-1])
            branching[-1] = with_branches(line, here)
            before = line
        texts[name] = "\n".join(branching)
    return found, texts


def with_branches(line, here):
    for removal in sorted(here, key=lambda r: -r.change.begin):
        begin, end, kind, _ = removal.change
        text, n = line[begin:end], removal.number
        if kind == "statement":
            text = f"SIMT_STATEMENT({n}, {text[:-1]});"
        elif kind in ("true", "false"):
            text = f"SIMT_{kind.upper()}({n}, {text})"
        elif kind == "left":
            text = f"SIMT_MINIMUM({n}, " + text.removeprefix("min(")
        else:
            continue  # the left one's branch is that of both
        line = line[:begin] + text + line[end:]
    return line


def write(path, text):
    """At once: another process may read it."""
    part = path.with_suffix(f".{os.getpid()}")
    part.write_text(text)
    part.rename(path)


class Tests:
    """The tests, run in processes of their own with the kernels that hold all removals."""

    def __init__(self, program, work, texts):
        self.program, self.work = program, work
        headers = work / "headers"
        headers.mkdir(parents=True, exist_ok=True)
        stamp = hashlib.sha256()
        for name, text in texts.items():
            path = headers / name
            if not path.exists() or path.read_text() != text:
                write(path, text)
            stamp.update(text.encode())
        libraries = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True).stdout
        for path in [program, *re.findall(r"=> (\S*libllmc_simt\S*) ", libraries), *(HERE / n for n in ("build-kernels", "Prelude.h", "Abi.h", "Removals.h"))]:
            stamp.update(pathlib.Path(path).read_bytes())
        self.notes = work / stamp.hexdigest()[:16]
        self.notes.mkdir(exist_ok=True)
        self.env = {**os.environ, "SIMT_HEADERS": str(headers), "SIMT_CACHE": str(work / "objects")}
        self.seconds, self.noted = {}, {}

    def named(self, pattern):
        out = subprocess.run([self.program, "--gtest_list_tests", "--gtest_filter=" + pattern], env=self.env, stdout=subprocess.PIPE, text=True, check=True).stdout
        suite = ""
        for line in out.splitlines():
            name = line.split("#")[0].strip()
            if not line.startswith(" "):
                suite = name
            else:
                yield suite + name

    def run(self, name, seconds=None, **env):
        # Processor time: how busy the machine is decides nothing.
        limit = lambda: seconds and resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        return subprocess.run([self.program, "--gtest_filter=" + name], env={**self.env, **env}, text=True, preexec_fn=limit,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def note(self, name):
        """Runs a test with nothing removed."""
        path = self.notes / re.sub(r"\W", "_", name)
        if not path.exists():
            part = path.with_suffix(f".{os.getpid()}")
            run = self.run(name, SIMT_REACHED=str(part))
            if run.returncode != 0:
                sys.exit(f"{name} fails with nothing removed:\n{run.stdout}")
            part.rename(path)
        lines = path.read_text().split()
        self.seconds[name], self.noted[name] = float(lines[0]), {int(n) for n in lines[1:]}

    def outcome(self, removal):
        """(noticed, how)"""
        tests = sorted((name for name in self.noted if removal.number in self.noted[name]), key=self.seconds.get)
        for name in tests:
            run = self.run(name, int(10 * self.seconds[name]) + 10, SIMT_REMOVE=str(removal.number))
            if run.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
                return True, f"noticed: does not end ({name})"
            if run.returncode == 0:
                continue
            report = re.search(r"^.*?(\w[\w ]*: block .*)$", run.stdout, re.M)
            return True, f"reported: {report.group(1)[:160]} ({name})" if report else f"noticed: other results ({name})"
        return False, f"NOT NOTICED by {len(tests)} tests" if tests else "NO TEST GOES ANOTHER WAY"


def key(name, line, changed, before):
    """What names a removal in harmless.txt; a statement alone is told from its like by the line before."""
    where = f" after {before.strip()}" if STATEMENT.fullmatch(re.sub(r" *//.*", "", line.strip())) else ""
    return f"{name}: {line.strip()} -> {changed.strip()}{where}"


def reasons():
    """harmless.txt: removal -> reason"""
    known = {}
    for entry in (HERE / "harmless.txt").read_text().split("\n\n"):
        lines = [l for l in entry.split("\n") if l and not l.startswith("#")]
        if lines:
            known[lines[0]] = " ".join(l.strip() for l in lines[1:])
    return known


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--test", type=pathlib.Path, help="emulator_kernel_test")
    parser.add_argument("--work", type=pathlib.Path, help="keeps objects and notes")
    parser.add_argument("--only", choices=sorted(CASES), nargs="+", help="removals of these headers only")
    parser.add_argument("--quick", action="store_true", help="do not run those of harmless.txt")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--list", action="store_true", help="only list what would be removed")
    args = parser.parse_args()
    headers = args.only or sorted(CASES)
    harmless = reasons()
    everything, texts = removals()
    chosen = [r for r in everything if r.header in headers]
    if args.list:
        for r in chosen:
            print(f"{r.line}: {r.key}")
        return
    if not args.test or not args.work:
        parser.error("--test and --work are needed")
    started = time.monotonic()
    tests = Tests(args.test.resolve(), args.work.resolve(), texts)
    noticed, not_run, wrong = 0, 0, 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        names = list(tests.named(":".join(CASES[h] for h in headers)))
        list(pool.map(tests.note, names))
        print(f"{len(names)} tests with nothing removed: {time.monotonic() - started:.0f} s", flush=True)
        results = [(r, None if args.quick and r.key in harmless else pool.submit(tests.outcome, r)) for r in chosen]
        for r, result in results:
            if result is None:
                not_run += 1
                continue
            was_noticed, how = result.result()
            noticed += was_noticed
            if was_noticed and r.key in harmless:
                how += "; NOT HARMLESS, as harmless.txt has it"
                wrong += 1
            elif not was_noticed and not harmless.get(r.key):
                wrong += 1
            elif not was_noticed:
                how = "harmless: " + harmless[r.key]
            print(f"{r.header}:{r.line}\n  {r.key}\n  {how}", flush=True)
    seen = {r.key for r in everything}
    for k in harmless:
        if k not in seen:
            print(f"harmless.txt names what is not in the kernels: {k}")
            wrong += 1
    skipped = f", {not_run} harmless ones not run" if not_run else ""
    print(f"{noticed} of {len(chosen)} removals noticed{skipped}, {wrong} unexplained, {time.monotonic() - started:.0f} s")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
