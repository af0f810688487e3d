"""Writes components.golden.json: small random tokenizers made of every supported component, with what Hugging
Face's library gives for tricky texts. Usage: python make_components.py OUT (needs `pip install tokenizers==0.22.1`)."""
import json
import random
import sys

from tokenizers import Tokenizer

R = random.Random(20)
ALPHABET = list("abcdeAB 123.,'-_!\n\t") + [
    "  ", "é", "e\u0301", "ß", "İ", "ﬁ", "你", "好", "\u00a0", "\u3000", "½", "٣", "😀", "👍🏽", "\u200d", "\u0301", "ک", "▁",
    "<s>", "</s>", "[X]", "<0x41>", "ſ", "\u2028", "\u180e", "Ⅷ", "ⓐ", "\u0345", "हिन्दी", "'s", "'LL"]
BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
REGEXES = [
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", r"\s+", r"\w+", r"\W", r"\d{2}+",
    r"a{1,2}+b", r"(?i:'ll|'S)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}", r"[\s\d]+", r"[^\S\n]+", r"^.", r".$", r"(?i)a|b",
    r"x(?i)a|B", r"(?m:.{2})", r"\h+", r"[[:punct:]]", r"[[:alpha:]]+", r"[a-c]++", r"(?<=a)b", r"(?<!a)b",
    r"\p{Lu}\p{Ll}*", r"\p{Han}", r"[\x{4e00}-\x{9fff}]", r"\u0041", r"[\[\]]", r"[^ ]+| ",
    r"\s*[\r\n]+|\s+(?!\S)", r"(?>a|ab)c?", r"a{2}?", r"\S", r"[\w.]+", r"\P{L}", r"\p{^L}", r"{a", r"a{x}", r"[a-]",
    r"\Aa|a\z", r"(a|b)+?c"]
# Empty matches; not in Replace, where the library itself goes wrong with them.
EMPTY = [r"\b", r"a{,2}", r"a*", r"b\Z"]


def byte_alphabet():
    printable = [b for b in range(256) if 0x21 <= b <= 0x7E or 0xA1 <= b and b != 0xAD]
    rest = [b for b in range(256) if b not in printable]
    return [chr(b) for b in printable] + [chr(0x100 + i) for i in range(len(rest))]


def text():
    return "".join(R.choice(ALPHABET) for _ in range(R.randint(0, 14)))


def pattern(empty=True):
    if R.random() < 0.6:
        return {"Regex": R.choice(REGEXES + (EMPTY if empty else []))}
    return {"String": R.choice([" ", "a", "-", ".", "  ", "▁", "é", "ab", "\n"])}


def metaspace(split):
    # "first" is left out: it depends on offsets, which the library counts oddly after some normalizers.
    return dict(replacement="▁", prepend_scheme=R.choice(["always", "never"]), split=split)


def normalizer():
    kind = R.choice(["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Strip", "Replace", "Prepend", "Sequence"])
    extra = {
        "Strip": lambda: dict(strip_left=R.random() < 0.5, strip_right=R.random() < 0.5),
        "Replace": lambda: dict(pattern=pattern(False), content=R.choice(["", "▁", "x", " ", "é"])),
        "Prepend": lambda: dict(prepend=R.choice(["▁", "a"])),
        "Sequence": lambda: dict(normalizers=[normalizer() for _ in range(R.randint(0, 3))]),
    }
    return dict(type=kind, **extra.get(kind, dict)())


def pre_tokenizer():
    kind = R.choice(["Split", "Split", "Digits", "Punctuation", "Whitespace", "WhitespaceSplit", "BertPreTokenizer",
                     "CharDelimiterSplit", "Metaspace"])
    extra = {
        "Split": lambda: dict(pattern=pattern(), behavior=R.choice(BEHAVIORS), invert=R.random() < 0.3),
        "Digits": lambda: dict(individual_digits=R.random() < 0.5),
        "Punctuation": lambda: dict(behavior=R.choice(BEHAVIORS)),
        "CharDelimiterSplit": lambda: dict(delimiter=R.choice(["-", " ", "é"])),
        "Metaspace": lambda: metaspace(R.random() < 0.5),
    }
    return dict(type=kind, **extra.get(kind, dict)())


def decoder():
    kind = R.choice(["ByteFallback", "Fuse", "Strip", "Replace", "Metaspace", "BPEDecoder", "ByteLevel"])
    extra = {
        "Strip": lambda: dict(content=R.choice([" ", "a"]), start=R.randint(0, 2), stop=R.randint(0, 2)),
        "Replace": lambda: dict(pattern={"String": "▁"} if R.random() < 0.7 else pattern(False),
                                content=R.choice([" ", "", "x"])),
        "Metaspace": lambda: metaspace(True),
        "BPEDecoder": lambda: dict(suffix="</w>"),
        "ByteLevel": lambda: dict(add_prefix_space=True, trim_offsets=True, use_regex=True),
    }
    return dict(type=kind, **extra.get(kind, dict)())


