"""Differences that know how far they can be trusted: what check_gradients and the tests compare derivatives with.

Rounding is divided by the size of a difference, and a step in contact has much of it: where redundant contacts slide, 1e-16 over their
compliance, 1e-12 m/s and more. So differences have to be large; but only up to the next kink. Central differences are taken at growing
sizes and extrapolated, odd and even part of f alike:

  D(h) = (f(h) - f(-h)) / 2h     R_0 = D,   R_j(h) = (16^j R_(j-1)(h) - R_(j-1)(4 h)) / (16^j - 1)
  E(h) = (f(h) + f(-h)) / h      S_0 = E,   S_j(h) = (16^j S_(j-1)(h) - 4 S_(j-1)(4 h)) / (16^j - 4)

R_j goes to the derivative, S_j to the jump of the derivative at 0: zero, unless f has a kink there. The answer is the R_j(h) of the least

  max(5 |R_j(h) - R_(j-1)(h)|, |R_j(h) - R_(j-1)(4 h)|, |S_j(h)|) + 6 noise / h

and this sum its error; 5, so that it holds for a jump of the second derivative at 0, too. The second term sees kinks between two sizes.
All of this comes from f alone: a gradient that is compared with the answer has no part in which of them is taken.
"""

from __future__ import annotations

import numpy as np

GROWTH = 4.0
ORDERS = 3  # extrapolations at most
EPSILON = 1.1e-16


def sizes(least, largest):
    """least, 4 least, 16 least ... up to largest."""
    count = int(np.floor(np.log(largest / least * (1 + 1e-9)) / np.log(GROWTH))) + 1
    return least * GROWTH ** np.arange(count)


def slope(f, noise, steps, enough=0.0, untouched=None):
    """(derivative, error, jump) at 0 of f, f(0) = 0; arrays like f's, or numbers.

    f(h): None where it is not smooth, which ends the growth. noise: standard deviation of f's rounding, a number or per entry.
    untouched: the same where f is 0 to the last bit, at most noise. steps: growing by fours, two at least. enough: ends the growth, too, when the error's norm is as small as this share of the derivative's.
    error: per entry; inf if no two sizes are smooth. jump: the part of the error that looks like a kink at 0.
    """
    best, least = None, np.inf
    touched = untouched is None
    odd, even = [], []  # R_0, R_1, ... and S_0, S_1, ... of which the size before this one is the largest size
    for size in steps:
        ends = f(size), f(-size)
        if ends[0] is None or ends[1] is None:
            break
        touched |= (ends[0] != 0) | (ends[1] != 0)
        higher = [(ends[0] - ends[1]) / (2 * size)]
        jumps = [(ends[0] + ends[1]) / size]
        for j in range(1, min(len(odd), ORDERS) + 1):
            power = GROWTH ** (2 * j)
            higher.append((power * odd[j - 1] - higher[j - 1]) / (power - 1))
            jumps.append((power * even[j - 1] - GROWTH * jumps[j - 1]) / (power - GROWTH))

            # Arguments are rounded as well: f moves by its slope times that.
            scatter = noise if untouched is None else np.where(touched, noise, untouched)
            rounding = 6 * GROWTH**j / size * (scatter + EPSILON * np.abs(odd[j - 1]))
            fine, coarse = np.abs(higher[j] - odd[j - 1]), np.abs(higher[j] - higher[j - 1])
            error = np.maximum(np.maximum(5 * fine, coarse), np.abs(jumps[j])) + rounding
            if np.linalg.norm(error) < least:
                least = np.linalg.norm(error)
                best = higher[j], error, np.abs(jumps[j])
        odd, even = higher, jumps
        if best is not None and least <= enough * np.linalg.norm(best[0]):
            break
    if best is None:
        return 0.0, np.inf, 0.0
    return best


def noise_of(f, directions):
    """The standard deviation of f's rounding, per entry: the scatter of its even part at tiny directions. None: f is not smooth there."""
    pairs = [(f(d), f(-d)) for d in directions]
    even = [a + b for a, b in pairs if a is not None and b is not None]
    if 2 * len(even) <= len(pairs):
        return None
    return np.sqrt(np.mean(np.square(even), axis=0) / 2)
