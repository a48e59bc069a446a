"""Old copies of notebooks import this; it goes when nobody can have such copies any more."""

from helpers import OLD_COPY

raise ImportError(OLD_COPY)
