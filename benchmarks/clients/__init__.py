"""Other people's clients, unmodified, against a live server."""
