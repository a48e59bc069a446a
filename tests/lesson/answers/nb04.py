"""Wrong answers to the exercise of notebook 04, as learners might write them."""

import torch

from tests.lesson.answers import wrong


@wrong("04.4", named="all letters look for vowels")
def the_same_query_in_each_row(strength):
    return torch.tensor([strength, 0.0]).expand(2, 2)


@wrong("04.4", "returns the query of a consonant, and not the matrix")
def one_query(strength):
    return torch.tensor([strength, 0.0])


@wrong("04.4", "takes the scores times √2 in advance, as a head with two channels divides by it")
def the_division_undone(strength):
    return torch.tensor([[0.0, 0.0], [2**0.5 * strength, 0.0]])


@wrong("04.4", "writes a whole number into a matrix of whole numbers, and 0.5 becomes 0")
def in_whole_numbers(strength):
    matrix = torch.zeros(2, 2, dtype=torch.int64)
    matrix[1, 0] = strength
    return matrix.float()


@wrong("04.4", "returns rows of numbers, and no tensor")
def rows_of_numbers(strength):
    return [[0, 0], [strength, 0]]


@wrong("04.5", named="a new tensor")
def returned_and_not_changed(p, learning_rate):
    return (p - learning_rate * p.grad).detach()


@wrong("04.5", "clears the gradient before it is used")
def cleared_first(p, learning_rate):
    p.grad = None
    with torch.no_grad():
        p -= learning_rate * p.grad


@wrong("04.5", "changes p without torch.no_grad()")
def with_a_graph(p, learning_rate):
    p -= learning_rate * p.grad
    p.grad = None
