"""``python -m helpers.clinic`` is the command ``attention-clinic``."""

import sys

from helpers.clinic.command import main

sys.exit(main())
