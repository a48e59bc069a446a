"""The exercise of notebook 06: multi-head attention."""

from lesson.builds import build

EXERCISES = (build("MultiHeadAttention"),)
