"""The small package that the notebooks import.

Where to find what:

- the subject: `toy` (the examples), `attention` (mask, head, many heads, block), `depth` (stacks);
- pictures: `heatmap`, `drawings`, `diagrams`, `curves`, all made of what is in `picture`;
- live ones: `explore` (notebooks 00 to 03), `explore_attention` (04 to 07);
- numbers as text: `show`;
- health: `probes` (one question each, and `diagnose`, which asks all of them), made of `illnesses`
  (every known mistake, computed), `inside` (finds q, k, v in a module) and `diagnose` (the report);
- the lessons: `lesson` (predict, check, hint, solution) with one file a notebook in `exercises`.
"""
