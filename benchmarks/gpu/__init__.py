"""The engine on a GPU: see `__main__`."""
