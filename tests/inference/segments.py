"""Segments of an answer, compared for what they say."""

from inference import Reasoning, Segment, Text


def joined(segments: list[Segment]) -> list[Segment]:
    """Neighbouring texts as one: how they were cut is not a promise."""
    joined: list[Segment] = []
    for segment in segments:
        last = joined[-1] if joined else None
        if isinstance(segment, Text) and isinstance(last, Text):
            joined[-1] = Text(last.text + segment.text)
        elif isinstance(segment, Reasoning) and isinstance(last, Reasoning):
            joined[-1] = Reasoning(last.text + segment.text)
        else:
            joined.append(segment)
    return joined
