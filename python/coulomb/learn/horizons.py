"""How many control steps one gradient goes through: a fixed number, or one that adapts to how fast gradients grow.

After AHAC [Georgiev2024]: long horizons where steps are gentle, short ones where contact is stiff. AHAC takes the norm of each step's Jacobian,
bounds it by C and lets the multipliers of that bound move the horizon. Here the gradient itself is measured, which is what the bound is for:
the growth g of its norm by the state from the last step of the horizon to the first, and H <- H + RATE (log GROWTH - log g) after each epoch.
"""

from __future__ import annotations

import math

import torch

from coulomb.learn import ranks

SHORTEST = 8
GROWTH = 10.0  # of the norm of dJ/ds over a horizon: where it is larger, the horizon shrinks
RATE = 0.2


class Horizon:
    """steps: of the next epoch. longest: 0 for a fixed number, else the bound of an adaptive one."""

    def __init__(self, steps, longest=0):
        if longest and not SHORTEST <= longest:
            raise ValueError(f"longest_horizon: {longest}, expected 0 (fixed) or at least {SHORTEST}")
        self.longest = longest
        self.exact = float(min(max(steps, SHORTEST), longest) if longest else steps)

    @property
    def steps(self):
        return round(self.exact)

    def adapt(self, norms):
        """norms: of the gradient by the state, one per step of the horizon, the last step first."""
        if not self.longest:
            return
        felt = [norm for norm in norms if norm > 0]
        change = math.log(GROWTH) - math.log(felt[-1] / felt[0]) if len(felt) > 1 else 0.0
        change = ranks.averaged(torch.tensor(change, dtype=torch.float64)).item()
        self.exact = min(max(self.exact + RATE * change, SHORTEST), self.longest)
