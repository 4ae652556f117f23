"""Carries the embedding of a trained model over to another vocabulary, so that training goes on."""

import torch
from tokenizers import Tokenizer
from torch import Tensor


def carried(embedding: Tensor, theirs: Tokenizer, ours: Tokenizer) -> Tensor:
    """Rows for `ours` from `embedding` (tokens of `theirs`, hidden): same dtype and row order by id.

    A token that they have takes its row, or the mean of it and that of the token with a space before
    it, since ours stands for both; others take the mean of the pieces that they cut it into. Means
    get the usual length of a row back.
    """
    known = theirs.get_vocab()
    usual = embedding.float().norm(dim=1).median()
    rows = torch.empty(ours.get_vocab_size(), embedding.shape[1])
    for token, number in ours.get_vocab().items():
        same = [known[t] for t in (token, f"Ġ{token}") if t in known]
        found = same or theirs.encode(ours.decode([number]), add_special_tokens=False).ids
        row = embedding[found].float().mean(dim=0)
        rows[number] = row if len(found) == 1 else row * (usual / row.norm())
    return rows.to(embedding.dtype)
