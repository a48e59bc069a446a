"""A plugin of pytest, loaded before nbval: notebooks are read without a grammar of web addresses.

jsonschema, which nbformat imports, would build 39 grammars to check addresses. No notebook has such
a field, and it takes each process two seconds.
"""

import sys

sys.modules["rfc3987_syntax"] = None  # jsonschema does without what cannot be imported
