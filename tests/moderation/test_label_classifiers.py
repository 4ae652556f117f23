"""Sequence classifiers of the hub: whatever their labels are called, run by a real engine."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from inference import Caller, Engine, EngineConfig, ModelRefused, UnknownModel, WrongKind
from moderation.categories import CATEGORIES
from moderation.classifiers.by_labels import LabelClassifier
from moderation.classifiers.labels import meaning_of
from tests.inference.tiny_models import make_encoder

CALLER = Caller("alice")
TEXTS = ["The quick brown fox.", "You are a lazy dog!", "12 more of 345"]
KOALA = ("S", "H", "V", "HR", "SH", "S3", "H2", "V2", "OK")
MULTI = "multi_label_classification"

pytestmark = pytest.mark.asyncio(loop_scope="module")  # workers take seconds to start


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classifiers")
    toxic = ("toxic", "obscene", "threat", "insult")
    make_encoder(folder / "org" / "toxic", labels=toxic, problem_type=MULTI)
    make_encoder(folder / "org" / "koala", labels=KOALA, seed=2)
    small = {"max_position_embeddings": 64, "seed": 3}
    make_encoder(folder / "org" / "attacks", labels=("SAFE", "INJECTION"), **small)
    make_encoder(folder / "org" / "odd", labels=("LABEL_0", "LABEL_1"))
    make_encoder(folder / "org" / "embedding", pooling="mean")
    return folder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(folder: Path) -> AsyncIterator[Engine]:
    running = Engine(EngineConfig(folder, num_threads=1, dtype="float32"))
    yield running
    await running.close()


async def _labels(engine: Engine, model: str, text: str) -> dict[str, float]:
    found = await engine.classify(model, [text], truncate=True)
    return {one.label: one.score for one in found.labels[0]}


async def test_labels_become_categories(engine: Engine) -> None:
    found = await LabelClassifier(engine, "org/toxic").score(TEXTS, CALLER)
    for text, scores in zip(TEXTS, found, strict=True):
        labels = await _labels(engine, "org/toxic", text)
        expected = {
            "harassment": max(labels["toxic"], labels["insult"]),
            "harassment/threatening": labels["threat"],
            "violence": labels["threat"],
        }
        assert dict(scores) == pytest.approx(expected, abs=1e-4)
    assert len({scores["harassment"] for scores in found}) == len(TEXTS)  # each its own


async def test_the_set_of_openai_is_known(engine: Engine) -> None:
    (scores,) = await LabelClassifier(engine, "org/koala").score(TEXTS[:1], CALLER)
    labels = await _labels(engine, "org/koala", TEXTS[0])
    names = ["sexual", "hate", "violence", "harassment", "self-harm"]
    names += ["sexual/minors", "hate/threatening", "violence/graphic"]
    expected = {name: labels[label] for name, label in zip(names, KOALA[:-1], strict=True)}
    assert dict(scores) == pytest.approx(expected, abs=1e-4)


async def test_a_long_text_is_as_bad_as_its_worst_part(engine: Engine) -> None:
    classifier = LabelClassifier(engine, "org/attacks")
    pieces = [f"The fox number {at} jumps over dog {at * at}." for at in range(200)]
    (whole,) = await classifier.score([" ".join(pieces)], CALLER)
    (first,) = await classifier.score([" ".join(pieces[:20])], CALLER)
    assert whole["prompt_injection"] >= first["prompt_injection"] - 1e-4
    cut = await _labels(engine, "org/attacks", " ".join(pieces))
    assert whole["prompt_injection"] != pytest.approx(cut["INJECTION"], abs=1e-6)


async def test_words_of_many_tokens_are_cut_until_they_fit(engine: Engine) -> None:
    (scores,) = await LabelClassifier(engine, "org/attacks").score(["世界👩‍👩‍👧" * 300], CALLER)
    assert 0 < scores["prompt_injection"] < 1


async def test_nothing_to_read_is_nothing_to_find(engine: Engine) -> None:
    empty, one = await LabelClassifier(engine, "org/attacks").score(["\u200b \n", "fox"], CALLER)
    assert empty == {"prompt_injection": 0.0}
    assert one["prompt_injection"] > 0


async def test_an_operator_can_say_what_labels_mean(engine: Engine) -> None:
    labels = await _labels(engine, "org/odd", TEXTS[0])
    own = LabelClassifier(engine, "org/odd", {"LABEL_1": ("hate", "illicit")})
    await own.check()
    (scores,) = await own.score(TEXTS[:1], CALLER)
    found = {"hate": labels["LABEL_1"], "illicit": labels["LABEL_1"]}
    assert dict(scores) == pytest.approx(found, abs=1e-4)
    other = LabelClassifier(engine, "org/toxic", {"toxic": (), "insult": ("hate",), "threat": ()})
    assert (await other.score(TEXTS[:1], CALLER))[0].keys() == {"hate"}


@pytest.mark.parametrize(
    ("model", "overrides", "says"),
    [
        ("org/odd", {}, r"'org/odd' has the labels LABEL_0, LABEL_1, none of which is known"),
        ("org/toxic", {"spam": ("hate",)}, r"has the labels toxic, .*, and no spam"),
        ("org/toxic", dict.fromkeys(("toxic", "threat", "insult"), ()), "none of which is known"),
    ],
)
async def test_labels_without_a_meaning_are_refused(
    engine: Engine, model: str, overrides: dict[str, tuple[str, ...]], says: str
) -> None:
    with pytest.raises(ModelRefused, match=says):
        await LabelClassifier(engine, model, overrides).check()


async def test_other_models_are_refused(engine: Engine) -> None:
    with pytest.raises(WrongKind):
        await LabelClassifier(engine, "org/embedding").check()
    with pytest.raises(UnknownModel):
        await LabelClassifier(engine, "org/nobody").check()


async def test_a_check_loads_no_model(folder: Path) -> None:
    engine = Engine(EngineConfig(folder))
    try:
        await LabelClassifier(engine, "org/toxic").check()
        assert engine.state("org/toxic").state == "cold"
    finally:
        await engine.close()


@pytest.mark.parametrize(
    ("label", "model", "categories"),
    [
        ("Severe-Toxic", "", ("harassment",)),
        ("identity_hate", "", ("hate",)),
        ("nothate", "", ()),
        ("JAILBREAK", "", ("jailbreak",)),
        ("LEGIT", "", ()),
        ("self-harm/intent", "", ("self-harm/intent",)),
        ("sexual_minors", "", ("sexual/minors",)),
        ("LABEL_1", "meta-llama/Llama-Prompt-Guard-2-86M", ("prompt_injection", "jailbreak")),
        ("LABEL_0", "meta-llama/Llama-Prompt-Guard-2-86M", ()),
        ("LABEL_1", "", None),
        ("spam", "", None),
    ],
)
async def test_what_labels_mean(label: str, model: str, categories: object) -> None:
    assert meaning_of(label, model) == categories


async def test_our_own_names_are_labels_too() -> None:
    assert all(meaning_of(name) == (name,) for name in CATEGORIES)
