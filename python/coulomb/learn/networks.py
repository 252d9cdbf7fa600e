"""Parts of policies and critics: observations of unit size, networks, actions within bounds, and a clip of the gradient with respect to states."""

from __future__ import annotations

import copy
import math

import numpy as np
import torch
from torch import nn

from coulomb.learn import ranks


class Normalizer:
    """Mean and variance of all observations so far; `copy()` is the frozen one that a horizon is seen through."""

    def __init__(self, size):
        self.count, self.mean, self.var = (
            1e-4,
            torch.zeros(size, dtype=torch.float64),
            torch.ones(size, dtype=torch.float64),
        )

    def update(self, x):
        x = x.reshape(-1, x.shape[-1])
        sums = ranks.summed(torch.stack([torch.full_like(x[0], len(x)), x.sum(0), (x * x).sum(0)]))
        n, mean = sums[0, 0].item(), sums[1] / sums[0]
        var = (sums[2] / sums[0] - mean**2).clamp_min(0)
        total = self.count + n
        delta = mean - self.mean
        self.var = (self.var * self.count + var * n + delta**2 * self.count * n / total) / total
        self.mean = self.mean + delta * n / total
        self.count = total

    def copy(self):
        return copy.copy(self)

    def __call__(self, x):
        # Where a state has run away, a network still gets numbers that it can take.
        return ((x - self.mean) / torch.sqrt(self.var + 1e-5)).clamp(-1e6, 1e6).float()


def network(sizes, gain=None):
    """Linear, ELU, LayerNorm, ..., Linear."""
    layers = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ELU(), nn.LayerNorm(outputs)]
        if gain is not None:
            nn.init.orthogonal_(layers[-3].weight, gain)
            nn.init.zeros_(layers[-3].bias)
    return nn.Sequential(*layers[:-2])


class Actor(nn.Module):
    """Actions within the task's bounds: tanh of a Gaussian whose mean is a network of the observation."""

    def __init__(self, task, size, units, log_std):
        super().__init__()
        bounds = np.stack([task.action_low, task.action_high])
        if not np.isfinite(bounds).all():
            k = int(np.flatnonzero(~np.isfinite(bounds).all(0))[0])
            raise ValueError(
                f"env: action {k} of its task is from {bounds[0, k]} to {bounds[1, k]}, expected finite bounds"
            )
        low, high = torch.from_numpy(task.action_low).float(), torch.from_numpy(task.action_high).float()
        self.register_buffer("middle", (low + high) / 2)
        self.register_buffer("reach", (high - low) / 2)
        self.mean = network([size, *units, len(low)])
        self.log_std = nn.Parameter(torch.full((len(low),), float(log_std)))

    def forward(self, observation, noise=None):
        raw = self.mean(observation)
        if noise is not None:
            raw = raw + self.log_std.clamp(-5, 2).exp() * noise
        return self.middle + self.reach * torch.tanh(raw)

    def differentiate(self, observations, noise, actions):
        """Adds the gradient of a loss by the weights to theirs, from that by the actions, which a backward pass has left in them.

        observations, noise: (h, n, ...); actions: h tensors (n, k), what forward() gave for them without a gradient by the weights. All
        steps at once cost less than each by itself. Returns the cosine between the shares of two halves of the n environments: near 1 where
        the gradient is a signal, around 0 where it is noise.
        """
        slopes = torch.stack([torch.zeros_like(a) if a.grad is None else a.grad for a in actions])
        weights = list(self.parameters())
        work = (self(observations, noise) * slopes).sum((0, 2))
        halves = [torch.autograd.grad(part.sum(), weights, retain_graph=True) for part in work.tensor_split(2)]
        for weight, first, second in zip(weights, *halves):
            before = 0 if weight.grad is None else weight.grad
            weight.grad = before + first + second
        first, second = (torch.cat([part.flatten() for part in half]) for half in halves)
        return nn.functional.cosine_similarity(first, second, dim=0).item()

    def surprise(self, action, noise):
        """-log p of actions (n, k) that this noise (n, k) gave, in units where the bounds are -1 and 1: (n,). Its mean is the entropy."""
        unit = (action - self.middle) / self.reach
        squashed = torch.log(1 - unit.square() + 1e-6)
        gauss = 0.5 * noise.square() + self.log_std.clamp(-5, 2) + 0.5 * math.log(2 * math.pi)
        return (gauss + squashed).sum(-1)


class Temperature:
    """Weight of entropy relative to reward: learned, so that the entropy stays near -k/2 for k actions (SAPO [Xing2025])."""

    def __init__(self, actions, rate=5e-3):
        self.goal = -actions / 2
        self.log = torch.zeros(1, requires_grad=True)
        self.optimizer = torch.optim.Adam([self.log], rate)

    def bonus(self, surprise):
        """Bonus beside the reward (n,), in units of |goal|."""
        return self.log.exp().detach() * (surprise + abs(self.goal)) / (2 * abs(self.goal))

    def learn(self, surprise):
        """Less worth where there is more entropy than the goal; `surprise` of a whole horizon."""
        self.optimizer.zero_grad()
        excess = surprise.detach().mean() - self.goal
        (self.log.exp() * excess).sum().backward()
        ranks.average_gradients([self.log])
        self.optimizer.step()


class ClipRows(torch.autograd.Function):
    """The identity; on the way back rows longer than `limit` times the median of those that are not zero are shortened to that.

    limit: 0 for none. norms: a list that the median is appended to.
    """

    @staticmethod
    def forward(ctx, x, limit, norms=None):
        ctx.limit = limit
        ctx.norms = norms
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        norm = gradient.norm(dim=1, keepdim=True)
        felt = norm[norm > 0]
        median = felt.median() if len(felt) else norm.max()
        if ctx.norms is not None:
            ctx.norms.append(median.item())
        if ctx.limit == 0:
            return gradient, None, None

        most = ctx.limit * median
        return torch.where(norm > most, gradient * (most / norm.clamp_min(1e-300)), gradient), None, None
