import itertools

from helpers.pictures.colours import BLUE, Fill
from helpers.pictures.table import Cell, Table

TEXTS = {"A": "the cat did not sleep [pad]", "B": "die Katze schlief nicht"}
MASKS = {  # may query i attend to key j, whose text is this?
    "full": lambda i, j, key: True,
    "causal": lambda i, j, key: j <= i,
    "window": lambda i, j, key: i - 1 <= j <= i,
    "padding": lambda i, j, key: key != "[pad]",
    "prefix": lambda i, j, key: j <= i or j < 2,
}
YES, NO = Cell("✓", "", Fill(BLUE, "white")), Cell("–", "masked", note="masked")


def model(queries, keys, mask):
    rows, columns = TEXTS[queries].split(), TEXTS[keys].split()
    T_q, T_k = len(rows), len(columns)
    texts = [f"A, read by an encoder: {TEXTS['A']}"]
    texts += [f"B, its translation, written by a decoder: {TEXTS['B']}"]
    kind = f"Cross-attention from {queries} to {keys}: T_q = {T_q}, T_k = {T_k}."
    if queries == keys:
        kind = f"Self-attention of {keys}: T_q = T_k = {T_q}."
    elif mask not in ("full", "padding"):
        why = f"A {mask} mask compares positions, but no token of {queries} is earlier or later "
        why += f"than a token of {keys}. Choose the mask full or padding, or take queries and keys "
        why += "from the same text."
        return [f"{kind} {why}", *texts, kind, why]
    whom = {
        ("full", "A"): "all 6 tokens of A, even to padding",
        ("full", "B"): "all 4 tokens of B",
        ("padding", "A"): "the 5 tokens of A that are not padding",
        ("padding", "B"): "all 4 tokens of B, since B has no padding",
    } | {
        ("causal", keys): "itself and everything before it",
        ("window", keys): "the last 2 tokens only, itself and the one before it",
        ("prefix", keys): "itself, everything before it, and all of the first 2 tokens",
    }
    rule = f"Each token of {queries} attends to {whom[mask, keys]}."
    if (queries, mask) == ("A", "padding"):
        rule += " So does [pad], but its output is never read."
    cells = [
        [YES if MASKS[mask](i, j, key) else NO for j, key in enumerate(columns)]
        for i in range(T_q)
    ]  # fmt: skip
    who, over = f"query (who reads), from {queries}", f"key (who is read), from {keys}"
    caption = f"mask {mask}: T_q × T_k = {T_q} × {T_k}"
    table = Table(columns, list(zip(rows, cells, strict=True)), caption, who, over)
    told = " ".join(
        [TEXTS[keys], *(f"{row} {' '.join(c.text for c in line)}" for row, line in table.rows)]
    )
    now = f"{kind} {rule} Rows: {who}; columns: {over}. {told}"
    return [now, *texts, table, kind, rule]


BOTH = ("A", "B")
CONTROLS = {
    "queries from": ("B", BOTH),
    "keys and values from": ("B", BOTH),
    "mask": ("causal", tuple(MASKS)),
}
CASES = [({}, list(itertools.product(BOTH, BOTH, MASKS)))]
