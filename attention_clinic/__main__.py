"""``python -m attention_clinic`` is the command ``attention-clinic``."""

import sys

if not sys.flags.safe_path:  # first stands the current folder, whose files may be named as Python's
    sys.path.append(sys.path.pop(0))

from attention_clinic.command import main

sys.exit(main())
