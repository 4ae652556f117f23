"""A token source in the engine's place."""
