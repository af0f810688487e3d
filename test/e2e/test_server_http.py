"""Around the answers: metrics, the page, keys, CORS, request ids, what there is not."""
import json
import shutil
import subprocess
import urllib.parse

import servers
from servers import say


def test_metrics(server):
    server.complete(say("a"))
    _, headers, raw = server.request("GET", "/metrics")
    text = raw.decode()
    assert headers["Content-Type"].startswith("text/plain")
    for name in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "prefix_cache_queries_total",
                 "prefix_cache_hits_total", "prompt_tokens_total", "generation_tokens_total", "num_preemptions_total",
                 "time_to_first_token_seconds_bucket", "inter_token_latency_seconds_count", "step_time_ratio",
                 "e2e_request_latency_seconds_sum", "request_queue_time_seconds_count", "decode_allocations_total",
                 "spec_decode_num_drafts_total", "spec_decode_num_draft_tokens_total", "spec_decode_num_accepted_tokens_total", "slow_fallbacks_total"):
        assert f"\nllmc:{name}{{" in text, name
    assert 'llmc:request_success_total{finished_reason="stop"' in text
    for kind in ("code_level", "swap_space", "guess_room", "grammar_mask", "host_draw"):
        assert f'llmc:slow_fallbacks_total{{kind="{kind}"' in text


def test_metrics_of_steps(real):
    """Steps are compared with the plan's roofline, and decoding allocates nothing."""
    real.complete("a b c", max_tokens=24, ignore_eos=True)
    assert real.metric("llmc:engine_steps_total") >= 24
    assert real.metric("llmc:step_time_ratio") > 0.1
    assert real.metric("llmc:decode_allocations_total") == 0
    assert real.metric("llmc:slow_fallbacks_total") == 0


def test_page_and_document(server):
    _, headers, raw = server.request("GET", "/")
    page = raw.decode()
    assert headers["Content-Type"].startswith("text/html") and "</html>" in page
    assert "http://" not in page and "https://" not in page, "the page needs nothing from elsewhere"
    status, document = server.get("/openapi.json")
    assert status == 200 and document["openapi"].startswith("3.")
    for path in document["paths"]:
        method = "GET" if "get" in document["paths"][path] else "POST"
        status, _, _ = server.request(method, path.replace("{id}", "parrot"), "{}" if method == "POST" else None)
        assert status in (200, 400), (path, status)


def test_page_in_a_browser(server):
    """The page's scripts run: the model's name, an answer and the metrics are in the document."""
    browser = shutil.which("chromium-headless-shell")
    assert browser, "chromium-headless-shell is not installed (.ci/packages.sh)"
    question = urllib.parse.quote(say("spoken by the parrot"))
    dom = subprocess.run([browser, "--no-sandbox", "--disable-gpu", "--virtual-time-budget=8000", "--dump-dom",
                          f"{server.url}/?q={question}"], capture_output=True, text=True, timeout=60).stdout
    assert '<span id="model">parrot</span>' in dom, dom[-3000:]
    assert '<span id="state">ok</span>' in dom
    assert "<span>spoken by the parrot</span>" in dom
    assert "<td>generation_tokens_total</td>" in dom and "<td>time_to_first_token_seconds (mean)</td>" in dom


def test_cors(server):
    """Case V13: a browser's question carries no key; errors and streams have the header, too."""
    asked = {"Origin": "http://page.example", "Access-Control-Request-Method": "POST",
             "Access-Control-Request-Headers": "authorization,content-type"}
    status, headers, _ = server.request("OPTIONS", "/v1/chat/completions", headers=asked)
    assert status == 204 and headers["Access-Control-Allow-Origin"] == "http://page.example"
    assert "Authorization" in headers["Access-Control-Allow-Headers"] and "POST" in headers["Access-Control-Allow-Methods"]
    for path, body in [("/v1/completions", {"prompt": "a", "max_tokens": 1}), ("/v1/completions", {}), ("/none", {}),
                       ("/v1/completions", {"prompt": "a", "max_tokens": 1, "stream": True})]:
        _, headers, _ = server.request("POST", path, body, {"Origin": "http://page.example"})
        assert headers["Access-Control-Allow-Origin"] == "http://page.example"
    _, headers, _ = server.request("GET", "/health", headers={"Origin": "http://evil.example"})
    assert "Access-Control-Allow-Origin" not in headers


def test_request_id(server):
    _, headers, _ = server.request("GET", "/health", headers={"X-Request-Id": "abc-1"})
    assert headers["X-Request-Id"] == "abc-1"
    _, headers, _ = server.request("GET", "/health", headers={"X-Request-Id": "bad id " + "x" * 200})
    assert headers["X-Request-Id"].startswith("req-")


def test_key(plan):
    server = servers.parrot(plan, key="secret")
    assert server.request("GET", "/health")[0] == 200
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "secret"}, {"Authorization": "Bearer "}):
        for method, path in (("GET", "/v1/models"), ("GET", "/metrics"), ("POST", "/v1/completions"), ("GET", "/none")):
            status, _, raw = server.request(method, path, headers=headers)
            assert status == 401 and json.loads(raw)["error"]["code"] == "invalid_api_key"
    for headers in ({"Authorization": "Bearer secret"}, {"X-Api-Key": "secret"}):
        assert server.request("GET", "/v1/models", headers=headers)[0] == 200
    assert server.stop() == 0


def test_not_found(server):
    assert server.request("GET", "/nothing")[0] == 404
    assert server.request("GET", "/v1/completions")[0] == 405
    assert server.request("HEAD", "/health")[::2] == (200, b"")
