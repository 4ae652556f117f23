"""The commands of `python -m inference`: they know the engine, and neither Django nor torch."""
