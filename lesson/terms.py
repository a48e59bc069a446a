"""A term of the field: what it means, its synonyms, and the notebook that introduces it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """A term that a notebook defines, in bold, where it first uses it."""

    name: str  # as it stands in the glossary, such as "attention head"
    meaning: str  # one plain sentence
    # Synonyms that a reader meets elsewhere, and short forms such as "head".
    also: tuple[str, ...] = ()
    # Whether the word has an everyday meaning too ("key", "weight"), in which a text may use it
    # before the term is defined.
    everyday: bool = False
    notebook: str = ""  # the two digits of the notebook; set by the file that the term is listed in

    def __str__(self) -> str:
        also = f" (also: {', '.join(self.also)})" if self.also else ""
        return f"{self.name}{also}: {self.meaning} (Introduced in notebook {self.notebook}.)"
