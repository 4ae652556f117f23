"""How long texts take to be judged, and how well they are."""
