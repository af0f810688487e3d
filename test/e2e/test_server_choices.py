"""Which text is the answer: best_of, beam search; and how likely a prompt is (echo with logprobs)."""
import json

import numpy
import pytest

import servers
from conftest import tool
from servers import refused


PROMPT = [5, 90, 17, 33, 8, 120, 64]


def mean_logprob(choice):
    values = choice["logprobs"]["token_logprobs"]
    return sum(values) / len(values)


def test_best_of(real):
    fields = {"temperature": 1.5, "seed": 11, "max_tokens": 6, "ignore_eos": True}
    every = real.complete(PROMPT, n=6, logprobs=0, **fields)["choices"]
    best = sorted(every, key=mean_logprob, reverse=True)
    assert best[0]["text"] != every[0]["text"], "the seed shows nothing"
    answer = real.complete(PROMPT, n=2, best_of=6, **fields)
    assert [c["text"] for c in answer["choices"]] == [c["text"] for c in best[:2]]
    assert [c["index"] for c in answer["choices"]] == [0, 1] and answer["choices"][0]["logprobs"] is None
    assert answer["usage"]["completion_tokens"] == 36, "what was generated counts"
    assert real.complete(PROMPT, best_of=6, logprobs=1, **fields)["choices"][0]["logprobs"]["tokens"] == best[0]["logprobs"]["tokens"]
    two = real.complete([PROMPT, PROMPT[:3]], best_of=3, **fields)["choices"]
    assert len(two) == 2 and two[1]["index"] == 1
    assert "less than n" in refused(real, "/v1/completions", {"prompt": "a", "n": 3, "best_of": 2}, "best_of")["message"]
    refused(real, "/v1/completions", {"prompt": "a", "best_of": 2, "stream": True}, "stream")
    refused(real, "/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "best_of": 2}, "best_of")
    refused(real, "/v1/messages", {"messages": [{"role": "user", "content": "a"}], "max_tokens": 2, "n": 2}, "n")


def test_echo_with_logprobs(real):
    answer = real.complete(PROMPT, echo=True, logprobs=2, max_tokens=3, ignore_eos=True)["choices"][0]
    lists = answer["logprobs"]
    assert {len(v) for v in lists.values()} == {len(PROMPT) + 3}
    assert lists["token_logprobs"][0] is None and lists["top_logprobs"][0] is None
    # A token's logprob is the model's own, whatever was drawn: a bias draws the prompt's.
    for i in range(1, len(PROMPT)):
        alone = real.complete(PROMPT[:i], max_tokens=1, logprobs=2, logit_bias={str(PROMPT[i]): 100})["choices"][0]["logprobs"]
        assert lists["token_logprobs"][i] == alone["token_logprobs"][0], i
        assert lists["top_logprobs"][i] == alone["top_logprobs"][0], i
        assert lists["tokens"][i] == alone["tokens"][0]
    plain = real.complete(PROMPT, logprobs=2, max_tokens=3, ignore_eos=True)["choices"][0]
    assert answer["text"].endswith(plain["text"]) and lists["token_logprobs"][-3:] == plain["logprobs"]["token_logprobs"]
    # Scoring alone, as evaluations do; several choices, each with its prompt.
    scored = real.complete(PROMPT, echo=True, logprobs=2, max_tokens=0)["choices"][0]
    assert scored["logprobs"]["token_logprobs"] == lists["token_logprobs"][:len(PROMPT)] and scored["finish_reason"] == "length"
    for choice in real.complete(PROMPT, echo=True, logprobs=2, max_tokens=2, n=3, ignore_eos=True)["choices"]:
        assert choice["logprobs"]["token_logprobs"][:len(PROMPT)] == lists["token_logprobs"][:len(PROMPT)]
        assert choice["text"].startswith(scored["text"])


def test_echo_with_logprobs_offsets(real):
    text = "hello big world"
    answer = real.complete(text, echo=True, logprobs=0, max_tokens=2, ignore_eos=True)["choices"][0]
    lists = answer["logprobs"]
    assert answer["text"].startswith(text)
    for token, offset in zip(lists["tokens"], lists["text_offset"]):
        if "�" not in token and offset + len(token) <= len(text) and text[:offset]:
            assert answer["text"][offset:offset + len(token)] == token
    assert lists["text_offset"] == sorted(lists["text_offset"])


def test_echo_with_logprobs_streams(real):
    fields = {"prompt": PROMPT, "echo": True, "logprobs": 1, "max_tokens": 3, "temperature": 0, "ignore_eos": True}
    whole = real.post("/v1/completions", fields)[1]["choices"][0]
    text, joined = "", {}
    for event in real.stream("/v1/completions", fields):
        for choice in event["choices"]:
            text += choice["text"]
            for name, values in (choice["logprobs"] or {}).items():
                joined.setdefault(name, []).extend(values)
    assert text == whole["text"] and joined == whole["logprobs"]


def logprobs_after(plan, ids, folder):
    out = folder / "logits.npy"
    tool("llmrt", "run", plan, "--prompt-ids", ",".join(map(str, ids)), "-n", 1, "--ignore-eos", "--temperature", 0, "--logits-out", out)
    row = numpy.load(out)[-1].astype(numpy.float64)
    return row - row.max() - numpy.log(numpy.exp(row - row.max()).sum())


def beam_search(plan, prompt, width, length, penalty, ends, folder):
    """Hugging Face's definition with early_stopping false, one text at a time."""
    live, done = [((), 0.0)], []
    for n in range(1, length + 1):
        candidates = []
        for ids, total in live:
            row = logprobs_after(plan, prompt + list(ids), folder)
            candidates += [(total + row[i], ids + (int(i),)) for i in numpy.argsort(-row)[:width * (2 + len(ends))]]
        candidates.sort(key=lambda c: -c[0])
        live = []
        for rank, (total, ids) in enumerate(candidates):
            if ids[-1] in ends or n == length:
                if rank < width:
                    done.append((total / n ** penalty, ids))
            elif len(live) < width:
                live.append((ids, total))
        done = sorted(done, key=lambda c: -c[0])[:width]
        if not live or len(done) == width and live[0][1] / n ** penalty <= done[-1][0]:
            break
    return done


@pytest.mark.parametrize("penalty", [1.0, 0.3])
def test_beam_search(real, plan, tmp_path, penalty):
    # Some of the likeliest tokens end a text, so that texts of several lengths compete.
    ends = [int(i) for i in numpy.argsort(-logprobs_after(plan, PROMPT, tmp_path))[3:6]]
    wanted = beam_search(plan, PROMPT, 3, 6, penalty, ends, tmp_path)
    texts = [real.post("/detokenize", {"tokens": [i for i in ids if i not in ends]})[1]["prompt"] for _, ids in wanted]
    fields = {"max_tokens": 6, "ignore_eos": True, "stop_token_ids": ends, "length_penalty": penalty}
    for names in ({"use_beam_search": True, "n": 3}, {"num_beams": 3, "n": 3}, {"use_beam_search": True, "best_of": 3, "n": 2},
                  {"num_beams": 3}):
        answer = real.complete(PROMPT, logprobs=1, **fields, **names)
        assert [c["text"] for c in answer["choices"]] == texts[:names.get("n", 1)], names
        for choice, (score, ids) in zip(answer["choices"], wanted):
            sums = sum(choice["logprobs"]["token_logprobs"])
            assert abs(sums / len(ids) ** penalty - score) < 1e-3
            assert choice["finish_reason"] == ("stop" if ids[-1] in ends else "length")
    greedy = real.complete(PROMPT, max_tokens=6, ignore_eos=True)["choices"][0]["text"]
    assert real.complete(PROMPT, max_tokens=6, ignore_eos=True, use_beam_search=True)["choices"][0]["text"] == greedy
    assert real.idle() and real.metric("llmc:kv_cache_usage_perc") == 0


def test_beam_search_in_chats(real):
    answer = real.chat("hi", num_beams=4, n=2, max_tokens=5)
    assert len(answer["choices"]) == 2 and answer["choices"][0] != answer["choices"][1]


def test_what_beam_search_refuses(real):
    chat = {"messages": [{"role": "user", "content": "a"}], "num_beams": 2}
    for field, value in {"temperature": 0.7, "top_p": 0.5, "top_k": 5, "presence_penalty": 1, "stop": ["x"], "logit_bias": {"5": 1},
                         "stream": True, "use_beam_search": False, "early_stopping": 5, "length_penalty": 11}.items():
        refused(real, "/v1/chat/completions", {**chat, field: value}, "num_beams" if field == "use_beam_search" else field)
    assert real.post("/v1/chat/completions", {**chat, "temperature": 1, "top_p": 1, "top_k": -1, "stop": [], "max_tokens": 2,
                                              "early_stopping": "never"})[0] == 200
    for field, value in {"length_penalty": 0.5, "early_stopping": True}.items():
        assert "belongs to beam search" in refused(real, "/v1/completions", {"prompt": "a", field: value}, field)["message"]
    refused(real, "/v1/completions", {"prompt": "a", "num_beams": 2, "n": 3}, "num_beams")
    refused(real, "/v1/responses", {"input": "a", "use_beam_search": True}, "use_beam_search")
    assert real.post("/v1/completions", {"prompt": "a", "num_beams": 9})[0] == 400
