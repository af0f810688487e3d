"""Writes models.golden.json (tokenizers with Unigram, WordPiece and WordLevel models: small ones trained here, and random
ones), and sentencepiece/*.model with sentencepiece.golden.json, with what Hugging Face's library and SentencePiece give.
Usage: python make_models.py OUT_FOLDER REPOSITORY (needs `pip install tokenizers==0.22.1 sentencepiece==0.2.3`)."""
import base64
import io
import json
import os
import random
import sys

import make_components as parts
import sentencepiece
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

R = parts.R
R.seed(21)
EXTRA = ["ａ", "①", "㍿", "ﷺ", "\u200b", "\ufeff", "\ufffd", "\x07", "\x00", "\r", "Å", "한", "ᄒ", "\u1680", "ﾊﾟ", "…", "の", "don't ",
         " do not", "the ", "token ", "ing", "Straße ", "naïve ", "\u0327", "\U0002b820", "\U0002b930", "豈", "⁇", "\x8f",
         "\ue000", "\u0600", "   "]
parts.ALPHABET += EXTRA


def corpus(repository):
    lines = []
    for name in ["README.md", "runtime/README.md", "test/README.md", "test/data/eval/text.txt"]:
        path = os.path.join(repository, name)
        if os.path.exists(path):
            lines += [line.strip() for line in open(path, encoding="utf-8") if line.strip()]
    return lines + ["你好世界 こんにちは 세계 Привет мир naïve Straße " * 2] * 5


def words(lines):
    out = []
    for _ in range(12):
        line = R.choice(lines)
        at = R.randrange(max(1, len(line) - 40))
        out.append(line[at:at + R.randint(5, 60)])
    return out


def charsmap(lines, rule):
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=out, vocab_size=200, model_type="bpe", normalization_rule_name=rule,
        minloglevel=2)
    return out.getvalue()


def precompiled_of(model):
    """normalizer_spec (field 3), its precompiled_charsmap (field 2)."""
    def fields(data):
        at = 0
        while at < len(data):
            def varint():
                nonlocal at
                value = shift = 0
                while True:
                    byte = data[at]
                    at += 1
                    value |= (byte & 127) << shift
                    shift += 7
                    if byte < 128:
                        return value
            key = varint()
            if key & 7 == 0:
                yield key >> 3, varint()
            else:
                size = varint() if key & 7 == 2 else 4 if key & 7 == 5 else 8
                yield key >> 3, data[at:at + size]
                at += size
    spec = next(v for k, v in fields(model) if k == 3)
    return next(v for k, v in fields(spec) if k == 2)


def random_normalizer(charsmaps):
    kind = R.choice(["Bert", "Bert", "Nmt", "Precompiled", "Precompiled", "Other"])
    maybe = lambda: R.random() < 0.5
    if kind == "Bert":
        return dict(type="BertNormalizer", clean_text=maybe(), handle_chinese_chars=maybe(),
                    strip_accents=R.choice([None, True, False]), lowercase=maybe())
    if kind == "Precompiled":
        return dict(type="Precompiled", precompiled_charsmap=R.choice(charsmaps))
    return dict(type="Nmt") if kind == "Nmt" else parts.normalizer()


def random_vocabulary(prefix, fallback):
    tokens = ["<unk>", "<s>", "</s>"] + (["<0x%02X>" % b for b in range(256) if R.random() < 0.995] if fallback else [])
    letters = [c for c in sorted(set("".join(parts.ALPHABET)) | {"▁"}) if R.random() < 0.8]
    tokens += letters
    for _ in range(150):
        tokens.append("".join(R.choice(parts.ALPHABET + ["▁"]) for _ in range(R.randint(1, 3))))
    if prefix:
        tokens += [prefix + t for t in tokens[3:] if R.random() < 0.8]
    return list(dict.fromkeys(tokens))


def random_tokenizer(charsmaps):
    kind = R.choice(["Unigram", "Unigram", "WordPiece", "WordPiece", "WordLevel"])
    fallback = kind == "Unigram" and R.random() < 0.4
    prefix = R.choice(["##", "##", "_", ""]) if kind == "WordPiece" else ""
    vocab = random_vocabulary(prefix, fallback)
    ids = {t: i for i, t in enumerate(vocab)}
    decoder = [parts.decoder() for _ in range(R.randint(0, 3))]
    if kind == "Unigram":
        scores = [[t, R.choice([round(-R.random() * 12, R.randint(0, 6)), -3.5])] for t in vocab]
        model = dict(type=kind, unk_id=0, vocab=scores, byte_fallback=fallback)
    elif kind == "WordPiece":
        model = dict(type=kind, unk_token="<unk>", continuing_subword_prefix=prefix, vocab=ids,
                     max_input_chars_per_word=R.choice([100, 100, 4]))
        decoder = [dict(type="WordPiece", prefix=prefix or "##", cleanup=R.random() < 0.5)]
    else:
        model = dict(type=kind, vocab=ids, unk_token="<unk>")
    pres = [parts.pre_tokenizer() for _ in range(R.randint(0, 2))]
    if kind == "Unigram" and R.random() < 0.6:
        pres = [dict(type="Metaspace", **parts.metaspace(R.random() < 0.8))]
    return dict(version="1.0", truncation=None, padding=None, added_tokens=parts.added_tokens(ids),
                normalizer=parts.sequence([random_normalizer(charsmaps) for _ in range(R.randint(0, 2))], "normalizers"),
                pre_tokenizer=parts.sequence(pres, "pretokenizers"), post_processor=None,
                decoder=parts.sequence(decoder, "decoders"), model=model)


