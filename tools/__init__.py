"""What make calls: install, lab, fresh, refresh, lint_notebooks; notebooks is what they share."""
