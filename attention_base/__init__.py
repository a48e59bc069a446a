"""What all rooms stand on: how a number is written, what counts as the same, and known mistakes.

- `numbers`: every way a number is written, and lines of text. `terminal`: print in any terminal.
- `same`: the same numbers, computed under the same conditions.
- `known`: pages of known mistakes, each a change of a right program.
- `home`: where a learner's folder lies. `files`: writes a file whole.
- `masks`: `causal_mask`, and which sizes are refused.
"""

import sys
from importlib.util import find_spec

from attention_base.terminal import print_anywhere

print_anywhere()
if find_spec("torch") is None:
    raise ModuleNotFoundError(
        f"The Python of this kernel, {sys.executable}, has no PyTorch. Start with `make lab` in "
        "the project's folder, which has it; choose another kernel, or install torch for this one.",
        name="torch",
    )
