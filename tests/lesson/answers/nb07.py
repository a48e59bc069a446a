"""Wrong answers to the exercise of notebook 07, as learners might write them."""

import torch
import torch.nn.functional as F

from tests.lesson.answers import wrong


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
