"""Judges an answer in code, and names the mistake in it; knows no exercise.

- `grading`: what an exercise and a mistake are. `judge`: judges one answer. `calls`: runs it.
  `contracts`: more inputs for one that looks right. `observations`: experiments that find out what
  a wrong one does. `axes`: what axes are called. `messages`: what is said about a wrong answer.
"""
