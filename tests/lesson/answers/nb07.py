"""Wrong answers to the exercises of notebook 07, as learners might write them."""

import torch
import torch.nn.functional as F

from tests.lesson.answers import wrong

# --------------------------------------------------- 07.1 feed-forward network


@wrong("07.1", named="no ReLU")
def no_relu(x, W_1, b_1, W_2, b_2):
    return (x @ W_1.T + b_1) @ W_2.T + b_2


@wrong("07.1", named="ReLU at the end only")
def relu_at_the_end(x, W_1, b_1, W_2, b_2):
    hidden = F.linear(x, W_1, b_1)
    return torch.relu(F.linear(hidden, W_2, b_2))


@wrong("07.1", named="the first matrix does not fit")
def weights_not_transposed(x, W_1, b_1, W_2, b_2):
    hidden = torch.relu(x @ W_1 + b_1)
    return hidden @ W_2 + b_2


@wrong("07.1", named="GELU instead of ReLU")
def gelu_for_relu(x, W_1, b_1, W_2, b_2):
    return F.linear(F.gelu(F.linear(x, W_1, b_1)), W_2, b_2)


@wrong("07.1", named="reshaped instead of transposed")
def weights_reshaped(x, W_1, b_1, W_2, b_2):
    C = x.shape[-1]
    hidden = torch.relu(x @ W_1.reshape(C, -1) + b_1)
    return hidden @ W_2.reshape(-1, C) + b_2


@wrong("07.1", named="x added")
def with_a_residual(x, W_1, b_1, W_2, b_2):
    hidden = torch.relu(x @ W_1.T + b_1)
    return x + hidden @ W_2.T + b_2


@wrong("07.1", named="bias after the ReLU")
def first_bias_too_late(x, W_1, b_1, W_2, b_2):
    hidden = torch.relu(x @ W_1.T) + b_1
    return hidden @ W_2.T + b_2


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


@wrong("07.1", named="b_1 missing")
def without_the_first_bias(x, W_1, b_1, W_2, b_2):
    hidden = torch.relu(x @ W_1.T)
    return hidden @ W_2.T + b_2


@wrong("07.1", named="not projected back")
def stops_at_the_hidden_layer(x, W_1, b_1, W_2, b_2):
    hidden = torch.relu(x @ W_1.T + b_1)
    return hidden


@wrong("07.1", "keeps the negative numbers and sets the positive ones to 0")
def relu_upside_down(x, W_1, b_1, W_2, b_2):
    hidden = (x @ W_1.T + b_1).clamp(max=0)
    return hidden @ W_2.T + b_2


@wrong("07.1", named="ReLU at the end too")
def relu_twice(x, W_1, b_1, W_2, b_2):
    x = torch.relu(F.linear(x, W_1, b_1))
    x = torch.relu(F.linear(x, W_2, b_2))
    return x


@wrong("07.1", "writes torch.max(hidden, 0), which takes the maximum over axis 0, for a ReLU")
def maximum_over_axis_0(x, W_1, b_1, W_2, b_2):
    hidden = x @ W_1.T + b_1
    hidden = torch.max(hidden, 0).values
    return hidden @ W_2.T + b_2


@wrong("07.1", named="W_1 and W_2 exchanged")
def feed_forward_with_exchanged_matrices(x, W_1, b_1, W_2, b_2):
    hidden = torch.relu(x @ W_2 + b_1)
    return hidden @ W_1 + b_2


@wrong("07.1", named="GELU by tanh instead of ReLU")
def ffn_gelu_formula(x, W_1, b_1, W_2, b_2):
    h = torch.einsum("...c,hc->...h", x, W_1) + b_1
    h = h / 2 * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (h + 0.044715 * h**3)))
    return torch.einsum("...h,ch->...c", h, W_2) + b_2


@wrong("07.1", named="tanh instead of ReLU")
def ffn_tanh(x, W_1, b_1, W_2, b_2):
    grown = torch.exp(2 * F.linear(x, W_1, b_1))
    return F.linear((grown - 1) / (grown + 1), W_2, b_2)


@wrong("07.1", named="sigmoid instead of ReLU")
def ffn_sigmoid(x, W_1, b_1, W_2, b_2):
    return F.linear(1 / (1 + torch.exp(-F.linear(x, W_1, b_1))), W_2, b_2)


@wrong("07.1", named="no biases")
def ffn_matrices_only(x, W_1, b_1, W_2, b_2):
    return F.linear(F.linear(x, W_1).clamp(min=0), W_2)


@wrong("07.1", named="b_2 missing")
def ffn_last_bias_forgotten(x, W_1, b_1, W_2, b_2):
    return F.linear(F.linear(x, W_1, b_1).clamp(min=0), W_2)


