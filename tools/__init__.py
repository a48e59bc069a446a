"""What make calls: install, lab, fresh, refresh, lint_notebooks; notebooks is what they share."""

# It lets no print fail, in any terminal.
import attention_base  # noqa: F401
