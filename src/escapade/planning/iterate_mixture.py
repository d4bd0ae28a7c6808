"""The best mixture of the policies that a run came by.

Iterates of a saddle-point method circle around the answer; their averages approach it.
Every policy that was judged has its value and costs, and a mixture (one drawn at the
start and kept) earns and costs the mixture of these, so the best weights are those of a
linear program with a row a budget:

    maximise  Σ_j μ_j V_j − M t
    subject to  Σ_j μ_j C_jk − t <= d_k,  Σ_j μ_j = 1,  μ >= 0,  t >= 0.

Its basic solutions use few policies, as many as there are budgets and one more or so;
only these are kept.  The price ``M`` of exceeding a budget is there for the beginning,
when no mixture keeps them all.

Under an uncertainty set the stationary policy with the visits of a mixture may cost
more than the mixture: it is one more candidate then, to be judged like any other.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from escapade.errors import SolverError
from escapade.model.cmdp import CMDP
from escapade.model.evaluation import occupancy
from escapade.model.policy import Policy
from escapade.planning.highs import LinearProgram, maximise
from escapade.planning.oracle import evaluation_precision
from escapade.planning.saddle_game import SaddleGame, Verdict
from escapade.typing import FloatArray

__all__ = ["IterateMixture", "policy_of_visits"]

_PRICE = 1e3  # of exceeding a budget, where a whole lifetime's reward is worth 1
_NEGLIGIBLE = 1e-9


class IterateMixture:
    """Policies with the weights at which they are best together."""

    def __init__(self, game: SaddleGame) -> None:
        self.game = game
        self.verdicts: list[Verdict] = []
        self.weights: FloatArray = np.empty(0)

    def offer(self, verdict: Verdict) -> None:
        """Take a policy in, and drop those that the best mixture does without."""
        candidates = [*self.verdicts, verdict]
        weights = self._best_weights(candidates)
        kept = np.flatnonzero(weights > _NEGLIGIBLE)
        self.verdicts = [candidates[j] for j in kept]
        self.weights = weights[kept] / weights[kept].sum()

    def policy(self) -> Policy | None:
        """Return the stationary policy with the visits of the mixture."""
        if not self.verdicts:
            return None
        problem = self.game.problem
        visits = np.zeros(problem.n_pairs)
        for verdict, weight in zip(self.verdicts, self.weights, strict=True):
            visits += weight * occupancy(
                problem, verdict.policy, precision=evaluation_precision(problem)
            )
        return policy_of_visits(problem, visits, self.verdicts[0].policy)

    def _best_weights(self, verdicts: list[Verdict]) -> FloatArray:
        game, n = self.game, len(verdicts)
        k = game.budgets.size
        values = np.array([verdict.lower for verdict in verdicts]) * game.reward_scale
        costs = np.array([verdict.costs * game.cost_scales for verdict in verdicts])
        matrix = np.block([[costs.T, -np.ones((k, 1))], [np.ones((1, n)), 0.0]])
        answer = maximise(
            LinearProgram(
                objective=np.append(values, -_PRICE),
                matrix=sp.csc_array(matrix),
                row_lower=np.append(np.full(k, -np.inf), 1.0),
                row_upper=np.append(game.budgets, 1.0),
                lower=np.zeros(n + 1),
                upper=np.full(n + 1, np.inf),
            ),
            presolve=False,
        )
        if answer.outcome != "optimal" or answer.x is None:
            raise SolverError(f"HiGHS could not mix {n} policies: {answer.outcome}")
        return answer.x[:n]


def policy_of_visits(cmdp: CMDP, visits: FloatArray, elsewhere: Policy) -> Policy:
    """Return the policy of an occupancy; ``elsewhere`` in states it never visits."""
    totals = np.add.reduceat(visits, cmdp.state_ptr[:-1])[cmdp.pair_state]
    seen = totals > 0.0
    shares = np.where(
        seen, visits / np.where(seen, totals, 1.0), elsewhere.pair_weights(cmdp)
    )
    return Policy.from_pair_weights(cmdp, np.maximum(shares, 0.0))
