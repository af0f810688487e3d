#!/usr/bin/env python3
"""Runs the CPU kernels of a level that this machine lacks, in an emulator, and compares the bits.

  run_levels.py --build BUILD [--all | --only NAME] [--work DIR] [--level LEVEL]
                [--emulator PROGRAM] [--display term] [--model CPU]

What kernels do here, at this machine's level, is recorded: those of the unit tests of code generation and those of
tiny models' plans. Bochs boots our own ROM (guest/), which reads a recording from its disk, calls the kernels of
the other level on the recorded memory and compares what they leave behind; for AArch64 a program of the same text does
so under qemu-aarch64. One line a recording; --all takes every unit test and more plans. Where bits differ in Bochs,
this machine's own level runs there as well: a difference that it shows too is the emulator's. Exit status: 0 all the
same, 1 a difference or a failure, 2 wrong usage, 77 skipped: the emulator isn't here. Debian: apt-get install bochs
bochs-term qemu-user.
"""

import argparse
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

OWN_LEVEL = "x86-64-v3"  # the level whose results are recorded
# A CPU that has the level, as Bochs names it (the second since Bochs 3.0) and qemu does.
BOCHS_MODELS = {"x86-64-v4": "tigerlake", "x86-64-v4-amx": "sapphire_rapids"}
QEMU_MODELS = {"aarch64-dotprod": "neoverse-n1", "aarch64-i8mm": "max"}
COMPLETE = "@end of the recording"
SECTORS = 16 * 63  # a cylinder
BLOCK = 128 * 512  # what the guest reads at once


def fail(message, status=1):
    print(f"run_levels.py: {message}", file=sys.stderr)
    sys.exit(status)


def make_disk(recording, disk):
    """The recording, padded to what the guest reads and to whole cylinders; returns their number."""
    shutil.copyfile(recording, disk)
    size = os.path.getsize(disk)
    size += -size % BLOCK
    size += -size % (SECTORS * 512)
    os.truncate(disk, size)
    return size // (SECTORS * 512)


def configuration(folder, rom, model, cylinders):
    (folder / "vga.bin").write_bytes(bytes(2048))  # a display is emulated, and nothing is shown
    return f"""
display_library: {options.display}
megs: 1024
cpu: model={model}, count=1, ips=100000000, reset_on_triple_fault=0
romimage: file={rom}
vgaromimage: file={folder}/vga.bin
vga: extension=none, update_freq=1
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata0-master: type=disk, mode=flat, path={folder}/disk, cylinders={cylinders}, heads=16, spt=63
boot: disk
com1: enabled=1, mode=file, dev={folder}/serial
clock: sync=none
log: {folder}/log
panic: action=fatal
error: action=ignore
info: action=ignore
debug: action=ignore
"""


