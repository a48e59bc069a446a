"""Decks for the plans of teaching/: `plan` reads them, `deck` makes the slides of their rows.

``python -m tools.lecture`` writes them all into lecture/, with all that they load.
"""
