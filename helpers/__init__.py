"""What the notebooks import. Arrows run one way: a line imports only from the lines above it.

- `numbers`: every way a number is written, and lines of text. `show`: prints them.
- `attention`: the mask, the formula, a head, many heads, the block, and what they refuse, in words.
  `stack`: signal, gradient and token similarity by depth. `toy`: the examples. `tasks`: what heads
  are trained to do.
- `same`: the same numbers, computed under the same conditions. `known`: pages of known mistakes,
  each a change of a right program. `terminal`: print in any terminal.
- `pictures`: what is drawn with matplotlib, each with a table and a text version.
- `explorers`: live pictures that follow a slider. `clinic`: probes, known bugs and `diagnose`.
- `lesson`: predict, check, hint and solution; for each notebook a page and a file of exercises.
"""

from helpers.terminal import print_anywhere

print_anywhere()
