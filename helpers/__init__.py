"""What the notebooks draw and compute with. Arrows run one way: up in this list.

- `show`: prints numbers. `attention`: masks, the formula, a head, many heads, the block, and what
  they refuse, in words. `positions`: rotary and sinusoidal ones. `toy`: the examples.
- `stack`: signal, gradient and token similarity by depth. `tasks`: what heads are trained to do.
  `letters`, `sorter`: the tasks of 08 and 09. `gpt`: a tiny GPT. `cost`: attention in blocks.
- `circuits`: heads written by hand, and what changes a running model. `ward`: wrong attentions and
  the questions that find them. `measured`: what a benchmark has stored. `opened`: the attention
  weights of any model, read and replaced.
- `pictures`: what is drawn with matplotlib, each with a table and a text version. `diagnosis`:
  `diagnose` with its picture. `training`: a text, its split, and the loop.
"""

import attention_base  # noqa: F401  (it says so where there is no PyTorch)

OLD_COPY = (
    "This copy of a notebook is older than the project, which has new import lines. Type `make "
    "fresh NB=03`, with the number of this notebook, into a terminal in the project's folder: it "
    "keeps this copy, with all that you wrote, in work/old/ and makes a new one."
)