def trained(lines, charsmaps):
    unigram = Tokenizer(models.Unigram())
    unigram.normalizer = normalizers.Sequence([normalizers.Precompiled(base64.b64decode(charsmaps[0])),
                                               normalizers.Replace(__import__("tokenizers").Regex(" {2,}"), " ")])
    unigram.pre_tokenizer = pre_tokenizers.Metaspace()
    unigram.decoder = decoders.Metaspace()
    unigram.train_from_iterator(lines, trainers.UnigramTrainer(
        vocab_size=800, special_tokens=["<s>", "<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False))
    unigram.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    bert = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    bert.normalizer = normalizers.BertNormalizer()
    bert.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    bert.decoder = decoders.WordPiece()
    bert.train_from_iterator(lines, trainers.WordPieceTrainer(
        vocab_size=800, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
    bert.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return [json.loads(t.to_str()) for t in (unigram, bert)]


def sentencepieces(lines, folder):
    rows = []
    for name, options in {
            "unigram": dict(model_type="unigram", vocab_size=600),
            "unigram-bytes": dict(model_type="unigram", vocab_size=700, byte_fallback=True, user_defined_symbols=["[X]", "ab"]),
            "bpe": dict(model_type="bpe", vocab_size=600),
            "bpe-bytes": dict(model_type="bpe", vocab_size=700, byte_fallback=True, normalization_rule_name="identity",
                              remove_extra_whitespaces=False, user_defined_symbols=["\n", "    "], split_digits=True),
            "bpe-suffix": dict(model_type="bpe", vocab_size=600, treat_whitespace_as_suffix=True,
                               normalization_rule_name="nfkc_cf")}.items():
        out = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=out, minloglevel=2,
                                                 character_coverage=0.99, **options)
        with open(os.path.join(folder, name + ".model"), "wb") as f:
            f.write(out.getvalue())
        processor = sentencepiece.SentencePieceProcessor(model_proto=out.getvalue())
        encode, decode = [], []
        for text in words(lines) + [parts.text() for _ in range(60)] + ["", " ", "  a  b  ", "a ", " a"]:
            text = text.replace("\x00", "")
            encode.append(dict(text=text, ids=processor.encode(text)))
            decode.append(dict(ids=processor.encode(text), text=processor.decode(processor.encode(text))))
        rows.append(dict(model=name, encode=encode, decode=decode))
    return rows


def main():
    folder, lines = sys.argv[1], corpus(sys.argv[2])
    charsmaps = [base64.b64encode(precompiled_of(charsmap(lines, rule))).decode() for rule in ("nmt_nfkc", "nfkc_cf")]
    specs, out = trained(lines, charsmaps), []
    while len(out) < 100:
        spec = specs.pop(0) if specs else random_tokenizer(charsmaps)
        try:  # the library panics on some combinations of its own parts
            t = Tokenizer.from_str(json.dumps(spec))
            if t.normalizer is not None and any(
                    a["normalized"] and not t.normalizer.normalize_str(a["content"]) for a in spec["added_tokens"]):
                continue
            encode, decode = parts.rows_of(t, t.get_vocab_size())
            for text in words(lines):
                t.encode_special_tokens = False
                encode.append(dict(text=text, parse=True, add=True, ids=t.encode(text).ids))
        except BaseException as error:
            continue
        # The tables are long: each is stored once.
        text = json.dumps(spec, ensure_ascii=False)
        for i, table in enumerate(charsmaps):
            text = text.replace(table, "CHARSMAP%d" % i)
        out.append(dict(tokenizer=text, encode=encode, decode=decode))
    os.makedirs(os.path.join(folder, "sentencepiece"), exist_ok=True)
    pieces = sentencepieces(lines, os.path.join(folder, "sentencepiece"))
    for name, value in (("models", dict(charsmaps=charsmaps, rows=out)), ("sentencepiece", pieces)):
        with open(os.path.join(folder, name + ".golden.json"), "w", encoding="utf-8") as f:
            json.dump(value, f, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    main()
