"""Wrong answers to the exercises of notebook 07, as learners might write them."""

import torch
import torch.nn.functional as F

from tests.lesson.answers import wrong

# --------------------------------------------------- 07.1 feed-forward network


@wrong("07.1", "puts tokens in columns with x.T, which works only for a 2-D x")
def tokens_as_columns(x, W_1, b_1, W_2, b_2):
    hidden = torch.relu(W_1 @ x.T + b_1[:, None])
    return (W_2 @ hidden + b_2[:, None]).T


@wrong("07.1", "applies softmax to the widened channels instead of ReLU")
def softmax_for_relu(x, W_1, b_1, W_2, b_2):
    hidden = torch.softmax(x @ W_1.T + b_1, dim=-1)
    return hidden @ W_2.T + b_2


@wrong("07.1", "applies the ReLU to x, before the first layer, and not to what the layer returns")
def relu_on_the_input(x, W_1, b_1, W_2, b_2):
    hidden = torch.relu(x) @ W_1.T + b_1
    return hidden @ W_2.T + b_2


@wrong("07.1", "is fixed to C = 32 channels")
def fixed_to_32_channels(x, W_1, b_1, W_2, b_2):
    hidden = torch.relu(x.reshape(-1, 32) @ W_1.T + b_1)
    return (hidden @ W_2.T + b_2).reshape(*x.shape[:-1], 32)


@wrong("07.1", "keeps the negative numbers and sets the positive ones to 0")
def relu_upside_down(x, W_1, b_1, W_2, b_2):
    hidden = (x @ W_1.T + b_1).clamp(max=0)
    return hidden @ W_2.T + b_2


@wrong("07.1", "writes torch.max(hidden, 0), which takes the maximum over axis 0, for a ReLU")
def maximum_over_axis_0(x, W_1, b_1, W_2, b_2):
    hidden = x @ W_1.T + b_1
    hidden = torch.max(hidden, 0).values
    return hidden @ W_2.T + b_2


@wrong("07.1", named="GELU by tanh instead of ReLU")
def ffn_gelu_formula(x, W_1, b_1, W_2, b_2):
    h = torch.einsum("...c,hc->...h", x, W_1) + b_1
    h = h / 2 * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (h + 0.044715 * h**3)))
    return torch.einsum("...h,ch->...c", h, W_2) + b_2


# ------------------------------------------------------------- 07.2 layer norm


@wrong("07.2", named="over the whole sequence")
def one_mean_for_all_tokens(x, eps=1e-5):
    return F.layer_norm(x, x.shape[1:], eps=eps)


@wrong("07.2", "makes each token's length 1, so its variance is 1/C and not 1")
def length_one(x, eps=1e-5):
    return F.normalize(x - x.mean(dim=-1, keepdim=True), dim=-1, eps=eps)


@wrong("07.2", "takes the mean square of x before the mean was subtracted for the variance")
def variance_not_centred(x, eps=1e-5):
    mean = x.mean(dim=-1, keepdim=True)
    mean_square = x.square().mean(dim=-1, keepdim=True)
    return (x - mean) / torch.sqrt(mean_square + eps)


@wrong("07.2", "scales each token by its smallest and largest channel, not by mean and variance")
def between_zero_and_one(x, eps=1e-5):
    low = x.min(dim=-1, keepdim=True).values
    high = x.max(dim=-1, keepdim=True).values
    return (x - low) / (high - low + eps)


@wrong("07.2", "divides by the mean of the absolute deviations, not by the standard deviation")
def mean_absolute_deviation(x, eps=1e-5):
    centred = x - x.mean(dim=-1, keepdim=True)
    return centred / (centred.abs().mean(dim=-1, keepdim=True) + eps)


@wrong("07.2", "does not pass eps on, so it is always 0.00001")
def library_norm_with_its_own_eps(x, eps=1e-5):
    return F.layer_norm(x, (x.shape[-1],))


@wrong("07.2", "copied a norm for (B, C), so it takes axis 1, and its variance divides by n - 1")
def layer_norm_copied_for_two_axes(x, eps=1e-5):
    xmean = x.mean(1, keepdim=True)
    xvar = x.var(1, keepdim=True)
    return (x - xmean) / torch.sqrt(xvar + eps)


# -------------------------------------------------------------- 07.3 the block


@wrong("07.3", named="norm after the branch")
def norms_after_the_branches(x, attention, feed_forward, norm_1, norm_2):
    x = x + norm_1(attention(x))
    return x + norm_2(feed_forward(x))


@wrong("07.3", "takes [0] of the attention's output, so all sequences get that of sequence 0")
def output_taken_for_a_tuple(x, attention, feed_forward, norm_1, norm_2):
    x = x + attention(norm_1(x))[0]
    return x + feed_forward(norm_2(x))


@wrong("07.3", "takes the mean of stream and branch instead of their sum")
def mean_instead_of_sum(x, attention, feed_forward, norm_1, norm_2):
    x = (x + attention(norm_1(x))) / 2
    return (x + feed_forward(norm_2(x))) / 2


@wrong("07.3", "the branches read a detached x, so no gradient passes back through them")
def branches_read_detached_x(x, attention, feed_forward, norm_1, norm_2):
    x = x + attention(norm_1(x.detach()))
    return x + feed_forward(norm_2(x.detach()))


@wrong("07.3", "calls attention with three arguments, as for nn.MultiheadAttention")
def attention_called_with_three(x, attention, feed_forward, norm_1, norm_2):
    normed = norm_1(x)
    x = x + attention(normed, normed, normed)
    return x + feed_forward(norm_2(x))


@wrong("07.3", "puts a ReLU on the stream after each addition")
def relu_on_the_stream(x, attention, feed_forward, norm_1, norm_2):
    x = torch.relu(x + attention(norm_1(x)))
    return torch.relu(x + feed_forward(norm_2(x)))


@wrong("07.3", "adds x a second time to the stream that already contains it")
def x_added_twice(x, attention, feed_forward, norm_1, norm_2):
    after = x + attention(norm_1(x))
    return x + after + feed_forward(norm_2(after))
