"""What make calls: install, lab, fresh, refresh, lint_notebooks; notebooks is what they share."""

from helpers.terminal import print_anywhere

print_anywhere()
