#!/usr/bin/env python3
"""Our ids of 5 MB of mixed text against those of Hugging Face's tokenizers, and the speed: tokenizer_text.py ENCODE_FILE TOKENIZER.json...

The text is made of this machine's files: documents, sources, and tables of CJK, emoji and every other script. Beside the tokenizers
given (byte-level BPE), one of each other kind is trained on a part of it. Those that normalize or look at categories see only what
is in Unicode 3.2 and of one category ever since: Hugging Face's tables are of several versions (U+1FBF4 is no digit in its NFKC). Prints a row a tokenizer; fails
where ids differ, and where a byte-level BPE is slower than --min-speed MB/s a core (0: only the ids count)."""
import argparse
import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


def files(root, endings, limit):
    """The beginnings of a folder's text files, `limit` bytes in all."""
    size = 0
    texts = []
    for path in sorted(pathlib.Path(root).rglob("*")):
        if size >= limit:
            break
        if path.is_file() and path.name.endswith(endings):
            try:
                text = path.read_text(encoding="utf-8")[:60000]
            except (UnicodeDecodeError, OSError):
                continue
            texts.append(text)
            size += len(text.encode())
    return "".join(texts)


def mixed_text():
    generator = random.Random(5)
    parts = [files("/usr/share/doc", ("README", ".md", "NEWS", "copyright", ".txt", "README.Debian"), 1_300_000),
             files("/usr/share/perl", (".pod", ".pm"), 500_000), files("/usr/include", (".h",), 700_000),
             files("/usr/lib/python3", (".py",), 700_000), files(REPOSITORY / "runtime", (".cpp", ".h", ".md"), 500_000)]

    def table(*ranges):
        return [chr(c) for first, end in ranges for c in range(first, end)]

    for pool, count in ((table((0x4E00, 0x9FA6), (0x3040, 0x3100), (0xAC00, 0xD7A4), (0x3400, 0x4DC0)), 250_000),
                        (table((0x1F300, 0x1FB00), (0x2600, 0x27C0)), 50_000), (table((0xA0, 0x3000)), 200_000)):
        for _ in range(count):
            parts.append(generator.choice(pool))
            if generator.random() < 0.1:
                parts.append(generator.choice([" ", "\n", "。", "!", "\u200d", "\ufe0f", "\u3000"]))
    parts += [f"{chr(c)}: {unicodedata.name(chr(c), '')}\n" for c in range(0x20, 0x30000, 7) if not 0xD800 <= c < 0xE000]
    return "".join(c for c in "".join(parts) if unicodedata.category(c) not in ("Cn", "Co", "Cs"))


def trained(text):
    """name, tokenizer: one of each kind, of published shapes."""
    def train(model, trainer, **members):
        tokenizer = Tokenizer(model)
        for name, member in members.items():
            setattr(tokenizer, name, member)
        tokenizer.train_from_iterator([text[at:at + 1000] for at in range(0, len(text), 1000)], trainer)
        return tokenizer

    special = ["<unk>", "<s>", "</s>"]
    metaspace = dict(pre_tokenizer=pre_tokenizers.Metaspace(), decoder=decoders.Metaspace())
    yield "Unigram", train(models.Unigram(), trainers.UnigramTrainer(vocab_size=4000, special_tokens=special, unk_token="<unk>",
                                                                     show_progress=False),
                           normalizer=normalizers.NFKC(), **metaspace)
    yield "WordPiece", train(models.WordPiece(unk_token="[UNK]"),
                             trainers.WordPieceTrainer(vocab_size=6000, special_tokens=["[UNK]"], show_progress=False),
                             normalizer=normalizers.BertNormalizer(), pre_tokenizer=pre_tokenizers.BertPreTokenizer())
    bytes_ = [f"<0x{b:02X}>" for b in range(256)]
    yield "BPE with byte fallback", train(
        models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True),
        trainers.BpeTrainer(vocab_size=6000, special_tokens=special + bytes_, limit_alphabet=1000, show_progress=False),
        normalizer=normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
        pre_tokenizer=pre_tokenizers.Split("▁", "merged_with_next"))
    pattern = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    yield "byte-level BPE, Llama 3's pattern", train(
        models.BPE(), trainers.BpeTrainer(vocab_size=8000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False),
        pre_tokenizer=pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]))


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("encode_file")
    arguments.add_argument("tokenizers", nargs="*")
    arguments.add_argument("--min-speed", type=float, default=20, help="MB/s of byte-level BPE")
    options = arguments.parse_args()
    text = mixed_text()
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        old = "".join(c for c in text if unicodedata.ucd_3_2_0.category(c) == unicodedata.category(c))
        cases = [(pathlib.Path(path).parent.name, Tokenizer.from_file(path), path, True) for path in options.tokenizers]
        for name, tokenizer in trained(text[:1_000_000]):
            tokenizer.save(str(folder / "tokenizer.json"))
            path = (folder / "tokenizer.json").rename(folder / f"{len(cases)}.json")
            # From the file: its scores are not bit for bit those that were trained.
            cases.append((name, Tokenizer.from_file(str(path)), path, name.startswith("byte-level")))
        print(f"{len(text.encode()) * 1e-6:.1f} MB of text\n{'tokenizer':34} {'ids':>8} {'differ':>7} {'MB/s':>6}")
        for name, tokenizer, path, is_byte_level in cases:
            seen = old if name in ("Unigram", "WordPiece") else text
            (folder / "text").write_bytes(seen.encode())
            run = subprocess.run([options.encode_file, path, folder / "text", folder / "ids"], capture_output=True, text=True)
            if run.returncode:
                sys.exit(f"{name}: {run.stderr}")
            ours = [int(line) for line in (folder / "ids").read_text().split()]
            wanted = tokenizer.encode(seen).ids
            differ = abs(len(ours) - len(wanted)) + sum(a != b for a, b in zip(ours, wanted))
            speed = float(run.stdout)
            print(f"{name:34} {len(ours):8} {differ:7} {speed:6.1f}", flush=True)
            bad += differ > 0 or (is_byte_level and speed < options.min_speed)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
