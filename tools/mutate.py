"""Break one line of the helpers at a time, and see who notices.

    python -m tools.mutate                 all of them (about half a minute each)
    python -m tools.mutate mask scale      those whose names contain one of these words

Works on a copy of the project in a temporary folder. For each mutation the notebooks run under
nbval and the tests under pytest, both until the first failure; a table tells which cell and which
test turned red. Ends with 1 if a mutation went unseen by either. `tests/test_mutations.py` runs
the same list against the notebooks within seconds, without kernels.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv", "work", "__pycache__", ".*_cache", "*.egg-info"
)


@dataclass(frozen=True)
class Mutation:
    """One line of one file, and what to put in its place."""

    name: str
    file: str
    old: str
    new: str

    def applied(self, source: str) -> str:
        """Return the source with the line changed; a line that is not there once is an error."""
        if source.count(self.old) != 1:
            raise ValueError(
                f"{self.name}: {self.old!r} stands {source.count(self.old)} times in {self.file}, "
                "must stand once. Bring tools/mutate.py up to date."
            )
        return source.replace(self.old, self.new)


ATTENTION, PROBES = "helpers/attention.py", "helpers/probes.py"
HEATMAP, LESSON, TOY = "helpers/heatmap.py", "helpers/lesson.py", "helpers/toy.py"

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
    Mutation("weights transposed", ATTENTION, "return weights @ v,", "return weights.mT @ v,"),
    Mutation("causal mask transposed", ATTENTION, ".tril(T_k - T_q)", ".triu(T_k - T_q)"),
    Mutation("diagonal masked", ATTENTION, ".tril(T_k - T_q)", ".tril(T_k - T_q - 1)"),
    Mutation(
        "heatmap transposed",
        HEATMAP,
        "    values = as_array(matrix, what)\n",
        "    values = as_array(matrix, what).T\n",
    ),
    Mutation(
        "mask of a heatmap ignored",
        HEATMAP,
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
    Mutation("other random numbers", TOY, "manual_seed(123)", "manual_seed(124)"),
)


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
            cell, test = _red(copy, "notebooks"), _red(copy, "tests")
            path.write_text(source, encoding="utf-8")
            unseen += not (cell and test)
            print(f"{mutation.name:28}{cell or 'NONE':40}{test or 'NONE'}", flush=True)
    print(f"{len(chosen) - unseen} of {len(chosen)} mutations were seen by both.")
    raise SystemExit(unseen > 0)


def _red(project: Path, what: str) -> str:
    """Run the notebooks or the tests of a copy, and name the first that fails ("" if none)."""
    if what == "notebooks":
        run = ["--nbval", "--nbval-current-env", "--nbval-cell-timeout=60", "notebooks"]
    else:  # those that test helpers, not the tools; and not this list of mutations again
        files = sorted((project / "tests").glob("test_*.py"))
        run = [str(f) for f in files if "from helpers" in f.read_text(encoding="utf-8")]
    # The copy stands before an installed (editable) package of the same name, in kernels too.
    environment = {
        **os.environ,
        "PYTHONPATH": str(project),
        "PYTHONDONTWRITEBYTECODE": "1",
        "JUPYTER_PREFER_ENV_PATH": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *run],
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
        raise SystemExit(f"pytest could not run the {what}:\n{done.stdout}{done.stderr}")
    return found[1]


if __name__ == "__main__":
    main()
