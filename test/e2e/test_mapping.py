"""How a plan comes into memory. Case R06 of the field's failures."""
import re

import servers


def mapped(process, path):
    """Bytes of the file that the process has in memory: (all, its share of them, copies of its own).

    Copies are what `Anonymous` counts; `Private_Dirty` also holds pages of a file just written that no other process
    has touched yet."""
    sums = {"Rss": 0, "Pss": 0, "Anonymous": 0}
    inside = False
    with open(f"/proc/{process.pid}/smaps") as smaps:
        for line in smaps:
            if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                inside = line.rstrip().endswith(str(path))
            elif inside and line.split(":")[0] in sums:
                sums[line.split(":")[0]] += int(line.split()[1]) * 1024
    return sums["Rss"], sums["Pss"], sums["Anonymous"]


def test_R06_processes_share_a_plan(plan):
    """Two servers of one plan hold its weights once."""
    pair = [servers.Server(servers.BIN / "llmrt", "serve", plan, "--port", "0") for _ in range(2)]
    texts = {server.complete("a b c", max_tokens=8, ignore_eos=True)["choices"][0]["text"] for server in pair}
    assert len(texts) == 1
    for server in pair:
        resident, share, copied = mapped(server.process, plan)
        assert resident >= 0.5 * plan.stat().st_size, "the weights are not mapped: they were copied"
        assert share <= 0.55 * resident and copied == 0, (resident, share, copied)
    for server in pair:
        assert server.stop() == 0