def vocabulary(prefix, suffix, characters, fallback):
    vocab = {}
    add = lambda token: vocab.setdefault(token, len(vocab))
    for token in ["<s>", "</s>", "<unk>"] + (["<0x%02X>" % b for b in range(256) if R.random() < 0.995] if fallback else []):
        add(token)
    for c in characters:
        for token in {c, prefix + c, c + suffix, prefix + c + suffix}:
            add(token)
    merges, tokens = [], [t for t in vocab if not t.startswith("<")]
    for _ in range(R.randint(0, 80)):
        left, right = R.choice(tokens), R.choice(tokens)
        if right.startswith(prefix) and [left, right] not in merges:
            joined = left + right[len(prefix):]
            add(joined)
            tokens.append(joined)
            merges.append([left, right])
    return vocab, merges


def added_tokens(vocab):
    added, following = [], len(vocab)
    for c in R.sample(["<s>", "</s>", "[X]", "ab", "  ", "A", "é", "ﬁx", "\n", "▁▁", "-", " a"], R.randint(0, 6)):
        flags = {k: R.random() < 0.25 for k in ("single_word", "lstrip", "rstrip")}
        added.append(dict(id=vocab.get(c), content=c, **flags, normalized=R.random() < 0.5,
                          special=c in ("<s>", "</s>") or R.random() < 0.2))
    for token in added:
        if token["id"] is None:
            token["id"], following = following, following + 1
    return sorted(added, key=lambda a: a["id"])


def sequence(parts, key):
    return None if not parts else parts[0] if len(parts) == 1 else {"type": "Sequence", key: parts}


def tokenizer():
    is_bytes = R.random() < 0.5
    prefix, suffix = R.choice([""] * 6 + ["##"]), R.choice([""] * 6 + ["</w>"])
    characters = byte_alphabet() if is_bytes else sorted(set("".join(ALPHABET)))
    if not is_bytes:
        characters = R.sample(characters, int(len(characters) * R.choice([0.5, 0.9, 1])))
    fallback = R.random() < 0.4
    vocab, merges = vocabulary(prefix, suffix, characters, fallback)
    pres = [pre_tokenizer() for _ in range(R.randint(0, 3))]
    byte_level = dict(type="ByteLevel", add_prefix_space=R.random() < 0.3, trim_offsets=True, use_regex=R.random() < 0.6)
    if is_bytes:
        pres.insert(R.randint(0, len(pres)) if R.random() < 0.2 else len(pres), byte_level)
    decoders = [decoder() for _ in range(R.randint(0, 4))]
    if is_bytes and R.random() < 0.7:
        decoders = [dict(type="ByteLevel", add_prefix_space=True, trim_offsets=True, use_regex=True)]
    post = None
    if R.random() < 0.4:
        special = lambda s: {"SpecialToken": {"id": s, "type_id": 0}}
        single = [special("<s>"), {"Sequence": {"id": "A", "type_id": 0}}] + ([special("</s>")] if R.random() < 0.5 else [])
        post = dict(type="TemplateProcessing", single=single,
                    pair=[{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                    special_tokens={s: {"id": s, "ids": [vocab[s]], "tokens": [s]} for s in ("<s>", "</s>")})
    model = dict(type="BPE", dropout=None, unk_token="<unk>" if R.random() < 0.5 else None,
                 continuing_subword_prefix=prefix or None, end_of_word_suffix=suffix or None, fuse_unk=R.random() < 0.5,
                 byte_fallback=fallback, ignore_merges=R.random() < 0.3, vocab=vocab, merges=merges)
    return dict(version="1.0", truncation=None, padding=None, added_tokens=added_tokens(vocab),
                normalizer=sequence([normalizer() for _ in range(R.randint(0, 2))], "normalizers"),
                pre_tokenizer=sequence(pres, "pretokenizers"), post_processor=post,
                decoder=sequence(decoders, "decoders"), model=model)


def rows_of(t, size):
    encode, decode = [], []
    for _ in range(8):
        s, add = text(), R.random() < 0.5
        for parse in (True, False):
            t.encode_special_tokens = not parse
            encode.append(dict(text=s, parse=parse, add=add, ids=t.encode(s, add_special_tokens=add).ids))
        ids = [R.randrange(size + 8) for _ in range(R.randint(0, 10))] if R.random() < 0.6 else encode[-1]["ids"]
        skip = R.random() < 0.5
        decode.append(dict(ids=ids, skip=skip, text=t.decode(ids, skip_special_tokens=skip)))
    return encode, decode


def main():
    out = []
    while len(out) < 120:
        spec = tokenizer()
        try:  # the library panics on some combinations of its own parts
            t = Tokenizer.from_str(json.dumps(spec))
            if t.normalizer is not None and any(
                    a["normalized"] and not t.normalizer.normalize_str(a["content"]) for a in spec["added_tokens"]):
                continue
            encode, decode = rows_of(t, len(spec["model"]["vocab"]))
        except BaseException:
            continue
        out.append(dict(tokenizer=json.dumps(spec, ensure_ascii=False), encode=encode, decode=decode))
    with open(sys.argv[1], "w", encoding="utf-8") as f:
        json.dump(out, f, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    main()
