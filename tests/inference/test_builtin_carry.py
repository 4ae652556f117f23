"""Carrying an embedding over to another vocabulary keeps what both know."""

import torch
from torch.nn.functional import cosine_similarity, normalize

from inference.builtin.carry import carried
from inference.builtin.tokenizer import build, learn, load

TEXTS = ["the otter met the heron, the otter and the heron ate the trout"] * 20


def test_rows_of_known_tokens_are_kept_and_others_are_made_of_their_pieces() -> None:
    ours, theirs = load(), build(learn(TEXTS))
    embedding = normalize(torch.randn(theirs.get_vocab_size(), 16)).bfloat16()
    rows = carried(embedding, theirs, ours)
    assert rows.shape == (ours.get_vocab_size(), 16)
    assert rows.dtype == embedding.dtype
    for token in ("<|im_end|>", "<tool_call>", "\u0120"):
        assert torch.equal(rows[ours.token_to_id(token)], embedding[theirs.token_to_id(token)])
    number = ours.encode("Denver").ids[0]
    pieces = theirs.encode(ours.id_to_token(number)).ids
    assert len(pieces) > 1
    mean = embedding[pieces].float().mean(dim=0)
    assert cosine_similarity(rows[number].float(), mean, dim=0) > 0.99
    assert torch.allclose(rows.float().norm(dim=1), torch.ones(len(rows)), atol=0.02)
