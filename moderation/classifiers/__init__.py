"""Classifiers behind one interface, and all of them asked at once.

`spec` reads the configuration, `making` makes what it names, and a `screener` asks them. The engine
comes as an argument. Nothing is imported here: settings need `spec` alone.
"""
