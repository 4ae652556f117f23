"""The recipe of the committed model: its shape and the stages of its training, seeds included."""

from inference.builtin.network import Shape
from inference.builtin.train import Stage

SHAPE = Shape()
STAGES = [
    Stage("copying", 4_000_000, 320, 4096, 0.02, 0.02, 101, {"echo": 14, "memory": 12}, 0.4),
    Stage("mixture", 20_000_000, 640, 8192, 0.02, 0.02, 102, copying=0.05),
    Stage("long", 10_000_000, 1408, 12288, 0.02, 0.0, 103),
]
