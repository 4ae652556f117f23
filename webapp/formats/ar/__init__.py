"""Beside Django's own formats of Arabic."""
