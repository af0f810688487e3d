"""Many clients at once: nothing is lost or mixed, memory stays flat, a full queue says when to come back, a signal
to end leaves nobody without the answer that was begun."""
import asyncio
import json
import os
import re
import signal
import time

import pytest

import servers
from conftest import tool


async def complete(port, number, **fields):
    """A completion on a connection of its own: status, head, body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps(fields).encode()
    writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Request-Id: r%d\r\nContent-Length: %d\r\n\r\n%s"
                 % (number, len(body), body))
    raw = await reader.read()
    writer.close()
    head, answer = raw.split(b"\r\n\r\n", 1)
    return int(head.split(b" ")[1]), head, answer


async def ask(port, number):
    """One request to the parrot: (status, right answer?, Retry-After)."""
    stream = number % 2 == 0
    status, head, answer = await complete(port, number, prompt=f"[[answer {number}]]", max_tokens=40, temperature=0, stream=stream)
    if status != 200:
        return status, set(json.loads(answer)["error"]) == {"message", "type", "param", "code"}, b"\r\nRetry-After: " in head
    if stream:
        events = [line[6:] for line in answer.decode().splitlines() if line.startswith("data: ")]
        text = "".join(json.loads(e)["choices"][0]["text"] for e in events[:-1])
        return status, text == f"answer {number}" and events[-1] == "[DONE]", False
    return status, json.loads(answer)["choices"][0]["text"] == f"answer {number}", False


async def load(port, connections, requests):
    numbers = iter(range(requests))
    results = []

    async def client():
        for number in numbers:
            results.append(await ask(port, number))
    await asyncio.gather(*[client() for _ in range(connections)])
    return results


def overload(plan, connections, requests):
    server = servers.parrot(plan, queue=64, sequences=16)
    asyncio.run(load(server.port, 16, 64))  # warm
    before = server.rss()
    begin = time.time()
    results = asyncio.run(load(server.port, connections, requests))
    answered = [r for r in results if r[0] == 200]
    print(f"\n{requests} requests over {connections} connections in {time.time() - begin:.1f} s: {len(answered)} x 200, "
          f"{sum(r[0] == 429 for r in results)} x 429; resident {before >> 20} MiB before, {server.rss() >> 20} MiB after")
    assert len(results) == requests
    assert all(right for _, right, _ in results), "an answer is wrong"
    assert {r[0] for r in results} <= {200, 429}
    assert all(later for status, _, later in results if status == 429)
    assert len(answered) >= 80, "the queue's worth of requests is answered"
    assert len(answered) < requests, "nothing was refused: the test loads too little"
    assert server.rss() - before < 96 << 20
    assert server.idle()
    assert server.metric("llmc:kv_cache_usage_perc") == 0
    assert server.stop() == 0


async def load_until_gone(port, clients, process, answers):
    """Clients that ask until the server refuses to go on; SIGTERM comes after so many answers. By number: the status, and
    whether the answer is right; None where the connection was refused, or closed without a byte."""
    results, number = {}, iter(range(10**9))

    async def client():
        while True:
            own = next(number)
            try:
                results[own] = await ask(port, own)
            except (ConnectionError, OSError, ValueError) as error:
                # A head that can't be split is empty: closed without a byte.
                assert not isinstance(error, ValueError) or "unpack" in str(error), error
                results[own] = (None, True, False)
            if results[own][0] in (None, 503):
                return
            if results[own][0] == 429:
                await asyncio.sleep(0.3)

    async def stop():
        while sum(r[0] == 200 for r in results.values()) < answers:
            await asyncio.sleep(0.05)
        process.send_signal(signal.SIGTERM)
    await asyncio.gather(stop(), *[client() for _ in range(clients)])
    return results


def drain(plan, clients, answers):
    server = servers.parrot(plan, queue=64, sequences=16, delay=80)
    results = asyncio.run(load_until_gone(server.port, clients, server.process, answers))
    assert server.process.wait(30) == 0, "not every request that was accepted has been answered"
    server.stop()
    statuses = [r[0] for r in results.values()]
    counts = {s: statuses.count(s) for s in (200, 429, 503, None)}
    print(f"\n{clients} clients and SIGTERM: " + ", ".join(f"{n} x {s or 'closed'}" for s, n in counts.items()))
    assert sum(counts.values()) == len(results)
    assert all(right for _, right, _ in results.values()), "an answer is wrong, or cut"
    # Whatever the server says that it has answered has come, and the other way round.
    log = "".join(server.log)
    said = {int(n) for n in re.findall(r"answered.*request_id=\"?r(\d+)", log)}
    assert said == {n for n, r in results.items() if r[0] == 200}
    # Those who had connected and asked nothing yet are closed, those who come later hear of it.
    assert counts[200] > answers and counts[503] + counts[None] > 0, "nothing was drained"
    begun = log.index("draining")
    assert len(re.findall("answered", log[begun:])) >= 16, "the requests at hand when the signal came"


def test_drain_under_load(plan):
    drain(plan, 500, 60)


@pytest.mark.skipif(not os.environ.get("LLMC_LONG_TESTS"), reason="long: set LLMC_LONG_TESTS=1")
def test_drain_under_load_long(plan):
    drain(plan, 2000, 1000)


def test_memory_is_what_the_plan_states(plan):
    """The compiled model under 500 clients: no more than plan, arena and KV pool, and what a server of so many
    connections needs."""
    server = servers.Server(servers.BIN / "llmrt", "serve", plan, "--port", "0", "--max-num-seqs", "16", "--max-num-queued-reqs", "64")

    async def chat(number):
        status, answer = None, None
        while status in (None, 429):
            status, _, answer = await complete(server.port, number, prompt="word " * (number % 40 + 1),
                                               max_tokens=30 + number % 50, ignore_eos=True)
            if status == 429:
                await asyncio.sleep(0.2)
        assert status == 200, answer
        return json.loads(answer)["usage"]["completion_tokens"] == 30 + number % 50

    async def run():
        return await asyncio.gather(*[chat(number) for number in range(500)])
    assert all(asyncio.run(run()))
    stated = json.loads(tool("llmrt", "inspect", plan, "--json").stdout)
    engine = server.get("/plan")[1]
    pool = engine["engine"]["kv_blocks"] * engine["engine"]["block_size"] * engine["kv_bytes_per_token"]
    arena = stated["arena"]["bytes_at_limits"] + stated["arena"]["logits_bytes_at_limits"]
    total, used, allowed = stated["file"]["bytes"] + arena + pool, server.rss(), 96 << 20
    print(f"\nplan {stated['file']['bytes'] >> 10} KiB, arena {arena >> 10} KiB, KV pool {pool >> 10} KiB; "
          f"resident {used >> 10} KiB, {(used - total) >> 10} KiB beside them (allowed: {allowed >> 10})")
    assert used <= total + allowed
    assert server.stop() == 0


def test_overload(plan):
    overload(plan, 300, 1500)


@pytest.mark.skipif(not os.environ.get("LLMC_LONG_TESTS"), reason="long: set LLMC_LONG_TESTS=1")
def test_overload_long(plan):
    overload(plan, 2000, 10000)


def test_idle_streams(plan):
    """Hundreds of connections that only wait cost little, and others are served."""
    server = servers.parrot(plan)

    async def run():
        before = server.rss()
        idle = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(500)]
        begin = time.time()
        results = await load(server.port, 8, 40)
        assert all(status == 200 and right for status, right, _ in results)
        assert time.time() - begin < 30
        assert server.rss() - before < 64 << 20
        for _, writer in idle:
            writer.close()
    asyncio.run(run())
    assert server.stop() == 0
