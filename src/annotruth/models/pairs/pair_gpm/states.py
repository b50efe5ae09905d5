"""The latent states of PairGPM: sharpness, tie rates, and behaviors at levels of reliability."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotruth.kernels.arrays import Floats
from annotruth.kernels.pairs.levels import SHARPNESS_SD

SERIOUS = "serious"
RANDOM = "random"
INVERTED = "inverted"
FAVOURS = "favours one item"
SIDES = ("always left", "always right")
ALWAYS_TIE = "always tie"

MAX_GROUPS = 20
"""The most taste groups: more would divide any crowd into too few annotators each."""

FIXED = 0.97
"""How often a vote that is not serious is what its behavior says; the rest is divided evenly."""

_EPS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9)
_MOST_SERIOUS = 0.98  # votes slip: no reliability is 1
_INVERTED_EPS = (0.0, 0.1, 0.2)  # at higher levels, inverted votes look like random ones
_BETA = np.exp(np.linspace(np.log(0.35), np.log(4.0), 20))
_NU = np.exp(np.linspace(np.log(0.02), np.log(12.0), 16))
_PRIOR_ANNOTATORS = 4.0  # the weight of the prior of behaviors, in annotators
_PRIOR_SERIOUS = 0.7  # its share at the levels 0.8 and above of serious annotators


class States(NamedTuple):
    """The levels of the latent states; behaviors at a reliability are one axis.

    Examples
    --------
    >>> states = make_states(n_items=10, sided=True, tie_share=0.0)
    >>> len(states.nu), states.behavior[0], float(states.eps[0])
    (1, 'serious', 0.98)
    """

    beta: Floats
    log_beta: Floats  # the log of the prior probabilities
    nu: Floats
    behavior: tuple[str, ...]
    eps: Floats
    flip: Floats
    chance: Floats  # outcome and kind x behavior, as `annotruth.kernels.pairs.levels` has it
    log_choice: Floats  # the log of the probability of a behavior's latent item
    prior: Floats  # pseudo-counts of the behaviors
    start: Floats  # the probabilities with which estimation starts


def make_states(*, n_items: int, sided: bool, tie_share: float) -> States:
    """Return the states for comparisons whose sides are known or not, with a share of ties.

    Random votes have three outcomes alike, or hardly a tie, or as many ties as there are in all, but
    always fewer than those of who always says tie.
    """
    rows: list[tuple[str, float, float, Floats]] = []
    ties = tie_share > 0.0
    uniform = _by_kind(np.array([1.0, 1.0, float(ties)]))
    two_sided = _by_kind(np.array([1.0, 1.0, 0.06 * ties]))
    side_share = max(0.5 * (1.0 - tie_share), 1.0 - FIXED)
    usual_ties = _by_kind(np.array([side_share, side_share, tie_share]))
    rows.append((SERIOUS, _MOST_SERIOUS, 0.0, uniform))
    rows += [(SERIOUS if e > 0.5 else RANDOM, e, 0.0, uniform) for e in _EPS[::-1]]
    if ties:
        for chance in (two_sided, usual_ties):
            rows += [(RANDOM, e, 0.0, chance) for e in _EPS[:-2]]
        rows += [(ALWAYS_TIE, e, 0.0, _fixed(2, ties)) for e in _EPS]
    if sided:
        for side, name in enumerate(SIDES):
            rows += [(name, e, 0.0, _fixed(side, ties)) for e in _EPS]
    rows += [(INVERTED, e, FIXED * (1.0 - e), uniform) for e in _INVERTED_EPS]
    rows += [(FAVOURS, e, 0.0, _favours(ties)) for e in _EPS[:-1]]
    eps = np.array([row[1] for row in rows])
    flip = np.array([row[2] for row in rows])
    chance = np.stack([(1.0 - e - f) * q for _, e, f, q in rows], axis=1)
    names = tuple(row[0] for row in rows)
    normal = np.exp(-0.5 * (np.log(_BETA) / SHARPNESS_SD) ** 2)
    high = np.array([name == SERIOUS and e >= 0.8 for name, e, _, _ in rows])
    share = np.where(high, _PRIOR_SERIOUS / high.sum(), (1.0 - _PRIOR_SERIOUS) / (~high).sum())
    return States(
        beta=_BETA,
        log_beta=np.log(normal / normal.sum()),
        nu=_NU if ties else np.zeros(1),
        behavior=names,
        eps=eps,
        flip=flip,
        chance=chance,
        log_choice=np.where(np.array(names) == FAVOURS, -np.log(n_items), 0.0),
        prior=_PRIOR_ANNOTATORS * share,
        start=_start(names, eps),
    )


def _start(names: tuple[str, ...], eps: Floats) -> Floats:
    """Return half of the probability for serious annotators, half evenly for the other behaviors.

    A start with few spammers would take those who vote at random for serious, but not sharp.
    """
    distinct = sorted(set(names) - {SERIOUS})
    start = np.zeros(len(names))
    for name in (SERIOUS, *distinct):
        levels = np.array([each == name for each in names]) & ((eps <= 0.2) | (eps >= 0.8))
        start[levels] = (1.0 if name == SERIOUS else 1.0 / len(distinct)) / levels.sum()
    start += 0.01
    shares: Floats = start / start.sum()
    return shares


def _by_kind(q: Floats) -> Floats:
    """Return the probabilities of outcomes that do not depend on a favoured item: 9 rows."""
    return np.repeat(q / q.sum(), 3)


def _fixed(outcome: int, ties: bool) -> Floats:
    q = np.full(3, (1.0 - FIXED) / (1 + ties))
    q[2] *= ties
    q[outcome] = FIXED
    return _by_kind(q)


def _favours(ties: bool) -> Floats:
    """Return uniform votes where the favoured item is not shown, else votes for it."""
    uniform = np.array([1.0, 1.0, float(ties)]) / (2 + ties)
    rest = (1.0 - FIXED) / (1 + ties)
    won = np.array([FIXED, FIXED, 0.0])
    lost = np.array([rest, rest, rest * ties])
    return np.stack([uniform, won, lost], axis=1).ravel()
