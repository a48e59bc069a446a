"""Break one line of the helpers at a time, and see who notices.

    python -m tools.mutate                 all of them (about half a minute each)
    python -m tools.mutate mask scale      those whose names contain one of these words

Works on a copy of the project in a temporary folder. For each mutation the notebooks run under
nbval and the tests under pytest, both until the first failure; a table tells which cell and which
test turned red. Ends with 1 if a mutation went unseen by the tests, or by the notebooks although
one of them teaches that line. `tests/notebooks/test_mutations.py` runs the same list against the
notebooks within seconds, without kernels.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv", "work", "__pycache__", ".*_cache", "*.egg-info"
)


@dataclass(frozen=True)
class Mutation:
    """One line of one file, what to put in its place, and who must notice.

    `notebook` is the number of the notebook that teaches the line, and runs first; None for a line
    that no notebook looks at, only tests.
    """

    name: str
    file: str
    old: str
    new: str
    notebook: str | None = "00"

    def applied(self, source: str) -> str:
        """Return the source with the line changed; a line that is not there once is an error."""
        if source.count(self.old) != 1:
            raise ValueError(
                f"{self.name}: {self.old!r} stands {source.count(self.old)} times in {self.file}, "
                "must stand once. Bring tools/mutate.py up to date."
            )
        return source.replace(self.old, self.new)


ATTENTION, CHECKS = "helpers/attention.py", "helpers/attention_checks.py"
PROBES = "helpers/clinic/probes.py"
PICTURE_CHECKS, LESSON, TOY = (
    "helpers/pictures/checks.py",
    "helpers/lesson/cells.py",
    "helpers/toy.py",
)
CALLS, PATCHES = "helpers/lesson/calls.py", "helpers/lesson/patches.py"

MUTATIONS = (
    Mutation(
        "softmax over dim=1",
        ATTENTION,
        "torch.softmax(scores, dim=-1)",
        "torch.softmax(scores, dim=1)",
    ),
    Mutation("mask dropped", ATTENTION, "scores.masked_fill(~mask, -math.inf)", "scores"),
    Mutation("mask filled with 0", ATTENTION, "(~mask, -math.inf)", "(~mask, 0)"),
    Mutation("scale dropped", ATTENTION, " / math.sqrt(q.shape[-1])", ""),
    Mutation("divided by √T", ATTENTION, " / math.sqrt(q.shape[-1])", " / math.sqrt(q.shape[-2])"),
    Mutation("divided by d, not √d", ATTENTION, " / math.sqrt(q.shape[-1])", " / q.shape[-1]"),
    Mutation("weights transposed", ATTENTION, "return weights @ v,", "return weights.mT @ v,"),
    Mutation("causal mask transposed", ATTENTION, ".tril(T_k - T_q)", ".triu(T_k - T_q)"),
    Mutation("diagonal masked", ATTENTION, ".tril(T_k - T_q)", ".tril(T_k - T_q - 1)"),
    Mutation(
        "head: keys for queries",
        ATTENTION,
        "q = self.query(x)  # (B, T_q, head_size)",
        "q = self.key(x)",
        "04",
    ),
    Mutation(
        "head: keys for values",
        ATTENTION,
        "k, v = self.key(context), self.value(context)",
        "k, v = self.key(context), self.key(context)",
        "04",
    ),
    Mutation(
        "head: a bias in query",
        ATTENTION,
        "self.query = nn.Linear(C, head_size, bias=False)",
        "self.query = nn.Linear(C, head_size)",
        "04",
    ),
    Mutation(
        "heads split by view",
        ATTENTION,
        "z.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)",
        "z.view(B, self.n_head, T, C // self.n_head)",
        "06",
    ),
    Mutation(
        "heads merged by view",
        ATTENTION,
        "out.transpose(1, 2).flatten(2)",
        "out.reshape(x.shape)",
        "06",
    ),
    Mutation(
        "heads in another order",
        ATTENTION,
        "out.transpose(1, 2).flatten(2)",
        "out.transpose(1, 2).flip(2).flatten(2)",
        "06",
    ),
    Mutation(
        "channels of heads mixed",
        ATTENTION,
        "out.transpose(1, 2).flatten(2)",
        "out.permute(0, 2, 3, 1).flatten(2)",
        "06",
    ),
    Mutation(
        "projection left out",
        ATTENTION,
        "out = self.proj(out.transpose(1, 2).flatten(2))",
        "out = out.transpose(1, 2).flatten(2)",
        "06",
    ),
    Mutation(
        "queries of heads are keys",
        ATTENTION,
        "q = self._split(self.query(x))",
        "q = self._split(self.key(x))",
        "06",
    ),
    Mutation("uneven heads accepted", CHECKS, "    if C % n_head:", "    if False:", "06"),
    Mutation("fused sees the future", ATTENTION, "is_causal=causal", "is_causal=False", None),
    Mutation(
        "context not read",
        ATTENTION,
        "k, v = self._split(self.key(context)), self._split(self.value(context))",
        "k, v = self._split(self.key(x)), self._split(self.value(context))",
        None,
    ),
    Mutation(
        "mask of a sequence misread",
        ATTENTION,
        "mask[:, None] if mask.dim() == 3",
        "mask[None] if mask.dim() == 3",
        None,
    ),
    Mutation(
        "dropout in evaluation too",
        ATTENTION,
        "self.dropout if self.training else 0.0",
        "self.dropout",
        "07",
    ),
    Mutation(
        "ReLU left out",
        ATTENTION,
        "self.proj(torch.relu(self.wide(x)))",
        "self.proj(self.wide(x))",
        "07",
    ),
    Mutation(
        "no residual, attention",
        ATTENTION,
        "        x = x + self.attention(self.norm_1(x))",
        "        x = self.attention(self.norm_1(x))",
        "07",
    ),
    Mutation(
        "no residual, feed-forward",
        ATTENTION,
        "return x + self.feed_forward(self.norm_2(x))",
        "return self.feed_forward(self.norm_2(x))",
        "07",
    ),
    Mutation(
        "norm left out", ATTENTION, "self.attention(self.norm_1(x))", "self.attention(x)", "07"
    ),
    Mutation(
        "norm over time",
        ATTENTION,
        "self.attention(self.norm_1(x))",
        "self.attention(F.layer_norm(x.mT, x.shape[1:2]).mT)",
        "07",
    ),
    Mutation(
        "one norm for both",
        ATTENTION,
        "x + self.feed_forward(self.norm_2(x))\n",
        "x + self.feed_forward(self.norm_1(x))\n",
        "07",
    ),
    Mutation(
        "heatmap transposed",
        PICTURE_CHECKS,
        "    values = as_array(matrix, what)\n",
        "    values = as_array(matrix, what).T\n",
    ),
    Mutation(
        "mask of a heatmap ignored",
        PICTURE_CHECKS,
        "    may = as_array(mask, what)\n",
        "    may = as_array(mask, what) | True\n",
    ),
    Mutation("rows probe sums columns", PROBES, "sums = weights.sum(-1)", "sums = weights.sum(-2)"),
    Mutation(
        "future probe looks back",
        PROBES,
        "future = ~causal_mask(T_q, T_k)",
        "future = ~causal_mask(T_q, T_k).mT",
    ),
    Mutation(
        "leak probe changes nothing",
        PROBES,
        "changed[..., j, :] = noise.to(x)",
        "changed[..., j, :] = x[..., j, :]",
    ),
    Mutation(
        "finite probe overlooks nan", PROBES, "bad = ~values.isfinite()", "bad = values.isinf()"
    ),
    Mutation("no stand-in for a stub", LESSON, "return exercise.reference", "return candidate"),
    Mutation(
        "answers get the check inputs themselves",
        CALLS,
        "given = [copied(argument) for argument in arguments]\n    try",
        "given = list(arguments)\n    try",
        None,
    ),
    Mutation("answers on all threads", CALLS, "with one_thread(), ", "with ", None),
    Mutation(
        "a change may fit twice", PATCHES, "source.count(old)) != 1", "source.count(old)) < 1", None
    ),
    Mutation("other random numbers", TOY, "manual_seed(123)", "manual_seed(124)"),
)


def in_order(notebooks: Iterable[Path], mutation: Mutation | None) -> list[Path]:
    """The notebooks, beginning with the one that teaches what was changed."""
    first = (mutation and mutation.notebook) or "00"
    return sorted(notebooks, key=lambda path: (path.name < first, path.name))


def main() -> None:
    """Try the mutations that the command line names, all of them by default."""
    wanted = sys.argv[1:]
    chosen = [m for m in MUTATIONS if not wanted or any(word in m.name for word in wanted)]
    unseen = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "project"
        shutil.copytree(ROOT, copy, ignore=NOT_COPIED)
        if red := [name for name in (_red(copy, "notebooks"), _red(copy, "tests")) if name]:
            raise SystemExit(f"Without any mutation {red[0]} is red: mend that first.")
        print(f"{'mutation':28}{'first red cell':40}first red test", flush=True)
        for mutation in chosen:
            path = copy / mutation.file
            source = path.read_text(encoding="utf-8")
            path.write_text(mutation.applied(source), encoding="utf-8")
            cell, test = _red(copy, "notebooks", mutation), _red(copy, "tests", mutation)
            path.write_text(source, encoding="utf-8")
            unseen += not test or not (cell or mutation.notebook is None)
            cell = cell or ("NONE" if mutation.notebook else "(not in a notebook)")
            print(f"{mutation.name:28}{cell:40}{test or 'NONE'}", flush=True)
    print(f"{len(chosen) - unseen} of {len(chosen)} mutations were seen.")
    raise SystemExit(unseen > 0)


def _red(project: Path, what: str, mutation: Mutation | None = None) -> str:
    """Run the notebooks or the tests of a copy, and name the first that fails ("" if none)."""
    if what == "notebooks":
        paths = in_order((project / "notebooks").glob("[0-9][0-9]_*.ipynb"), mutation)
        return _first_failure(
            project, ["--nbval", "--nbval-current-env", "--nbval-cell-timeout=60", *paths]
        )
    # Those that test helpers, not the tools; and not this list of mutations again.
    files = [
        path
        for path in sorted((project / "tests").rglob("test_*.py"))
        if "helpers" in path.read_text(encoding="utf-8") and path.name != "test_mutations.py"
    ]
    own = []  # tests of the file that was changed: they fail first, within a second or two
    if mutation:
        module = Path(mutation.file).relative_to("helpers")
        own = [path for path in files if path.name == f"test_{module.stem.split('_')[0]}.py"]
    rest = [path for path in files if path not in own]
    return (own and _first_failure(project, own)) or _first_failure(project, rest)


def _first_failure(project: Path, arguments: Iterable[str | Path]) -> str:
    """Run pytest until the first failure, and name it ("" if none)."""
    # The copy stands before an installed (editable) package of the same name, in kernels too.
    environment = {
        **os.environ,
        "PYTHONPATH": str(project),
        "PYTHONDONTWRITEBYTECODE": "1",
        "JUPYTER_PREFER_ENV_PATH": "1",
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", *map(str, arguments)],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
    )
    if done.returncode == 0:
        return ""
    found = re.search(
        r"^(?:FAILED|ERROR) (?:notebooks/|tests/)?(.+?)(?: - .*)?$", done.stdout, re.M
    )
    if not found:
        raise SystemExit(f"pytest could not run: {done.stdout}{done.stderr}")
    return found[1]


if __name__ == "__main__":
    main()
