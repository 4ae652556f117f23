"""What the adapter of the heads is tuned by."""

from moderation.heads import examples
from moderation.heads.adapters import WRITERS_UNSEEN, texts_to_go_on_with
from moderation.heads.heads import OUTPUTS
from moderation.windows import read


def test_of_writers_unseen_nothing_is_learnt() -> None:
    """By their texts it's measured what is found, so the adapter must not know them."""
    parts, labels, judged, importance = texts_to_go_on_with()
    assert labels.shape == judged.shape == importance.shape == (len(parts), len(OUTPUTS))
    learnt = {part.text for part in parts}
    by_writer: dict[str, set[str]] = {}
    for one in examples.natural_texts():
        if examples.is_apart(one.group):
            own = by_writer.setdefault(examples.writer_of(one.group), set())
            own |= {one.text, *(piece for piece in read(one.text).pieces if " " in piece)}
    assert set(WRITERS_UNSEEN) < set(by_writer)
    seen = set().union(*(by_writer[name] for name in set(by_writer) - set(WRITERS_UNSEEN)))
    for name in WRITERS_UNSEEN:
        assert learnt.isdisjoint(by_writer[name] - seen)
    for name in set(by_writer) - set(WRITERS_UNSEEN):
        assert not learnt.isdisjoint(by_writer[name])


def test_attacks_count_twice_and_more_than_what_frames_and_blanks_make() -> None:
    parts, labels, _, importance = texts_to_go_on_with()
    direct = OUTPUTS.index("prompt_injection")
    whole = {one.text for one in examples.natural_texts() if one.kind == "direct"}
    own = [at for at, part in enumerate(parts) if part.text in whole and labels[at, direct]]
    assert len(own) == 2 * len({parts[at].text for at in own})
    assert importance[own, direct].min() > 1
