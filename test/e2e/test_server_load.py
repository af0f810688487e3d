"""Many clients at once: nothing is lost or mixed, memory stays flat, a full queue says when to come back."""
import asyncio
import json
import os
import time

import pytest

import servers


@pytest.fixture(scope="module")
def plan(plan_with_chat):
    return plan_with_chat


async def ask(port, number):
    """One request on a connection of its own: (status, right answer?, Retry-After)."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    stream = number % 2 == 0
    body = json.dumps({"prompt": f"[[answer {number}]]", "max_tokens": 40, "temperature": 0, "stream": stream}).encode()
    writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    raw = await reader.read()
    writer.close()
    head, answer = raw.split(b"\r\n\r\n", 1)
    status = int(head.split(b" ")[1])
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
    results = asyncio.run(load(server.port, connections, requests))
    assert len(results) == requests
    answered = [r for r in results if r[0] == 200]
    assert all(right for _, right, _ in results), "an answer is wrong"
    assert {r[0] for r in results} <= {200, 429}
    assert all(later for status, _, later in results if status == 429)
    assert len(answered) >= 80, "the queue's worth of requests is answered"
    assert len(answered) < requests, "nothing was refused: the test loads too little"
    assert server.rss() - before < 96 << 20
    assert server.idle()
    assert server.metric("llmc:kv_cache_usage_perc") == 0
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
