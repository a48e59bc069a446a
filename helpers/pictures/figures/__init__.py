"""Pictures that one notebook shows once, by the number of the notebook."""
