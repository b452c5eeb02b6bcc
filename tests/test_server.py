"""The server over HTTP on loopback, asked by the official `openai` client; and raw where a client would not do."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import twingram as tg

openai = pytest.importorskip("openai", reason="the extra 'server' and the openai client are not installed")
uvicorn = pytest.importorskip("uvicorn", reason="the extra 'server' is not installed")
pytest.importorskip("prometheus_client", reason="the extra 'server' is not installed")
httpx = pytest.importorskip("httpx", reason="httpx is not installed")

from twingram_bindings.server import RandomBackend, Settings, create_app  # noqa: E402
from twingram_bindings.server.stops import StopText  # noqa: E402

WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "maximum": 14}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
SEND = {
    "type": "object",
    "properties": {"to": {"type": "array", "items": {"type": "string"}, "minItems": 1}, "urgent": {"type": "boolean"}},
    "required": ["to"],
    "additionalProperties": False,
}
SCHEMAS = {"get_weather": WEATHER, "send": SEND}
TOOLS = [{"type": "function", "function": {"name": n, "parameters": s}} for n, s in SCHEMAS.items()]
HELLO = [{"role": "user", "content": "Hello"}]
SMALL = Settings(max_body_bytes=100_000)


class Endless(RandomBackend):
    """Never chooses to stop where it may go on, and takes its time."""

    asked = 0

    def tokens(self, prompt: Any, session: tg.Session, sampling: Any) -> Iterator[int]:
        while True:
            self.asked += 1
            time.sleep(0.002)
            stops = set(session.binding.stops)
            yield next(int(i) for i in session.allowed_tokens() if int(i) not in stops)


class Failing(RandomBackend):
    def tokens(self, prompt: Any, session: tg.Session, sampling: Any) -> Iterator[int]:
        yield int(next(iter(session.allowed_tokens())))
        raise RuntimeError("the device is gone")


@contextlib.contextmanager
def serving(backend: RandomBackend, settings: Settings = SMALL) -> Iterator[str]:
    """A live server on a free port of this machine."""
    server = uvicorn.Server(
        uvicorn.Config(create_app(backend, settings), port=0, log_config=None, access_log=False, ws="none")
    )
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


def client_of(url: str) -> Any:
    return openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


@pytest.fixture(scope="module", params=["gemma4", "atem"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    with serving(RandomBackend(request.param)) as url:
        yield url


@pytest.fixture(scope="module")
def one_url() -> Iterator[str]:
    with serving(RandomBackend("gemma4")) as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[Any]:
    with client_of(url) as client:
        yield client


def ask(client: Any, **options: Any) -> Any:
    return client.chat.completions.create(model="random", messages=HELLO, **options)


def check_calls(message: Any, names: set[str]) -> None:
    assert message.tool_calls
    for call in message.tool_calls:
        assert call.function.name in names
        jsonschema.validate(json.loads(call.function.arguments), SCHEMAS[call.function.name])
    assert len({call.id for call in message.tool_calls}) == len(message.tool_calls)


def joined(stream: Any) -> tuple[dict[str, Any], str, Any]:
    """The message that the chunks make, the finish reason, the usage."""
    message: dict[str, Any] = {"content": "", "reasoning": "", "calls": {}}
    reason, usage = None, None
    for chunk in stream:
        assert reason is None or not chunk.choices
        usage = chunk.usage or usage
        for choice in chunk.choices:
            delta = choice.delta
            message["content"] += delta.content or ""
            message["reasoning"] += getattr(delta, "reasoning_content", None) or ""
            for piece in delta.tool_calls or ():
                call = message["calls"].setdefault(
                    piece.index, {"id": piece.id, "name": piece.function.name, "arguments": ""}
                )
                call["arguments"] += piece.function.arguments or ""
            reason = choice.finish_reason or reason
    return message, reason, usage


# -- answers -----------------------------------------------------------------------------------------------------------


CHOICES = {
    "required": ("required", {"get_weather", "send"}),
    "named": ({"type": "function", "function": {"name": "send"}}, {"send"}),
    "allowed": (
        {
            "type": "allowed_tools",
            "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "get_weather"}}]},
        },
        {"get_weather"},
    ),
}


@pytest.mark.parametrize("choice", list(CHOICES))
@pytest.mark.parametrize("seed", range(4))
def test_forced_calls_validate(client: Any, choice: str, seed: int) -> None:
    given, names = CHOICES[choice]
    answer = ask(client, tools=TOOLS, tool_choice=given, seed=seed)
    check_calls(answer.choices[0].message, names)
    assert answer.choices[0].finish_reason == "tool_calls"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("options", [{"tool_choice": "required"}, {"tool_choice": "auto"}, {"max_tokens": 30}], ids=str)
def test_a_stream_joins_to_the_answer(client: Any, seed: int, options: dict[str, Any]) -> None:
    whole = ask(client, tools=TOOLS, seed=seed, **options)
    message, reason, usage = joined(
        ask(client, tools=TOOLS, seed=seed, stream=True, stream_options={"include_usage": True}, **options)
    )
    expected = whole.choices[0].message
    assert message["content"] == (expected.content or "")
    assert message["reasoning"] == (getattr(expected, "reasoning_content", None) or "")
    calls = [(call["name"], call["arguments"]) for call in message["calls"].values()]
    assert calls == [(call.function.name, call.function.arguments) for call in expected.tool_calls or ()]
    assert (reason, usage) == (whole.choices[0].finish_reason, whole.usage)


def test_what_is_not_forced_comes_too(client: Any) -> None:
    """Over some seeds: answers under auto, thoughts unless they are forbidden, several calls and one."""
    auto = [ask(client, tools=TOOLS, seed=seed).choices[0] for seed in range(6)]
    assert "stop" in {choice.finish_reason for choice in auto} <= {"stop", "tool_calls"}
    missing = {"thoughts", "several calls"}
    for seed in range(100):
        message = ask(client, tools=TOOLS, tool_choice="required", seed=seed).choices[0].message
        missing -= {"several calls"} if len(message.tool_calls) > 1 else set()
        missing -= {"thoughts"} if getattr(message, "reasoning_content", None) else set()
        if not missing:
            break
    assert not missing
    for seed in range(3):
        options = {"parallel_tool_calls": False, "reasoning_effort": "none", "seed": seed}
        message = ask(client, tools=TOOLS, tool_choice="required", **options).choices[0].message
        assert len(message.tool_calls) == 1
        assert getattr(message, "reasoning_content", None) is None
        assert ask(client, tools=TOOLS, tool_choice="none", seed=seed).choices[0].message.tool_calls is None


def test_a_seed_repeats(client: Any) -> None:
    once, again, other = (ask(client, seed=seed).choices[0].message for seed in (1, 1, 2))
    assert once == again != other
    assert ask(client, temperature=0).choices == ask(client, temperature=0).choices


@pytest.mark.parametrize("seed", range(5))
def test_structured_output(client: Any, seed: int) -> None:
    described = {"name": "weather", "schema": WEATHER, "strict": True}
    answer = ask(client, response_format={"type": "json_schema", "json_schema": described}, seed=seed).choices[0]
    jsonschema.validate(json.loads(answer.message.content), WEATHER)
    assert answer.finish_reason == "stop"


@pytest.mark.parametrize("most", [60, 90])
def test_a_budget_ends_a_forced_call(client: Any, most: int) -> None:
    for seed in range(4):
        named = {"type": "function", "function": {"name": "get_weather"}}
        answer = ask(client, tools=TOOLS, tool_choice=named, max_completion_tokens=most, seed=seed)
        check_calls(answer.choices[0].message, {"get_weather"})
        assert answer.usage.completion_tokens <= most


def test_a_budget_cuts_an_answer() -> None:
    with serving(Endless("gemma4")) as url, client_of(url) as client:
        answer = ask(client, max_tokens=7, reasoning_effort="none")
        assert (answer.choices[0].finish_reason, answer.usage.completion_tokens) == ("length", 7)
        assert answer.choices[0].message.content


def test_stop_sequences(client: Any) -> None:
    answers = ((n, ask(client, seed=n, reasoning_effort="none").choices[0].message.content or "") for n in range(20))
    seed, whole = next((seed, text) for seed, text in answers if len(text) > 4)
    stop = whole[2:4]
    options = {"seed": seed, "reasoning_effort": "none", "stop": ["\0never\0", stop]}
    cut = ask(client, **options).choices[0]
    assert (cut.message.content or "", cut.finish_reason) == (whole[: whole.index(stop)], "stop")
    assert joined(ask(client, stream=True, **options))[0]["content"] == whole[: whole.index(stop)]


@pytest.mark.parametrize("stops", [["ab"], ["aab", "b"], ["abc", "bd"], ["aaa"]])
@pytest.mark.parametrize("text", ["", "a", "xaab", "aaab", "abab", "abd", "aa", "abcabd", "aabaab"])
def test_stop_sequences_over_any_split(stops: list[str], text: str) -> None:
    expected = text[: min((text.index(stop) for stop in stops if stop in text), default=len(text))]
    for cut in range(len(text) + 1):
        filtered = StopText(stops)
        pieces = [tg.Content(piece) for piece in (text[:cut], text[cut:]) if piece]
        out = [*filtered.filter(pieces), *filtered.flush()]
        assert "".join(delta.text for delta in out) == expected
        assert filtered.hit == (expected != text)


# -- refusals ----------------------------------------------------------------------------------------------------------


def a_tool(schema: Any, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", "parameters": schema, **more}}


UNSATISFIABLE = {"type": "object", "properties": {"a": {"type": "string", "enum": []}}, "required": ["a"]}
BAD_PATTERN = {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}, "required": ["a"]}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "unknown tool": ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "x"}}}, "tool_choice"),
    "required without tools": ({"tool_choice": "required"}, "tool_choice"),
    "odd choice": ({"tools": TOOLS, "tool_choice": "always"}, "tool_choice"),
    "schema of a text": ({"tools": [a_tool("{}")]}, "tools[0].function.parameters"),
    "two of a name": ({"tools": [a_tool({}), a_tool({})]}, "tools"),
    "no function": ({"tools": [TOOLS[0], {"type": "retrieval"}]}, "tools[1].type"),
    "nothing satisfies it": ({"tools": [TOOLS[0], a_tool(UNSATISFIABLE)]}, "tools[1].function.parameters"),
    "strict": ({"tools": [a_tool(BAD_PATTERN, strict=True)]}, "tools[0].function.parameters.properties.a"),
    "answer's schema": (
        {"response_format": {"type": "json_schema", "json_schema": {"schema": BAD_PATTERN, "strict": True}}},
        "response_format.json_schema.schema.properties.a",
    ),
    "no schema": ({"response_format": {"type": "json_schema"}}, "response_format.json_schema.schema"),
    "odd format": ({"response_format": {"type": "xml"}}, "response_format.type"),
    "no messages": ({"messages": []}, "messages"),
    "odd role": ({"messages": [{"role": "king", "content": "x"}]}, "messages[0].role"),
    "image": (
        {"messages": [*HELLO, {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
        "messages[1].content[0].type",
    ),
    "calls as objects": (
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}]},
        "messages[0].tool_calls[0].function.arguments",
    ),
    "two answers": ({"n": 2}, "n"),
    "penalty": ({"presence_penalty": 0.5}, "presence_penalty"),
    "unknown field": ({"top_k": 3}, "top_k"),
    "old form": ({"functions": []}, "functions"),
    "hot": ({"temperature": 3}, "temperature"),
    "no number": ({"temperature": True}, "temperature"),
    "no seed": ({"seed": 1.5}, "seed"),
    "no tokens": ({"max_tokens": 0}, "max_tokens"),
    "too many tokens": ({"max_tokens": 10**6}, "max_tokens"),
    "too few tokens": ({"tools": TOOLS, "tool_choice": "required", "max_tokens": 2}, "max_tokens"),
    "empty stop": ({"stop": ["a", ""]}, "stop[1]"),
    "many stops": ({"stop": list("abcde")}, "stop"),
    "stream options alone": ({"stream_options": {"include_usage": True}}, "stream_options"),
    "odd effort": ({"reasoning_effort": "huge"}, "reasoning_effort"),
    "text as flag": ({"stream": "yes"}, "stream"),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_refusals_name_the_place(one_url: str, name: str) -> None:
    fields, place = REFUSED[name]
    for stream in ({}, {"stream": True}) if "stream" not in fields and "stream_options" not in fields else ({},):
        body = {"model": "random", "messages": HELLO, **fields, **stream}
        answer = httpx.post(f"{one_url}/v1/chat/completions", json=body)
        assert answer.status_code == 400, answer.text
        error = answer.json()["error"]
        assert set(error) == {"message", "type", "param", "code"}
        assert error["type"] == "invalid_request_error"
        assert error["param"].startswith(place), error


def test_the_client_raises_what_was_refused(one_url: str) -> None:
    with client_of(one_url) as client:
        with pytest.raises(openai.BadRequestError) as refused:
            ask(client, tools=TOOLS, tool_choice={"type": "function", "function": {"name": "x"}})
        assert refused.value.param == "tool_choice"
        with pytest.raises(openai.NotFoundError, match="nobody"):
            client.chat.completions.create(model="nobody", messages=HELLO)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b'"x"', b"{\"model\": NaN}", b"\xff\xfe", b"[" * 90_000, b'{"model": "\\ud800"}',
        b'{"seed": 1' + b"0" * 5000 + b"}", b'{"model": "random", "messages": null}', b"{'model': 1}",
    ],
    ids=lambda body: repr(body[:20]),
)  # fmt: skip
def test_malformed_bodies(one_url: str, body: bytes) -> None:
    answer = httpx.post(f"{one_url}/v1/chat/completions", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"]


@pytest.mark.parametrize("chunked", [False, True])
def test_oversized_bodies(one_url: str, chunked: bool) -> None:
    body = b'{"model": "random", "messages": [{"role": "user", "content": "' + b"x" * 200_000 + b'"}]}'
    content = iter([body[:90_000], body[90_000:]]) if chunked else body
    answer = httpx.post(f"{one_url}/v1/chat/completions", content=content)
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "body_too_large"


def test_no_other_route(one_url: str) -> None:
    for method, path, status in [
        ("GET", "/", 404), ("GET", "/docs", 404), ("POST", "/v1/completions", 404), ("GET", "/v1/models/", 404),
        ("GET", "/v1/chat/completions", 405), ("POST", "/metrics", 405), ("DELETE", "/v1/models", 405),
    ]:  # fmt: skip
        answer = httpx.request(method, one_url + path)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, "unknown_route"), path
    with client_of(one_url) as client:
        assert [model.id for model in client.models.list()] == ["random"]


# -- many, gone, broken ------------------------------------------------------------------------------------------------


def test_fifty_at_once(one_url: str) -> None:
    """Each gets the answer that it gets alone, streamed or not."""
    with client_of(one_url) as client:
        alone = [ask(client, tools=TOOLS, tool_choice="required", seed=n).choices[0].message for n in range(5)]

        def one(n: int) -> tuple[int, list[tuple[str, str]]]:
            options = {"tools": TOOLS, "tool_choice": "required", "seed": n % 5}
            if n % 2:
                calls = joined(ask(client, stream=True, **options))[0]["calls"].values()
                return n % 5, [(call["name"], call["arguments"]) for call in calls]
            calls = ask(client, **options).choices[0].message.tool_calls
            return n % 5, [(call.function.name, call.function.arguments) for call in calls]

        with ThreadPoolExecutor(50) as pool:
            for seed, calls in pool.map(one, range(50)):
                assert calls == [(c.function.name, c.function.arguments) for c in alone[seed].tool_calls]


def metric(url: str, name: str) -> float:
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if name_in(line) == name)


def name_in(line: str) -> str:
    return line.split("{", maxsplit=1)[0].split(" ", maxsplit=1)[0]


def wait_for(condition: Any) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_stops_the_generation(stream: bool) -> None:
    backend = Endless("gemma4")
    with serving(backend, Settings(max_tokens=100_000)) as url:
        body = {"model": "random", "messages": HELLO, "stream": stream, "reasoning_effort": "none"}
        if stream:
            with httpx.stream("POST", f"{url}/v1/chat/completions", json=body) as answer:
                next(answer.iter_lines())
        else:
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(f"{url}/v1/chat/completions", json=body, timeout=0.3)
        wait_for(lambda: metric(url, "twingram_disconnects_total") == 1)
        wait_for(lambda: metric(url, "twingram_requests_running") == 0)
        time.sleep(0.05)  # the token that was under way
        asked = backend.asked
        time.sleep(0.05)
        assert backend.asked == asked < 50_000


@pytest.mark.parametrize("stream", [True, False])
def test_a_failure_of_the_back_end_is_said(stream: bool) -> None:
    with serving(Failing("gemma4")) as url:
        body = {"model": "random", "messages": HELLO, "stream": stream}
        answer = httpx.post(f"{url}/v1/chat/completions", json=body)
        last = answer.text.strip().split("\n\n")[-1].removeprefix("data: ")
        assert json.loads(last)["error"]["type"] == "server_error"
        assert answer.status_code == (200 if stream else 500)
        assert "device" not in answer.text
        wait_for(lambda: metric(url, "twingram_requests_running") == 0)


def test_too_many_are_told_to_come_back() -> None:
    with serving(Endless("gemma4"), Settings(max_requests=1, max_tokens=100_000)) as url:
        body = {"model": "random", "messages": HELLO, "stream": True, "reasoning_effort": "none"}
        with httpx.stream("POST", f"{url}/v1/chat/completions", json=body) as first:
            lines = first.iter_lines()
            next(lines)
            answer = httpx.post(f"{url}/v1/chat/completions", json=body)
            assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")


def test_metrics_count(one_url: str) -> None:
    names = ["generated_tokens_total", "prompt_tokens_total", "tool_calls_total", "mask_seconds_count",
             "parse_seconds_count", "compile_seconds_count", "requests_total"]  # fmt: skip
    before = {name: metric(one_url, f"twingram_{name}") for name in names}
    with client_of(one_url) as client:
        ask(client, tools=TOOLS, tool_choice="required")
    assert all(metric(one_url, f"twingram_{name}") > before[name] for name in names)
    assert metric(one_url, "twingram_states") > 0
    assert metric(one_url, "twingram_cache_bytes") > 0


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_the_command_serves_and_ends_in_order() -> None:
    command = [sys.executable, "-m", "twingram", "serve", "--backend", "random", "--port", "0"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        lines: list[dict[str, Any]] = []
        try:
            while not (lines and "running on" in lines[-1]["event"]):
                lines.append(json.loads(process.stderr.readline()))
            url = next(word for word in lines[-1]["event"].split() if word.startswith("http://127.0.0.1:"))
            with client_of(url) as client:
                check_calls(ask(client, tools=TOOLS, tool_choice="required").choices[0].message, set(SCHEMAS))
                joined(ask(client, tools=TOOLS, tool_choice="required", stream=True))
        finally:
            process.send_signal(signal.SIGTERM)
        rest = [json.loads(line) for line in process.stderr.read().splitlines()]
        process.wait(30)
    assert not [line for line in rest if line["level"] not in ("debug", "info")]
    assert rest[-2]["event"] == "Application shutdown complete."
    told = [line for line in rest if line["event"] == "request"]
    assert [line["stream"] for line in told] == [False, True]
    for line in told:
        assert (line["status"], line["finish_reason"], line["tool_choice"]) == (200, "tool_calls", "required")
    assert "Hello" not in str(rest)


@pytest.mark.parametrize(("missing", "extra"), [("uvicorn", "server"), ("transformers", "transformers")])
def test_what_is_missing_is_named(
    missing: str, extra: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], root: Path
) -> None:
    """The command in the message installs what the extra of the package does."""
    from twingram.cli import main

    def prepare(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

    monkeypatch.setattr(sys.modules["twingram.cli.serve"].importlib, "import_module", prepare)
    assert main(["serve", "--backend", "random"]) == 2
    told = capsys.readouterr().err.strip().split(f"needs the package {missing}: python -m pip install ")[1].split()
    line = re.search(rf"^{extra} = \[(.*)\]", (root / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert line is not None
    assert sorted(told) == sorted(re.findall(r'"([\w-]+)', line.group(1)))


@pytest.mark.parametrize(
    "options",
    [
        ["--model", "x"],
        ["--threads", "0"],
        ["--special-token", "a=1"],
        ["--chat-template", "x"],
        ["--format", "nowhere"],
    ],
    ids=str,
)
def test_options_that_make_no_sense(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    from twingram.cli import main

    assert main(["serve", "--backend", "random", *options]) == 2
    assert capsys.readouterr().err.count("\n") == 1
