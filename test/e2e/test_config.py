"""Flags from the command line, the environment and a YAML file."""
import json

import pytest

from conftest import tool


@pytest.fixture
def run(tiny_plan, tmp_path):
    def run(yaml, *flags, env=None, check=True):
        (tmp_path / "c.yaml").write_text(yaml)
        return tool("llmrt", "run", tiny_plan, "--config", tmp_path / "c.yaml", *flags, env=env, check=check)
    return run


def tokens(result):
    return len(json.loads(result.stdout)["ids"])


BASE = "prompt-ids: [1, 5, 9]\ntemperature: 0\nignore-eos: true\njson: true\n"


def test_order(run):
    assert tokens(run(BASE + "max_tokens: 5\n")) == 5
    assert tokens(run(BASE + "max_tokens: 5\n", env={"LLMC_ARG_MAX_TOKENS": "4"})) == 4
    assert tokens(run(BASE + "max_tokens: 5\n", "-n", "3", env={"LLMC_ARG_MAX_TOKENS": "4"})) == 3
    assert json.loads(run(BASE + "max-tokens: 1\n", "--prompt-ids", "7").stdout)["prompt_ids"] == [7]


def test_file_from_the_environment(tiny_plan, tmp_path):
    (tmp_path / "c.yaml").write_text(BASE + "predict: 2\n")
    assert tokens(tool("llmrt", "run", tiny_plan, env={"LLMC_ARG_CONFIG": str(tmp_path / "c.yaml")})) == 2


@pytest.mark.parametrize("yaml, words", [
    ("max_tokns: 5", ["max_tokns", "max-tokens", "line 1"]), ("\n\nnonsense: 1", ["line 3", "nonsense"]),
    ("json: perhaps", ["json", "true or false"]), ("temperature: [1, 2]", ["temperature", "one value"]), ("- a", ["mapping"]),
    ("a: [", ["line"]), ("temperature: hot", ["temperature"]), ("prompt: {{{", ["line"])])
def test_bad_files(run, yaml, words):
    result = run(yaml, "-p", "a", check=False)
    assert result.returncode == 2
    assert all(word in result.stderr for word in words), result.stderr


def test_missing_file(tiny_plan):
    result = tool("llmrt", "run", tiny_plan, "--config", "/nowhere.yaml", check=False)
    assert result.returncode == 2 and "/nowhere.yaml" in result.stderr
