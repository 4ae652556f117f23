"""`manage.py evalretrieval SET [--by WAY] [--compare WAY]` measures which passages are found."""

import json
from pathlib import Path
from time import monotonic
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from inference import EngineError, ModelError, TokenCounter
from retrieval.evaluation import (
    KS,
    WAYS,
    Configuration,
    Embedder,
    Result,
    evaluate,
    parse_configuration,
)
from retrieval.ids import uuid7
from retrieval.models import Evaluation
from retrieval.question_sets import BadSet, QuestionSet, load

_FORM = "hybrid:256/64"


class Command(BaseCommand):
    help = (
        "Measure how well the passages that answer questions are found. SET is a file of SQuAD's format"
        " (SQuAD, XQuAD …), or a CSV with the columns question, document, and answer or passage;"
        " documents are files, seen from its folder. Nobody sees them; the admin console keeps the"
        " figures."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        ways = ", ".join(WAYS)
        parser.add_argument("set", metavar="SET", type=Path)
        parser.add_argument(
            "--by",
            default="hybrid",
            metavar="WAY[:TOKENS[/OVERLAP]]",
            help=f"{ways}; with the size of chunks and what they share, as in {_FORM}",
        )
        parser.add_argument(
            "--compare", metavar="WAY[:TOKENS[/OVERLAP]]", help="a second configuration, likewise"
        )
        parser.add_argument("--model", default=settings.EMBEDDING_MODEL, help="for the vectors")
        parser.add_argument("--json", metavar="FILE", help="also as JSON; - is standard output")

    def handle(self, *args: Any, **options: Any) -> None:
        began_s = monotonic()
        try:
            given = load(options["set"])
            counter = TokenCounter.load(settings.ENGINE, options["model"])
            asked = _configurations(options, counter.window_tokens)
            embed = Embedder(settings.ENGINE, options["model"])
            results = evaluate(given, asked, embed, counter, embed.known_shares)
        except (BadSet, ModelError, EngineError) as error:
            raise CommandError(str(error)) from None
        except OSError as error:
            raise CommandError(f"{options['set']}: {error.strerror}.") from None
        _keep(given, results, options["model"], monotonic() - began_s)
        self._tell(given, results, options)

    def _tell(self, given: QuestionSet, results: list[Result], options: dict[str, Any]) -> None:
        found = {
            "set": given.name,
            "sha256": given.sha256,
            "documents": len(given.documents),
            "questions": len(given.questions),
            "embedding_model": options["model"],
            "results": [
                {"configuration": str(one.configuration), **one.scores.as_json()} for one in results
            ],
        }
        text = json.dumps(found, indent=2)
        if options["json"] == "-":
            self.stdout.write(text)
            return
        num = f"{len(given.questions):,} questions, {len(given.documents):,} documents"
        self.stdout.write(f"{given.name}: {num}, {options['model']}\n\n")
        self.stdout.write("\n".join(_table(results)))
        if len(results) == 2:
            self.stdout.write("\n" + _difference(*results))
        if options["json"]:
            try:
                Path(options["json"]).write_text(text + "\n")
            except OSError as error:
                raise CommandError(f"{options['json']}: {error.strerror}.") from None


def _configurations(options: dict[str, Any], window_tokens: int) -> list[Configuration]:
    usual = min(settings.CHUNK_TOKENS, window_tokens)
    texts = [text for text in (options["by"], options["compare"]) if text]
    try:
        found = [parse_configuration(text, usual, settings.CHUNK_OVERLAP_TOKENS) for text in texts]
    except ValueError as error:
        raise CommandError(str(error)) from None
    if len(set(found)) < len(found):
        raise CommandError(f"Both configurations are {found[0]}.")
    return found


def _keep(given: QuestionSet, results: list[Result], model: str, took_s: float) -> None:
    run = uuid7()
    for one in results:
        Evaluation.objects.create(
            run=run,
            set_name=given.name[:255],
            set_sha256=given.sha256,
            embedding_model=model,
            way=one.configuration.way,
            max_tokens=one.configuration.max_tokens,
            overlap_tokens=one.configuration.overlap_tokens,
            num_questions=one.scores.num_questions,
            scores=one.scores.as_json(),
            took_s=round(took_s, 1),
        )


def _table(results: list[Result]) -> list[str]:
    """Names at the left, a column for each result."""
    rows = [["", *(str(one.configuration) for one in results)]]
    rows.append(["chunks", *(f"{one.scores.num_chunks:,}" for one in results)])
    for k in KS:
        rows.append([f"recall@{k}", *(f"{one.scores.recall[k]:.3f}" for one in results)])
    rows.append(["MRR", *(f"{one.scores.mrr:.3f}" for one in results)])
    rows.append(["nDCG@10", *(f"{one.scores.ndcg_at_10:.3f}" for one in results)])
    for k in KS:
        rows.append([f"precision@{k}", *(f"{one.scores.precision[k]:.3f}" for one in results)])
    for k in KS:
        rows.append([f"characters@{k}", *(f"{one.scores.characters[k]:,.0f}" for one in results)])
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]


def _difference(first: Result, second: Result) -> str:
    """In how many questions they differ: a mean hides whether it is one half or another."""
    pairs = list(zip(first.first_ranks, second.first_ranks, strict=True))
    found = [[rank is not None and rank <= 5 for rank in pair] for pair in pairs]
    only_first = sum(a and not b for a, b in found)
    only_second = sum(b and not a for a, b in found)
    return (
        f"Among the first 5: {only_first} questions by {first.configuration} alone,"
        f" {only_second} by {second.configuration} alone."
    )
