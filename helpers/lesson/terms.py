"""A term of the field: what it means, its synonyms, and the notebook that introduces it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """A term that a notebook defines, in bold, where it first uses it.

    Attributes
    ----------
    name
        As it stands in the glossary, such as "attention head".
    meaning
        One plain sentence.
    also
        Synonyms that a reader meets elsewhere, and short forms such as "head".
    everyday
        Whether the word has an everyday meaning too ("key", "weight"), in which a text may use it
        before the term is defined.
    notebook
        The two digits of the notebook; set by the file that the term is listed in.
    """

    name: str
    meaning: str
    also: tuple[str, ...] = ()
    everyday: bool = False
    notebook: str = ""

    def __str__(self) -> str:
        also = f" (also: {', '.join(self.also)})" if self.also else ""
        return f"{self.name}{also}: {self.meaning} (Introduced in notebook {self.notebook}.)"