def replay(bochs, rom, model, recording, limit):
    """The lines that the guest printed, the last of them `@end ...`."""
    with tempfile.TemporaryDirectory(prefix="llmc-replay-") as name:
        folder = pathlib.Path(name)
        cylinders = make_disk(recording, folder / "disk")
        (folder / "bochsrc").write_text(configuration(folder, rom, model, cylinders))
        (folder / "debugger").write_text("c\n")  # Debian's Bochs starts in its debugger
        serial = folder / "serial"
        serial.touch()
        command = [bochs, "-q", "-f", folder / "bochsrc"]
        if "-rc" in subprocess.run([bochs, "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   stdin=subprocess.DEVNULL, check=False).stdout:
            command += ["-rc", folder / "debugger"]
        screen, terminal = pty.openpty()
        emulator = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, cwd=folder,
                                    start_new_session=True, env={**os.environ, "TERM": "xterm"})
        os.close(terminal)
        shown = bytearray()

        def drain():
            try:
                while part := os.read(screen, 65536):
                    shown.extend(part)
                    del shown[:-4096]
            except OSError:
                pass

        threading.Thread(target=drain, daemon=True).start()
        try:
            end = time.monotonic() + limit
            while time.monotonic() < end:
                text = serial.read_text(errors="replace")
                if "\n@end " in text and text.endswith("\n"):
                    return text.splitlines()
                if emulator.poll() is not None:
                    log = (folder / "log").read_text(errors="replace") if (folder / "log").exists() else ""
                    panics = [line for line in log.splitlines() if "PANIC" in line]
                    fail(f"Bochs ended: {' '.join(panics) or shown.decode(errors='replace')[-800:]}")
                time.sleep(0.1)
            fail(f"{recording}: no end after {limit} s; so far: {serial.read_text(errors='replace')[-500:]}")
        finally:
            emulator.kill()
            emulator.wait()
            os.close(screen)


def replay_in_qemu(qemu, program, model, recording, limit):
    """The same from the program of guest/Linux.cpp."""
    # Memory is mapped where it was, and the emulator's own may lie there: it lies elsewhere the next time.
    for _ in range(5):
        try:
            result = subprocess.run([qemu, "-cpu", model, program, recording], capture_output=True, text=True,
                                    errors="replace", timeout=limit, check=False)
        except subprocess.TimeoutExpired as error:
            fail(f"{recording}: no end after {limit} s; so far: {(error.stdout or b'')[-500:]}")
        lines = result.stdout.splitlines()
        if not lines or not lines[-1].startswith("@end "):
            fail(f"qemu ended with {result.returncode}: {(result.stderr or result.stdout)[-800:]}")
        if lines[-1] != "@end an address of the recording is the emulator's own":
            break
    return lines


def run(command, environment, what):
    result = subprocess.run([str(part) for part in command], env={**os.environ, **environment}, text=True,
                            capture_output=True, check=False)
    if result.returncode:
        fail(f"{what}: exit {result.returncode}: {(result.stderr or result.stdout)[-1500:]}")


# Enough to meet every kind of kernel in the default run; the rest are more shapes of the same.
KERNELS = ":".join("""
Formats/Gemm.MatchesReferenceBitwise/4 Formats/Gemm.MatchesReferenceBitwise/7 Formats/Gemm.MatchesReferenceBitwise/8
Formats/Gemm.MatchesReferenceBitwise/14 Formats/ExpertGemm.MatchesReferenceBitwise/0 GemmInt8.* GemmEpilogue.Glu*
AttentionShapes/*/5 AttentionShapes/*/6 AttentionShapes/*/13 AttentionShapes/*/15 Norm.Quant* Quantize.* Rope*
LatentAppend.* Rules/Route.MatchesReference/0 Combine.* Embed.ReadsA* GatherRows.* HeadGemm.*
""".split()).replace("AttentionShapes/*", "Shapes/AttentionShapes.MatchesReferenceAndIsInvariant")
# Tiny model, flags of the compiler. Together: every type of weights, activations and cache.
PLANS = [line.split() for line in """
llama --int4
gemma3 --int8 --kv-cache-dtype int8
""".strip().splitlines()]
MORE_PLANS = [line.split() for line in """
llama --int8
llama --quantization none
llama --int4 --activations f32
llama --int8 --kv-cache-dtype bf16
qwen2 --int8 --activations f32
qwen2 --int4 --kv-cache-dtype f32
qwen3 --int4
gemma2 --int4
gemma3 --quantization none --kv-cache-dtype f32
gpt2 --int4
gpt2 --quantization none --kv-cache-dtype int8
gpt-neox --int8
bloom --int4 --kv-cache-dtype bf16
phi3 --int4
llama3-rope --int8
falcon-gqa --int4
mistral --int4 --kv-cache-dtype int8
mixtral --int4
qwen2-moe --int8
deepseek-v2 --int8
deepseek-v3 --int4
gpt-oss --int4
gpt-oss --quantization none --kv-cache-dtype bf16
""".strip().splitlines()]


class Recordings:
    """What can be recorded: the unit tests' kernels, and each plan's."""

    def __init__(self, build, work, everything):
        self.build, self.work, self.filter = build, work, "*" if everything else KERNELS
        self.plans = {"_".join([model, *(flag.lstrip("-") for flag in flags)]): (model, flags)
                      for model, *flags in PLANS + (MORE_PLANS if everything else [])}

    def names(self):
        return ["kernels", *self.plans]

    def make(self, name, level):
        """Records `name` for the code of `level`; returns the file."""
        recording = self.work / f"{name}.{level}"
        environment = {"LLMC_RECORD_LEVEL": level}
        if name == "kernels":
            run([self.build / "test/unit/codegen_cpu_test", "--gtest_filter=" + self.filter],
                {**environment, "LLMC_RECORD_KERNELS": str(recording)}, "the unit tests")
            return recording
        model, flags = self.plans[name]
        plan = self.work / f"{name}.plan"
        if not plan.exists():
            # Named, a level has code even where the plan has no use for it.
            levels = ["--cpu-level", OWN_LEVEL, "--cpu-level", options.level]
            run([self.build / "bin/llmc", "compile", self.build / "test-data/tiny" / model, *flags, *levels,
                 "-o", plan], {}, name)
        run([self.build / "test/replay/record_plan", plan, recording], environment, name)
        return recording


class Outcome:
    """What the guest said of a recording."""

    def __init__(self, lines):
        self.lines = lines
        told = {line.split()[0]: line.split() for line in lines if line.startswith("@")}
        calls = told.get("@calls", [])
        self.ended = len(calls) == 8 and calls[1] == calls[3] and int(calls[1]) > 0 and lines[-1] == COMPLETE
        self.calls, self.bytes, self.count = (calls[1], calls[5], int(calls[7])) if self.ended else ("0", "0", 0)
        # Kernel, value and expected value, but not the address.
        self.differences = [re.sub(r" at 0x[0-9a-f]+", "", line) for line in lines if line.startswith("@differs")]
        self.same = self.ended and self.count == 0

    def is_explained_by(self, control):
        """The same differences, all of them shown."""
        return (self.ended and control.ended and self.count == len(self.differences)
                and self.differences == control.differences)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--only", metavar="NAME", help="one recording: kernels, llama_int4, ...")
parser.add_argument("--build", required=True, type=pathlib.Path, help="the folder of the build")
parser.add_argument("--all", action="store_true", help="every unit test of the kernels, and more plans")
parser.add_argument("--work", type=pathlib.Path, help="folder for temporary files, up to 300 MB")
parser.add_argument("--level", choices=[*BOCHS_MODELS, *QEMU_MODELS], default="x86-64-v4",
                    help="the level to run (default: %(default)s)")
parser.add_argument("--emulator", help="the emulator (default: bochs-bin, bochs, or qemu-aarch64 of the PATH)")
parser.add_argument("--model", help="the emulated CPU (default: one that has the level)")
parser.add_argument("--limit", type=float, default=900, help="seconds for a recording (default: %(default)s)")
parser.add_argument("--display", default="term", help="the emulator's display library (default: %(default)s)")
options = parser.parse_args()
in_bochs = options.level in BOCHS_MODELS
if in_bochs:
    emulator = options.emulator or shutil.which("bochs-bin") or shutil.which("bochs")
else:
    emulator = options.emulator or shutil.which("qemu-aarch64")
if not emulator:
    fail("skipped: there is no " + ("Bochs here (Debian: apt-get install bochs bochs-term)" if in_bochs else
                                    "qemu-aarch64 here (Debian: apt-get install qemu-user)"), 77)
options.model = options.model or {**BOCHS_MODELS, **QEMU_MODELS}[options.level]
if in_bochs and options.model not in subprocess.run([emulator, "--help", "cpu"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                       text=True, stdin=subprocess.DEVNULL, check=False).stdout.split():
    fail(f"skipped: {emulator} has no CPU {options.model} (test/replay/README.md says which Bochs has)", 77)

with tempfile.TemporaryDirectory(prefix="llmc-levels-", dir=options.work) as temporary:
    recordings = Recordings(options.build, pathlib.Path(temporary), options.all)
    if options.only and options.only not in recordings.names():
        fail(f"--only: no recording '{options.only}'; there are {', '.join(recordings.names())}", 2)

    def outcome(name, level):
        recording = recordings.make(name, level)
        if in_bochs:
            lines = replay(emulator, options.build / "test/replay/rom.bin", options.model, recording, options.limit)
        else:
            lines = replay_in_qemu(emulator, options.build / "test/replay/replay.aarch64", options.model, recording,
                                   options.limit)
        result = Outcome(lines)
        recording.unlink()
        return result

    bad = False
    for name in [options.only] if options.only else recordings.names():
        result = outcome(name, options.level)
        what = f"{name}: {result.calls} calls at {options.level}, {result.bytes} bytes compared"
        if result.same:
            print(f"{what}: the same bits", flush=True)
        elif in_bochs and result.differences and result.is_explained_by(outcome(name, OWN_LEVEL)):
            # Bochs 2.7 rounds ties away from zero when it narrows to f16.
            print(f"{what}: the same bits but for {result.count} that {OWN_LEVEL}'s own code gets there too: "
                  "the emulator's fault", flush=True)
        else:
            bad = True
            print("\n  ".join([f"{name}: NOT the same at {options.level}:", *result.lines]), flush=True)
sys.exit(1 if bad else 0)