@wrong("07.1", named="ReLU on the bias only")
def brackets_around_the_bias(x, W_1, b_1, W_2, b_2):
    hidden = x @ W_1.mT + b_1.clamp(min=0)
    return hidden @ W_2.mT + b_2


# ------------------------------------------------------------- 07.2 layer norm


@wrong("07.2", named="variance divided by C - 1")
def variance_of_a_sample(x, eps=1e-5):
    mean = x.mean(dim=-1, keepdim=True)
    var = x.var(dim=-1, keepdim=True)
    return (x - mean) / torch.sqrt(var + eps)


@wrong("07.2", named="ε outside the square root")
def eps_outside_the_root(x, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    std = x.std(-1, unbiased=False, keepdim=True)
    return (x - mean) / (std + eps)


@wrong("07.2", named="over time")
def over_the_tokens(x, eps=1e-5):
    mean = x.mean(dim=1, keepdim=True)
    var = x.var(dim=1, unbiased=False, keepdim=True)
    return (x - mean) / (var + eps).sqrt()


@wrong("07.2", named="no ε under the root")
def no_eps(x, eps=1e-5):
    mean = x.mean(dim=-1, keepdim=True)
    std = x.std(dim=-1, keepdim=True, correction=0)
    return (x - mean) / std


@wrong("07.2", named="over the whole sequence")
def one_mean_for_all_tokens(x, eps=1e-5):
    return F.layer_norm(x, x.shape[1:], eps=eps)


@wrong("07.2", named="axis not kept")
def no_keepdim(x, eps=1e-5):
    mean = x.mean(dim=-1)
    var = x.var(dim=-1, unbiased=False)
    return (x - mean) / (var + eps).sqrt()


@wrong("07.2", "makes each token's length 1, so its variance is 1/C and not 1")
def length_one(x, eps=1e-5):
    return F.normalize(x - x.mean(dim=-1, keepdim=True), dim=-1, eps=eps)


@wrong("07.2", "takes the mean square of x before the mean was subtracted for the variance")
def variance_not_centred(x, eps=1e-5):
    mean = x.mean(dim=-1, keepdim=True)
    mean_square = x.square().mean(dim=-1, keepdim=True)
    return (x - mean) / torch.sqrt(mean_square + eps)


@wrong("07.2", named="brackets missing")
def brackets_missing(x, eps=1e-5):
    mean = x.mean(dim=-1, keepdim=True)
    std = torch.sqrt(x.var(dim=-1, unbiased=False, keepdim=True) + eps)
    return x - mean / std


@wrong("07.2", "scales each token by its smallest and largest channel, not by mean and variance")
def between_zero_and_one(x, eps=1e-5):
    low = x.min(dim=-1, keepdim=True).values
    high = x.max(dim=-1, keepdim=True).values
    return (x - low) / (high - low + eps)


@wrong("07.2", named="over everything")
def over_everything(x, eps=1e-5):
    return (x - x.mean()) / torch.sqrt(x.var(unbiased=False) + eps)


@wrong("07.2", named="divided by the variance")
def divided_by_the_variance(x, eps=1e-5):
    centred = x - x.mean(dim=-1, keepdim=True)
    var = centred.square().mean(dim=-1, keepdim=True)
    return centred / (var + eps)


@wrong("07.2", named="root mean square")
def without_subtracting_the_mean(x, eps=1e-5):
    return x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + eps)


@wrong("07.2", named="ε as the smallest variance")
def eps_as_a_lower_limit(x, eps=1e-5):
    mean = x.mean(dim=-1, keepdim=True)
    var = x.var(dim=-1, unbiased=False, keepdim=True).clamp(min=eps)
    return (x - mean) / var.sqrt()


@wrong("07.2", "divides by the mean of the absolute deviations, not by the standard deviation")
def mean_absolute_deviation(x, eps=1e-5):
    centred = x - x.mean(dim=-1, keepdim=True)
    return centred / (centred.abs().mean(dim=-1, keepdim=True) + eps)


