"""What all rooms stand on: how a number is written, what counts as the same, and known mistakes.

- `numbers`: every way a number is written, and lines of text. `terminal`: print in any terminal.
- `same`: the same numbers, computed under the same conditions.
- `known`: pages of known mistakes, each a change of a right program.
- `masks`: `causal_mask`, and which sizes are refused.
"""

from attention_base.terminal import print_anywhere

print_anywhere()
