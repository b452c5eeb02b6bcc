"""The command line, run as a user runs it: in a process of its own."""

from __future__ import annotations

import base64
import io
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import twingram as tg
from twingram.cli import main
from twingram.resources import grammar_path

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
                "required": ["city"],
            },
        },
    },
    {"type": "function", "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}}},
]
FORMATS = tg.list_formats()
CALL = '<|tool_call>call:get_weather{city:<|"|>Köln<|"|>,days:3}<tool_call|>'


def run(*arguments: str, given: str | bytes = b"", timeout: float = 60) -> subprocess.CompletedProcess[str]:
    data = given.encode() if isinstance(given, str) else given
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-c",
            "import sys; from twingram.cli import main; sys.exit(main())",
            *arguments,
        ],
        input=data,
        capture_output=True,
        timeout=timeout,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run a command in this process; it must end with status 2 and one line, which is returned."""

    def call(*arguments: str, given: bytes = b"") -> str:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
        try:
            status = main(arguments)
        except SystemExit as end:  # argparse's way
            status = int(end.code or 0)
        out, error = capsys.readouterr()
        assert (status, out, error.count("\n")) == (2, "", 1), (status, out, error)
        return error

    return call


@pytest.fixture
def tools(tmp_path: Path) -> str:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(TOOLS), encoding="utf-8")
    return str(path)


def test_demo_is_quick_and_shows_every_format() -> None:
    start = time.perf_counter()
    done = run("demo")
    took = time.perf_counter() - start
    assert done.returncode == 0, done.stderr
    assert took < 10  # 5 s is the promise; a loaded machine gets twice that
    for name in FORMATS:
        assert f"\n{name}\n" in done.stdout
    messages = [json.loads(line.split("message", 1)[1]) for line in done.stdout.splitlines() if "  message  " in line]
    assert len(messages) == len(FORMATS)
    for message in messages:
        assert message["calls"]
        assert not message["incomplete_calls"]
        assert not message["errors"]
    assert done.stdout.count("us a token") == len(FORMATS)


def test_demo_is_seeded() -> None:
    first, second = (
        [line for line in run("demo", "--seed", "3").stdout.splitlines() if line.startswith("  output")]
        for _ in range(2)
    )
    assert first == second
    assert first != [line for line in run("demo", "--seed", "4").stdout.splitlines() if line.startswith("  output")]


def test_formats() -> None:
    done = run("formats")
    assert (done.returncode, done.stdout.split()) == (0, FORMATS)


def test_parse_a_file(tools: str, tmp_path: Path) -> None:
    file = tmp_path / "output.txt"
    file.write_text(f"Let me look.{CALL}", encoding="utf-8")
    done = run("parse", "--format", "gemma4", "--tools", tools, str(file))
    message = json.loads(done.stdout)
    assert message["content"] == "Let me look."
    (call,) = message["calls"]
    assert call["name"] == "get_weather"
    assert call["value"] == json.loads(call["arguments"]) == {"city": "Köln", "days": 3}
    assert message["errors"] == message["incomplete_calls"] == []


@pytest.mark.parametrize("arguments", [(), ("-",)])
def test_parse_standard_input(arguments: tuple[str, ...]) -> None:
    done = run("parse", "--format", "gemma4", *arguments, given=CALL)
    assert json.loads(done.stdout)["calls"][0]["value"] == {"city": "Köln", "days": 3}


def test_parse_streams_a_delta_a_line(tools: str) -> None:
    done = run("parse", "--format", "gemma4", "--tools", tools, "--stream", given=f"Hello. {CALL}")
    deltas = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [delta["kind"] for delta in deltas]
    start = next(delta for delta in deltas if "name" in delta)
    assert (start["index"], start["name"]) == (0, "get_weather")
    assert json.loads("".join(delta["json"] for delta in deltas if "json" in delta)) == {"city": "Köln", "days": 3}
    assert deltas[-1]["complete"] is True
    assert len(set(kinds)) == 4


def test_stream_writes_what_is_decided_at_once() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "from twingram.cli import main; main()", "parse", "--format", "gemma4", "--stream"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"Some text and ")
        process.stdin.flush()
        assert b"Some text" in process.stdout.readline()  # while the input is still open
        process.stdin.close()
        process.stdout.read()
    assert process.returncode == 0


def test_parse_in_the_chat_completions_shape(tools: str) -> None:
    done = run("parse", "--format", "gemma4", "--tools", tools, "--openai", given=CALL)
    message = json.loads(done.stdout)
    assert message["role"] == "assistant"
    assert message["tool_calls"][0]["function"]["name"] == "get_weather"


def test_parse_keeps_digits_and_survives_any_bytes(tools: str) -> None:
    digits = "9" * 5000
    done = run("parse", "--format", "gemma4", given=f"<|tool_call>call:f{{n:{digits}}}<tool_call|>")
    assert f'"value": {{"n": {digits}}}' in done.stdout
    done = run("parse", "--format", "gemma4", given=b"a\xff\xfe\x00\r\nb")
    assert json.loads(done.stdout)["content"] == "a\ufffd\ufffd\x00\r\nb"
    assert json.loads(run("parse", "--format", "gemma4", given=b"").stdout)["calls"] == []


@pytest.mark.parametrize("name", FORMATS)
def test_sampled_calls_validate(name: str, tools: str) -> None:
    options = ("--tools", tools, "--tool-choice", "required", "-n", "5", "--seed", "1")
    done = run("sample", "--format", name, *options)
    assert done.returncode == 0, done.stderr
    walks = [json.loads(line) for line in done.stdout.splitlines()]
    again = [json.loads(line) for line in run("sample", "--format", name, *options).stdout.splitlines()]
    assert [walk["text"] for walk in walks] == [walk["text"] for walk in again]
    assert len(walks) == 5
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
    for walk in walks:
        assert walk["message"]["calls"]
        for call in walk["message"]["calls"]:
            jsonschema.validate(call["value"], schemas[call["name"]])


def test_sample_named_choice_and_single() -> None:
    done = run(
        *("sample", "--format", "gemma4", "--tools", "-", "--tool-choice", "ping", "-n", "3", "--single"),
        given=json.dumps({"tools": TOOLS}),
    )
    for line in done.stdout.splitlines():
        (call,) = json.loads(line)["message"]["calls"]
        assert (call["name"], call["value"]) == ("ping", {})


def test_a_grammar_file_may_be_named(root: Path) -> None:
    done = run("parse", "--format", str(root / "grammars" / "gemma4.lark"), given=CALL)
    assert json.loads(done.stdout)["calls"][0]["name"] == "get_weather"


@pytest.mark.parametrize("command", [(), ("demo",), ("parse",), ("sample",), ("formats",)])
def test_help_has_an_example(command: tuple[str, ...]) -> None:
    done = run(*command, "--help")
    assert done.returncode == 0
    assert "twingram" in done.stdout
    assert not command or f"example:\n  twingram {command[0]}" in done.stdout


def test_errors_are_one_line(refused: Callable[..., str], tmp_path: Path, tools: str) -> None:
    missing = str(tmp_path / "nowhere")
    broken = tmp_path / "broken.json"
    broken.write_text("[\n1,", encoding="utf-8")
    grammar = tmp_path / "broken.lark"
    grammar.write_text("//@ format broken 1\n//@ start a\na: b", encoding="utf-8")
    assert "invalid choice" in refused("fly")
    assert "--format" in refused("parse")
    assert all(name in refused("parse", "--format", "nope") for name in ["nope", *FORMATS])
    assert missing in refused("parse", "--format", "gemma4", missing)
    assert missing in refused("parse", "--format", "gemma4", "--tools", missing)
    assert str(tmp_path) in refused("parse", "--format", "gemma4", str(tmp_path))
    assert "line 2" in refused("parse", "--format", "gemma4", "--tools", str(broken))
    assert "list" in refused("parse", "--format", "gemma4", "--tools", "-", "x", given=b"7")
    assert "deep" in refused("parse", "--format", "gemma4", "--tools", "-", "x", given=b"[" * 200_000)
    assert "UTF-8" in refused("parse", "--format", "gemma4", "--tools", "-", "x", given=b'["\xff"]')
    assert "standard input" in refused("parse", "--format", "gemma4", "--tools", "-")
    assert "broken.lark:3" in refused("parse", "--format", str(grammar))
    assert "nobody" in refused("sample", "--format", "gemma4", "--tools", tools, "--tool-choice", "nobody")
    assert "tools" in refused("sample", "--format", "gemma4", "--tool-choice", "required")
    assert "--tool-choice" in refused("sample", "--format", "gemma4", "--tools", tools, "--tool-choice", "{")
    assert missing in refused("sample", "--format", "gemma4", "--vocabulary", missing)
    for number in ("0", "-1", "x", "1.5"):
        assert "at least 1" in refused("sample", "--format", "gemma4", "-n", number)


def test_a_closed_pipe_is_no_error(tools: str) -> None:
    command = (
        f"{sys.executable} -c 'from twingram.cli import main; main()' sample --format gemma4 --tools {tools} -n 50"
    )
    done = subprocess.run(["bash", "-c", f"{command} | head -n 1"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert done.stderr == ""


def test_mask_says_what_may_follow(tools: str) -> None:
    asked = ("mask", "--format", "gemma4", "--tools", tools)
    prefix = "<|tool_call>call:get_weather{days:"
    done = run(*asked, "--prefix", prefix, "-n", "3")
    assert done.returncode == 0, done.stderr
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines() if not line.startswith(" "))
    assert lines["path"] == "$.days"
    assert lines["tool"] == "get_weather"
    assert lines["schema"] == '$.properties.days: type "integer", minimum 1'
    assert lines["may"] == "follow text that goes on with [1-9]"
    assert len(lines["sample"].split()) == 3
    same = run(*asked, "--prefix", "-", given=prefix)
    assert same.stdout.splitlines()[:7] == done.stdout.splitlines()[:7]


def test_mask_needs_no_prefix(tools: str) -> None:
    for name in FORMATS:
        done = run("mask", "--format", name, "--tools", tools, "--tool-choice", "ping")
        assert done.returncode == 0, done.stderr
        assert "tokens away at the nearest" in done.stdout


def test_check_reports_on_a_grammar(tmp_path: Path) -> None:
    drawing = tmp_path / "drawing.svg"
    done = run("check", "gemma4", "--svg", str(drawing))
    assert done.returncode == 0, done.stderr
    assert "\nambiguity    none found\nheld back    'thought\\nxxxx' and more" in done.stdout
    assert done.stdout.endswith("\nwarnings     none\n")
    assert drawing.read_text("utf-8").startswith("<svg ")
    copy = tmp_path / "mine.lark"
    copy.write_bytes(grammar_path("gemma4").read_bytes())
    assert run("check", str(copy)).stdout.splitlines()[1:] == done.stdout.splitlines()[1:]
    assert run("check", "-", given=copy.read_bytes()).stdout.splitlines()[1:] == done.stdout.splitlines()[1:]


def test_check_shows_both_readings_and_fails() -> None:
    grammar = (
        '//@ format both 1\n//@ start turn\n//@ stop "#"\nturn: content | reasoning\n'
        "content: TEXT\nreasoning: TEXT\nTEXT: /((?!#).)+/s\n"
    )
    done = run("check", "-", given=grammar)
    assert done.returncode == 2
    assert "⟨content:" in done.stdout
    assert "⟨reasoning:" in done.stdout
    assert done.stderr.count("\n") == 1
    assert "two canonical readings" in done.stderr


def test_mask_and_check_errors_are_one_line(refused: Callable[..., str], tools: str, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.lark"
    wrong.write_text('//@ format f 1\n//@ start turn\n//@ stop "#"\nturn: turn "a"\n', encoding="utf-8")
    missing = str(tmp_path / "no" / "such.svg")
    prefix = ("--prefix", "<|tool_call>call:ping{x")
    assert "'x' cannot follow" in refused("mask", "--format", "gemma4", "--tools", tools, *prefix)
    assert "standard input" in refused("mask", "--format", "gemma4", "--tools", "-", "--prefix", "-")
    assert "begin with itself" in refused("check", str(wrong))
    assert "such.lark" in refused("check", str(tmp_path / "such.lark"))
    wrong.rename(wrong.with_suffix(".txt"))  # a file whatever its suffix, and whatever its folder
    assert "begin with itself" in refused("check", str(wrong.with_suffix(".txt")))
    assert "such/file" in refused("check", "such/file")
    assert "nonsense" in refused("check", "nonsense")
    assert main(["check", "gemma4", "--svg", missing]) == 2


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "twingram", "formats"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.split()) == (0, FORMATS)


def test_markers_that_a_vocabulary_lacks_are_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """They are written in letters, which is said; or a token is named for each."""
    ranks = tmp_path / "bytes.tiktoken"
    ranks.write_text("".join(f"{base64.b64encode(bytes([n])).decode()} {n}\n" for n in range(256)), encoding="ascii")
    markers = tg.load_format("gemma4").grammar.markers
    command = ["export", "--format", "gemma4", "--to", "gbnf", "--vocabulary", str(ranks)]
    every = [part for n, marker in enumerate(markers) for part in ("--special-token", f"{marker}={256 + n}")]
    stop = ["--special-token", "<turn|>=300"]
    assert main([*command, *stop]) == 0
    found = capsys.readouterr()
    assert found.err.count("\n") == 1
    assert all(marker in found.err for marker in markers if marker != "<turn|>")
    assert "<[" not in found.out
    assert main([*command, *every, *stop]) == 0
    found = capsys.readouterr()
    assert found.err == ""
    assert f"<[{256 + [*markers].index('<|channel>')}]>" in found.out
    assert main(["sample", "--format", "gemma4", "--special-token", "<turn|>=3"]) == 2
    assert main([*command, "--special-token", "<turn|>"]) == 2
    assert "is not TEXT=ID" in capsys.readouterr().err