@wrong("07.2", named="standard deviation plus ε")
def std_plus_eps(x, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    std = x.std(-1, keepdim=True)
    return (x - mean) / (std + eps)


@wrong("07.2", "does not pass eps on, so it is always 0.00001")
def library_norm_with_its_own_eps(x, eps=1e-5):
    return F.layer_norm(x, (x.shape[-1],))


@wrong("07.2", "copied a norm for (B, C), so it takes axis 1, and its variance divides by n - 1")
def layer_norm_copied_for_two_axes(x, eps=1e-5):
    xmean = x.mean(1, keepdim=True)
    xvar = x.var(1, keepdim=True)
    return (x - xmean) / torch.sqrt(xvar + eps)


@wrong("07.2", named="standard deviation without ε")
def norm_by_the_sample_deviation(x, eps=1e-5):
    centred = x - x.mean(dim=-1, keepdim=True)
    squares = (centred**2).sum(dim=-1, keepdim=True)
    return centred / (squares / (x.shape[-1] - 1)) ** 0.5


@wrong("07.2", named="sum instead of mean")
def norm_sum_taken_away(x, eps=1e-5):
    centred = x - x.mean(dim=-1, keepdim=True)
    variance = torch.einsum("...c,...c->...", centred, centred)[..., None] / x.shape[-1]
    return (x - x.sum(-1, keepdim=True)) * (variance + eps) ** -0.5


@wrong("07.2", named="sum of squares instead of the variance")
def norm_by_the_length(x, eps=1e-5):
    centred = x - x.mean(dim=-1, keepdim=True)
    return centred * torch.rsqrt(torch.einsum("...c,...c->...", centred, centred)[..., None] + eps)


@wrong("07.2", named="over the batch")
def norm_over_the_first_axis(x, eps=1e-5):
    centred = x - sum(x) / len(x)
    return centred / (sum(centred**2) / len(x) + eps) ** 0.5


@wrong("07.2", named="only the mean")
def norm_only_centred(x, eps=1e-5):
    return x - torch.einsum("...c->...", x)[..., None] / x.shape[-1]


@wrong("07.2", named="mean not subtracted")
def norm_not_centred(x, eps=1e-5):
    centred = x - x.mean(dim=-1, keepdim=True)
    return x * torch.rsqrt((centred**2).mean(dim=-1, keepdim=True) + eps)


@wrong("07.2", named="ε squared")
def eps_times_eps(x, eps=1e-5):
    centred = x - x.mean(dim=-1, keepdim=True)
    return centred / (centred.square().mean(dim=-1, keepdim=True) + eps * eps).sqrt()


# -------------------------------------------------------------- 07.3 the block


@wrong("07.3", named="post-norm")
def post_norm(x, attention, feed_forward, norm_1, norm_2):
    x = norm_1(x + attention(x))
    return norm_2(x + feed_forward(x))


@wrong("07.3", named="no residual connection around the attention")
def attention_replaces_x(x, attention, feed_forward, norm_1, norm_2):
    x = attention(norm_1(x))
    return x + feed_forward(norm_2(x))


@wrong("07.3", named="parallel branches")
def both_read_the_same_x(x, attention, feed_forward, norm_1, norm_2):
    return x + attention(norm_1(x)) + feed_forward(norm_2(x))


@wrong("07.3", named="norm on the residual stream")
def stream_is_normed(x, attention, feed_forward, norm_1, norm_2):
    x = norm_1(x)
    x = x + attention(x)
    x = norm_2(x)
    return x + feed_forward(x)


@wrong("07.3", named="feed-forward before attention")
def feed_forward_first(x, attention, feed_forward, norm_1, norm_2):
    x = x + feed_forward(norm_2(x))
    x = x + attention(norm_1(x))
    return x


@wrong("07.3", named="norm after the branch")
def norms_after_the_branches(x, attention, feed_forward, norm_1, norm_2):
    x = x + norm_1(attention(x))
    return x + norm_2(feed_forward(x))


@wrong("07.3", named="no norms")
def without_norms(x, attention, feed_forward, norm_1, norm_2):
    x = x + attention(x)
    return x + feed_forward(x)


@wrong("07.3", named="a norm at the end")
def one_more_norm_at_the_end(x, attention, feed_forward, norm_1, norm_2):
    x = x + attention(norm_1(x))
    x = x + feed_forward(norm_2(x))
    return norm_2(x)


@wrong("07.3", "takes [0] of the attention's output, so all sequences get that of sequence 0")
def output_taken_for_a_tuple(x, attention, feed_forward, norm_1, norm_2):
    x = x + attention(norm_1(x))[0]
    return x + feed_forward(norm_2(x))


@wrong("07.3", named="one residual connection around both")
def one_residual_for_both(x, attention, feed_forward, norm_1, norm_2):
    return x + feed_forward(norm_2(attention(norm_1(x))))


@wrong("07.3", named="no residual connection around the feed-forward")
def feed_forward_replaces_x(x, attention, feed_forward, norm_1, norm_2):
    x = x + attention(norm_1(x))
    x = feed_forward(norm_2(x))
    return x


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


@wrong("07.3", named="no norm for the feed-forward")
def second_norm_forgotten(x, attention, feed_forward, norm_1, norm_2):
    x = x + attention(norm_1(x))
    return x + feed_forward(x)


@wrong("07.3", named="the first sum is not kept")
def attention_lost_on_the_stream(x, attention, feed_forward, norm_1, norm_2):
    after = x + attention(norm_1(x))
    return x + feed_forward(norm_2(after))


@wrong("07.3", "puts a ReLU on the stream after each addition")
def relu_on_the_stream(x, attention, feed_forward, norm_1, norm_2):
    x = torch.relu(x + attention(norm_1(x)))
    return torch.relu(x + feed_forward(norm_2(x)))


@wrong("07.3", "adds x a second time to the stream that already contains it")
def x_added_twice(x, attention, feed_forward, norm_1, norm_2):
    after = x + attention(norm_1(x))
    return x + after + feed_forward(norm_2(after))


@wrong("07.3", named="no feed-forward")
def half_a_block(x, attention, feed_forward, norm_1, norm_2):
    normed = norm_1(x)
    x = x + attention(normed)
    normed = norm_2(x)
    return x


@wrong("07.3", named="one norm for both")
def first_norm_twice(x, attention, feed_forward, norm_1, norm_2):
    h = x + attention(norm_1(x))
    return h + feed_forward(norm_1(h))


@wrong("07.3", named="norms swapped")
def block_norms_exchanged(x, attention, feed_forward, norm_1, norm_2):
    x = x + attention(norm_2(x))
    return x + feed_forward(norm_1(x))


@wrong("07.3", named="no residual connections")
def block_of_nested_calls(x, attention, feed_forward, norm_1, norm_2):
    for part in (norm_1, attention, norm_2, feed_forward):
        x = part(x)
    return x


@wrong("07.3", named="no norm for the attention")
def block_attention_reads_x(x, attention, feed_forward, norm_1, norm_2):
    h = torch.add(x, attention(x))
    return torch.add(h, feed_forward(norm_2(h)))


@wrong("07.3", named="no attention")
def block_first_sum_lost(x, attention, feed_forward, norm_1, norm_2):
    torch.add(x, attention(norm_1(x)))
    return torch.add(x, feed_forward(norm_2(x)))


@wrong("07.3", named="norm_1 on the residual stream")
def block_sum_with_norm_1(x, attention, feed_forward, norm_1, norm_2):
    normed = norm_1(x)
    h = sum([normed, attention(normed)])
    return sum([h, feed_forward(norm_2(h))])


@wrong("07.3", named="norm_2 on the residual stream")
def block_sum_with_norm_2(x, attention, feed_forward, norm_1, norm_2):
    normed = norm_2(x + attention(norm_1(x)))
    return sum([normed, feed_forward(normed)])


@wrong("07.3", named="x added before the branch")
def block_sums_inside(x, attention, feed_forward, norm_1, norm_2):
    for norm, branch in ((norm_1, attention), (norm_2, feed_forward)):
        x = branch(torch.add(x, norm(x)))
    return x


@wrong("07.3", named="x added before the attention")
def block_first_sum_inside(x, attention, feed_forward, norm_1, norm_2):
    h = attention(sum([x, norm_1(x)]))
    return sum([h, feed_forward(norm_2(h))])


@wrong("07.3", named="pre-norm and post-norm mixed")
def block_ends_like_post_norm(x, attention, feed_forward, norm_1, norm_2):
    h = torch.add(x, attention(norm_1(x)))
    return norm_2(torch.add(h, feed_forward(h)))


@wrong("07.3", named="the feed-forward reads the attention alone")
def block_sums_at_the_end(x, attention, feed_forward, norm_1, norm_2):
    attended = attention(norm_1(x))
    return sum([x, attended, feed_forward(norm_2(attended))])


@wrong("07.3", named="x minus the attention")
def attention_taken_away(x, attention, feed_forward, norm_1, norm_2):
    middle = x - attention(norm_1(x))
    return middle + feed_forward(norm_2(middle))


@wrong("07.3", named="ReLU after the feed-forward")
def branch_without_negative_numbers(x, attention, feed_forward, norm_1, norm_2):
    middle = attention(norm_1(x)) + x
    return feed_forward(norm_2(middle)).clamp(min=0) + middle


@wrong("07.3", named="norms on the residual stream, too")
def normed_before_and_behind(x, attention, feed_forward, norm_1, norm_2):
    x = norm_1(attention(norm_1(x)) + x)
    return norm_2(feed_forward(norm_2(x)) + x)


@wrong("07.3", named="norms before and after each branch")
def sandwiched(x, attention, feed_forward, norm_1, norm_2):
    for branch, norm in ((attention, norm_1), (feed_forward, norm_2)):
        x = x + norm(branch(norm(x)))
    return x
