"""Wrong answers to the exercises of notebook 14, as learners might write them."""

import torch
import torch.nn.functional as F

from tests.lesson.answers import wrong

# ---------------------------------------------------------------- 14.generate


@wrong("14.generate", named="a new cache for each letter")
def without_what_came_before(model, ids, n, temperature=1.0, cached=False):
    new = ids
    for _ in range(n):
        context = ids[:, -model.context_length :]
        again = not cached or ids.size(1) > model.context_length
        logits = model(context) if again else model(new)
        new = torch.multinomial(F.softmax(logits[:, -1] / temperature, dim=1), num_samples=1)
        ids = torch.cat((ids, new), dim=1)
    return ids


@wrong("14.generate", "the prompt is read letter by letter")
def prompt_letter_by_letter(model, ids, n, temperature=1.0, cached=False):
    cache = {}
    for letter in ids[:, :-1].split(1, dim=1) if cached else ():
        model(letter, cache=cache)
    for _ in range(n):
        logits = model(ids[:, -1:], cache=cache) if cached else model(ids[:, -6:])
        new = torch.multinomial((logits[:, -1] / temperature).softmax(-1), 1)
        ids = torch.cat([ids, new], dim=1)
    return ids


# ---------------------------------------------------------------- 14.2 online softmax


@wrong("14.2", named="divided by the number of scores")
def mean_of_products(scores, values):
    return ((scores - scores.max()).exp()[:, None] * values).mean(dim=0)


@wrong("14.2", "only the weights")
def whole_row_of_weights(scores, values):
    return scores.softmax(0)


@wrong("14.2", "the largest score wins")
def hardmax(scores, values):
    return values[scores.argmax()]


# ---------------------------------------------------------------- of a blind trial


@wrong("14.2", "the whole row at once")
def softmax_of_the_row(scores, values):
    return torch.softmax(scores, dim=0) @ values
