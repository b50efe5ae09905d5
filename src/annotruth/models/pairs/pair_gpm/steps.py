"""The equations of PairGPM over a session."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from annotruth.comparisons.table import Comparisons
from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Floats
from annotruth.kernels.pairs.levels import StateLevels
from annotruth.models.em import Monitor
from annotruth.models.pairs.pair_gpm.states import SHARPNESS_SD, States
from annotruth.models.squarem import Squarem, numbers, shares

OFFSET_PRECISION = 0.25
GROUP_PRIOR = 1.0
NU_PRIOR = 2.0
PRUNE = 1e-7


class PairGPMParameters(NamedTuple):
    theta: Floats
    offsets: Floats
    group: Floats
    nu: Floats
    behavior: Floats


class PairGPMSteps:
    objective_name = "the log posterior"

    def __init__(self, data, session, states, graph, n_groups, precision):
        self.data, self.session, self.states = data, session, states
        self.graph = graph
        self.precision = precision
        n = data.n_items
        n_off = 1 + covariates_of(data).shape[1]
        K, T = len(states.eps), len(states.nu)
        self.shape = (n_groups, n, n_off, T, K)
        self._n_steps = 0
        self._pass = Pass(
            "pairs.gpm.step",
            state=("active", "favoured", "pair", "covariates"),
            inputs=(Input("theta"), Input("offsets"), Input("levels"), Input("prune")),
            sums=(
                Sum("gradient", (n_groups, n)),
                Sum("curvature", (n_groups, graph.n_pairs)),
                Sum("cross", (n_groups, n, n_off)),
                Sum("offset_gradient", (n_off,)),
                Sum("offset_curvature", (n_off, n_off)),
                Sum("group_count", (n_groups,)),
                Sum("nu_count", (T,)),
                Sum("behavior_count", (K,)),
                Sum("totals", (3,)),
            ),
        )
        session.put("pair", graph.pair, per="comparisons")
        session.put("covariates", covariates_of(data), per="comparisons")
        favoured = np.full(data.n_annotators, -1, dtype=np.int32)
        session.put("favoured", favoured, per="annotators")
        session.run_pass(Pass("pairs.gpm.find_favoured", ("favoured",), (Input("n_items"),)), n_items=n)
        session.put('sampled', np.ones(data.n_annotators), per='annotators')
        self.shift_prior=0.0
        self._info = Pass('pairs.gpm.information', ('active','favoured','sampled','covariates'), (Input('theta'), Input('offsets'), Input('levels')), (Sum('information', (n_groups*n+n_off,)*2),))
        self.reset_active()

    def reset_active(self):
        G, n, _, T, K = self.shape
        full = [(1 << G) - 1, (1 << len(self.states.beta)) - 1, (1 << T) - 1, (1 << K) - 1]
        active = np.tile(np.array(full, dtype=np.int64), (self.data.n_annotators, 1))
        self.session.put("active", active, per="annotators")
        self._n_steps = 0

    def levels(self, p):
        s = self.states
        log_beta = -0.5*((np.log(s.beta)+self.shift_prior)/SHARPNESS_SD)**2
        log_beta -= np.log(np.exp(log_beta).sum())
        with np.errstate(divide="ignore"):
            return StateLevels(
                s.beta, s.nu, s.eps, s.flip, s.chance, np.log(p.group), log_beta, np.log(p.nu),
                np.log(p.behavior) + s.log_choice,
            )

    def start_at(self, theta, offsets):
        G, n, n_off, T, K = self.shape
        s = self.states
        return PairGPMParameters(
            np.array(theta), np.array(offsets), np.full(G, 1.0 / G), np.full(T, 1.0 / T), s.prior / s.prior.sum()
        )

    def objective(self, p, ll):
        prior = -0.5 * self.precision * (p.theta**2).sum() + 0.5 * p.theta.size * np.log(self.precision)
        prior -= 0.5 * OFFSET_PRECISION * (p.offsets**2).sum()
        prior += (self.states.prior * np.log(p.behavior)).sum()
        prior += NU_PRIOR / len(p.nu) * np.log(p.nu).sum() + GROUP_PRIOR * np.log(p.group).sum()
        return ll + prior

    def sums(self, p, prune=0.0):
        return self.session.run_pass(self._pass, theta=p.theta, offsets=p.offsets, levels=self.levels(p), prune=prune)

    def step(self, p):
        self._n_steps += 1
        prune = PRUNE if self._n_steps in (3, 8, 20) else 0.0
        sums = self.sums(p, prune)
        ll, elog, elog2 = sums["totals"]
        S = self.data.n_annotators
        theta, offsets = self.update_scores(p, sums)
        theta = theta * np.exp(self.shift(elog, S, theta))
        behavior = sums["behavior_count"] + self.states.prior
        nu = sums["nu_count"] + NU_PRIOR / len(p.nu)
        group = sums["group_count"] + GROUP_PRIOR
        new = PairGPMParameters(theta, offsets, group / group.sum(), nu / nu.sum(), behavior / behavior.sum())
        return new, Monitor(float(ll), float(self.objective(p, ll)))

    def shift(self, elog, S, theta):
        mu, m = 0.0, elog / S + self.shift_prior
        c = self.precision * (theta**2).sum()
        prec = S / SHARPNESS_SD**2
        for _ in range(20):
            g = prec * (m - mu) - c * np.exp(2 * mu)
            mu += g / (prec + 2 * c * np.exp(2 * mu))
        return mu

    def update_scores(self, p, sums):
        G, n, n_off, T, K = self.shape
        size = G * n + n_off
        A = np.zeros((size, size))
        for g in range(G):
            L = self.graph.laplacian(sums["curvature"][g])
            A[g*n:(g+1)*n, g*n:(g+1)*n] = L
            A[g*n:(g+1)*n, G*n:] = sums["cross"][g]
            A[G*n:, g*n:(g+1)*n] = sums["cross"][g].T
        A[G*n:, G*n:] = sums["offset_curvature"]
        d = np.arange(size)
        A[d, d] += np.r_[np.full(G * n, self.precision), np.full(n_off, OFFSET_PRECISION)]
        grad = np.r_[(sums["gradient"] - self.precision * p.theta).ravel(), sums["offset_gradient"] - OFFSET_PRECISION * p.offsets]
        if not self.data.sides_known:
            A[G*n] = 0; A[:, G*n] = 0; A[G*n, G*n] = 1; grad[G*n] = 0
        self.A = A
        x = np.linalg.solve(A, grad)
        return p.theta + x[:G*n].reshape(G, n), p.offsets + x[G*n:]

    def information(self, p):
        I = self.session.run_pass(self._info, theta=p.theta, offsets=p.offsets, levels=self.levels(p))["information"]
        G, n, n_off, T, K = self.shape
        d = np.arange(len(I))
        I[d, d] += np.r_[np.full(G * n, self.precision), np.full(n_off, OFFSET_PRECISION)]
        if not self.data.sides_known:
            I[G*n] = 0; I[:, G*n] = 0; I[G*n, G*n] = 1
        return I

    def finalize(self, p):
        return float(self.sums(p)["totals"][0])

    def acceleration(self):
        return Squarem(PairGPMParameters, numbers, numbers, shares(0), shares(0), shares(0))


def covariates_of(data):
    if not data.covariates:
        return np.zeros((data.n_comparisons, 0))
    return np.stack([np.asarray(v, dtype=float) for v in data.covariates.values()], axis=1)
