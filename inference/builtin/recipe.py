"""The recipe of the committed model: its shape and the stages of its training, seeds included."""

from inference.builtin.network import Shape
from inference.builtin.train import Stage

SHAPE = Shape()
STAGES = [
    Stage("copying", 6_000_000, 320, 4096, 0.02, 0.02, 101, {"echo": 14, "memory": 12}, 0.4),
    Stage("spans", 1_200_000, 128, 4096, 0.02, 0.02, 104, copying=0.9),
    Stage("mixture", 12_000_000, 512, 4096, 0.01, 0.004, 105, {"echo": 10, "memory": 10}),
    Stage("long", 6_000_000, 1408, 8192, 0.004, 0.0, 103),
]
