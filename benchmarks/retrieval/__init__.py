"""How well passages are found, and how fast."""
