"""The small package that the notebooks import: pictures, explorers, probes, lesson engine."""
