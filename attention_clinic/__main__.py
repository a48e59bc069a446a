"""``python -m attention_clinic`` is the command ``attention-clinic``."""

import sys

from attention_clinic.command import main

sys.exit(main())
