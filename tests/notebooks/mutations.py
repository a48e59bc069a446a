"""Lines of the helpers, each broken in a way that a learner must see: test_mutations.py runs them.

Whether the tests see a broken line is asked at random places of all files by `make mutants`. This
list says more: a notebook turns red when such a line is wrong.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """One line of one file, what to put in its place, and the notebook that turns red first."""

    name: str
    file: str
    old: str
    new: str
    notebook: str = "00"

    def applied(self, source: str) -> str:
        """Return the source with the line changed; a line that is not there once is an error."""
        if source.count(self.old) != 1:
            raise ValueError(
                f"{self.name}: {self.old!r} stands {source.count(self.old)} times in {self.file}, "
                "must stand once. Bring tests/notebooks/mutations.py up to date."
            )
        return source.replace(self.old, self.new)


FORMULA, MASKS, MODULES = (f"helpers/attention/{n}.py" for n in ("formula", "masks", "modules"))
CAUSAL = "attention_base/masks.py"
ROTARY = "helpers/positions.py"
SORTER = "helpers/sorter.py"
GPT, TEXT = "helpers/gpt.py", "helpers/training/text.py"
BY_HAND, RULES = "helpers/circuits/by_hand.py", "helpers/circuits/rules.py"
PROBES, WARD, COST = "attention_clinic/probes.py", "helpers/ward.py", "helpers/cost.py"
PICTURE_CHECKS, LESSON = "helpers/pictures/checks.py", "lesson/cells.py"

MUTATIONS = (
    Mutation(
        "softmax over dim=1",
        FORMULA,
        "torch.softmax(scores, dim=-1)",
        "torch.softmax(scores, dim=1)",
        "04",
    ),
    Mutation("mask dropped", FORMULA, "scores.masked_fill(~mask, -math.inf)", "scores", "04"),
    Mutation("mask filled with 0", FORMULA, "(~mask, -math.inf)", "(~mask, 0)", "04"),
    Mutation("scale dropped", FORMULA, " / math.sqrt(q.shape[-1])", "", "04"),
    Mutation(
        "divided by √T", FORMULA, " / math.sqrt(q.shape[-1])", " / math.sqrt(q.shape[-2])", "04"
    ),
    Mutation("divided by d, not √d", FORMULA, " / math.sqrt(q.shape[-1])", " / q.shape[-1]", "04"),
    Mutation("weights transposed", FORMULA, "return weights @ v,", "return weights.mT @ v,", "04"),
    Mutation("causal mask transposed", CAUSAL, ".tril(T_k - T_q)", ".triu(T_k - T_q)", "03"),
    Mutation("diagonal masked", CAUSAL, ".tril(T_k - T_q)", ".tril(T_k - T_q - 1)", "03"),
    Mutation(
        "head: keys for queries",
        MODULES,
        "q = self.query(x)  # (B, T_q, head_size)",
        "q = self.key(x)",
        "09",
    ),
    Mutation(
        "head: keys for values",
        MODULES,
        "k, v = self.key(context), self.value(context)",
        "k, v = self.key(context), self.key(context)",
        "09",
    ),
    Mutation(
        "head: a bias in query",
        MODULES,
        "self.query = nn.Linear(C, head_size, bias=False)",
        "self.query = nn.Linear(C, head_size)",
        "09",
    ),
    Mutation(
        "heads split by view",
        MODULES,
        "z.view(B, T, -1, self.head_size).transpose(1, 2)",
        "z.view(B, -1, T, self.head_size)",
        "08",
    ),
    Mutation(
        "heads merged by view",
        MODULES,
        "out.transpose(1, 2).flatten(2)",
        "out.reshape(x.shape)",
        "08",
    ),
    Mutation(
        "heads in another order",
        MODULES,
        "out.transpose(1, 2).flatten(2)",
        "out.transpose(1, 2).flip(2).flatten(2)",
        "08",
    ),
    Mutation(
        "channels of heads mixed",
        MODULES,
        "out.transpose(1, 2).flatten(2)",
        "out.permute(0, 2, 3, 1).flatten(2)",
        "08",
    ),
    Mutation(
        "projection left out",
        MODULES,
        "out = self.proj(out.transpose(1, 2).flatten(2))",
        "out = out.transpose(1, 2).flatten(2)",
        "08",
    ),
    Mutation(
        "queries of heads are keys",
        MODULES,
        "q = self._split(self.query(x))",
        "q = self._split(self.key(x))",
        "08",
    ),
    Mutation(
        "ReLU left out",
        MODULES,
        "self.proj(torch.relu(self.wide(x)))",
        "self.proj(self.wide(x))",
        "08",
    ),
    Mutation(
        "no residual, attention",
        MODULES,
        "        x = x + self.attention(self.norm_1(x), **options)",
        "        x = self.attention(self.norm_1(x), **options)",
        "08",
    ),
    Mutation(
        "no residual, feed-forward",
        MODULES,
        "return x + self.feed_forward(self.norm_2(x))",
        "return self.feed_forward(self.norm_2(x))",
        "08",
    ),
    Mutation("norm left out", MODULES, "self.attention(self.norm_1(x),", "self.attention(x,", "08"),
    Mutation(
        "norm over time",
        MODULES,
        "self.attention(self.norm_1(x),",
        "self.attention(F.layer_norm(x.mT, x.shape[1:2]).mT,",
        "08",
    ),
    Mutation(
        "one norm for both",
        MODULES,
        "x + self.feed_forward(self.norm_2(x))\n",
        "x + self.feed_forward(self.norm_1(x))\n",
        "14",
    ),
    Mutation("turned the other way round", ROTARY, "a * cos - b * sin", "a * cos + b * sin", "08"),
    Mutation("arrows of one speed", ROTARY, "torch.arange(0, d, 2,", "torch.zeros(d // 2,", "08"),
    Mutation(
        "mask of a block ignored",
        MODULES,
        "self.norm_1(x), **options)",
        "self.norm_1(x))",
        "08",
    ),
    Mutation("window one too wide", MASKS, ".triu(1 - window)", ".triu(-window)", "09"),
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
    Mutation(
        "rows probe sums columns", PROBES, "sums = weights.sum(-1)", "sums = weights.sum(-2)", "02"
    ),
    Mutation(
        "future probe looks back",
        PROBES,
        "future = ~causal_mask(T_q, T_k)",
        "future = ~causal_mask(T_q, T_k).mT",
        "02",
    ),
    Mutation(
        "leak probe changes nothing",
        PROBES,
        "changed[..., j, :] = noise.to(x)",
        "changed[..., j, :] = x[..., j, :]",
        "01",
    ),
    Mutation(
        "finite probe overlooks nan",
        PROBES,
        "bad = ~values.isfinite()",
        "bad = values.isinf()",
        "01",
    ),
    Mutation("no stand-in for a stub", LESSON, "return exercise.reference", "return candidate"),
    Mutation(
        "padding on the rows", MASKS, "return real[:, None, :]", "return real[:, :, None]", "09"
    ),
    Mutation("first query with first key", CAUSAL, ".tril(T_k - T_q)", ".tril()", "09"),
    Mutation(
        "decoder sees what it has to write",
        SORTER,
        "self.attention(self.norm_1(y))",
        "self.attention(self.norm_1(y), mask=None)",
        "09",
    ),
    Mutation(
        "cross-attention reads the decoder", SORTER, "context=memory, mask=mask", "context=y", "09"
    ),
    Mutation("rotary positions forgotten", GPT, "n_head, rotary=rotary)", "n_head)", "14"),
    Mutation("learns from the validation text", TEXT, "if i % 10 != 9", "", "10"),
    Mutation(
        "blocks of key and query exchanged",
        BY_HAND,
        "top, left = start[pair[0]], start[pair[1]]",
        "left, top = start[pair[0]], start[pair[1]]",
        "11",
    ),
    Mutation(
        "scores without sharpness",
        BY_HAND,
        'as_real(sharpness, "sharpness") * (x @ M.to(x.dtype) @ x.mT)',
        "x @ M.to(x.dtype) @ x.mT",
        "11",
    ),
    Mutation("the first layer reads itself", BY_HAND, "weights @ x], dim", "x], dim", "11"),
    Mutation("every matrix follows a rule", RULES, "if wrong.any():", "if False:", "11"),
    Mutation(
        "pieces in one", WARD, "_pieces(module, x, [3, 1, 4])", "_pieces(module, x, [8])", "13"
    ),
    Mutation(
        "sums not rescaled",
        COST,
        "torch.exp(largest - new)",
        "torch.exp(new - new)",
        "14",
    ),
    Mutation("values not counted", COST, "return 2 * n_layer", "return n_layer", "14"),
)
