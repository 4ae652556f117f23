"""`python -m inference.builtin COMMAND` (`--help` names them): how the built-in model is made."""

import argparse
import json
import logging
import os
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

from inference.builtin import MODEL_DIR


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m inference.builtin", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    generate = commands.add_parser("generate", help="print training dialogs as JSON lines")
    generate.add_argument("--count", type=int, default=10)
    generate.add_argument("--seed", type=int, default=1)
    generate.add_argument("--skill", help="only this main skill")
    generate.add_argument("--text", action="store_true", help="as the model sees them")
    commands.add_parser("tokenizer", help="learn the tokenizer and write its files")
    train = commands.add_parser("train", help="run or resume the recipe")
    train.add_argument("--folder", type=Path, default=Path("var/builtin/run"))
    train.add_argument("--start", type=Path, help="begin with the weights of this exported model")
    train.add_argument("--layers", type=int, help="of the model, if not the recipe's")
    train.add_argument("--stages", nargs="+", help="run only these of the recipe, by name")
    train.add_argument("--threads", type=int, default=2)
    train.add_argument("--device", default="cpu", help="cpu or cuda")
    train.add_argument("--generators", type=int, default=1, help="processes that write dialogs")
    train.add_argument("--seconds", type=float, help="end by then; the learning rate falls in time")
    train.add_argument("--no-compile", action="store_true", help="skip torch.compile (slower)")
    train.add_argument("--publish", action="store_true", help="at the end, overwrite the model")
    average = commands.add_parser("average", help="write the mean of two exported models")
    average.add_argument("first", type=Path)
    average.add_argument("second", type=Path)
    average.add_argument("folder", type=Path)
    score = commands.add_parser("score", help="exact scores on held-out items")
    score.add_argument("--model", type=Path, default=MODEL_DIR)
    score.add_argument("--count", type=int, default=200)
    score.add_argument("--skills", nargs="*", default=[])
    score.add_argument("--json", type=Path, help="write scores and wrong turns here")
    score.add_argument("--threads", type=int, default=2)
    card = commands.add_parser("card", help="score all skills and write the model card")
    card.add_argument("--model", type=Path, default=MODEL_DIR)
    card.add_argument("--count", type=int, default=200)
    card.add_argument("--threads", type=int, default=2)
    chat = commands.add_parser("chat", help="talk to the model in the terminal")
    chat.add_argument("--model", type=Path, default=MODEL_DIR)
    chat.add_argument("--system", default="")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    os.environ.setdefault("GOMP_SPINCOUNT", "0")  # threads that spin starve their neighbours
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    _COMMANDS[arguments.command](arguments)


def _generate(arguments: argparse.Namespace) -> None:
    from inference.builtin.mixture import SKILLS, training_dialogs
    from inference.builtin.template import segments

    only = arguments.skill
    weights = {s.name: float(s.name == only) for s in SKILLS} if only else {}
    for dialog in islice(training_dialogs(arguments.seed, weights), arguments.count):
        if arguments.text:
            sys.stdout.write("".join(s.text for s in segments(dialog)) + "\n")
        else:
            sys.stdout.write(json.dumps(dialog.as_json(), ensure_ascii=False) + "\n")


def _tokenizer(arguments: argparse.Namespace) -> None:
    from inference.builtin import tokenizer

    tokenizer.write()


def _train(arguments: argparse.Namespace) -> None:
    import torch

    from inference.builtin.recipe import SHAPE, STAGES
    from inference.builtin.train import publish, train

    torch.set_num_threads(arguments.threads)
    named = arguments.stages or [stage.name for stage in STAGES]
    train(
        [stage for stage in STAGES if stage.name in named],
        arguments.folder,
        replace(SHAPE, num_hidden_layers=arguments.layers or SHAPE.num_hidden_layers),
        is_compiled=not arguments.no_compile,
        start=arguments.start,
        device=arguments.device,
        num_generators=arguments.generators,
        limit_s=arguments.seconds,
    )
    if arguments.publish:
        publish(arguments.folder)


def _average(arguments: argparse.Namespace) -> None:
    from inference.builtin.average import average

    average(arguments.first, arguments.second, arguments.folder)


def _score(arguments: argparse.Namespace) -> None:
    import torch

    from inference.builtin import score

    torch.set_num_threads(arguments.threads)
    scores = score.score_all(arguments.model, arguments.count, arguments.skills)
    sys.stdout.write(score.table(scores) + "\n")
    if arguments.json:
        text = json.dumps(score.as_json(scores), indent=1, ensure_ascii=False)
        arguments.json.write_text(text, encoding="utf-8")


def _card(arguments: argparse.Namespace) -> None:
    import torch

    from inference.builtin import card, score

    torch.set_num_threads(arguments.threads)
    card.write(arguments.model, score.score_all(arguments.model, arguments.count))


def _chat(arguments: argparse.Namespace) -> None:
    from inference.builtin.dialog import Message
    from inference.builtin.score import Decoder
    from inference.builtin.template import prompt_text

    decoder = Decoder(arguments.model)
    messages = [Message("system", arguments.system)] if arguments.system else []
    for line in sys.stdin:
        messages.append(Message("user", line.strip()))
        answer = decoder.answers([prompt_text(messages, ())])[0]
        sys.stdout.write(answer.text + "\n")
        messages.append(Message("assistant", answer.text))


_COMMANDS = {
    "generate": _generate,
    "tokenizer": _tokenizer,
    "train": _train,
    "average": _average,
    "score": _score,
    "card": _card,
    "chat": _chat,
}

if __name__ == "__main__":
    main()
