"""Models of our own that see: how images become rows of a prompt. Only `eyes`, `loading` and `selftest`
import torch."""
