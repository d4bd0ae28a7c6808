"""The loop of three states: as one lifetime, and with resets every six steps.

**One lifetime.**  Discount .9, budget 5: the expected cost-to-go may never exceed 5.
Reported are the largest realised cost-to-go, and the reward a step in the second half
of life, beside the best at the rate of .5 that the budget allows for ever, which is 1.
That best policy minds its costs in the long run alone.

**Resets.**  Episodes of six steps, undiscounted, from a start drawn evenly; costs are
known (a move costs 1), and the expected cost of an episode, before the start is drawn,
may be 3.  The ceiling is 20/3.  Published at equal information: no violating episodes,
and a return above 6.558 after 600 steps.

Each episode is a short life of its own: an agent that is told the record of all
episodes before, a budget, and that the kernel is the same at each step.  The budget of
3 is divided among the starts beforehand, as the best policy of the likeliest model
spends it, so that it averages to 3; within an episode the ledger keeps what the start
was given.  As long as the model knows too little, every start gets 3.

An episode *violates* if the budgets given to the starts average to more than 3, or if
its moves come to more than its start was given.  The *return after* some steps is that
of one more episode from each start, averaged.
"""

from __future__ import annotations

import argparse

import numpy as np

import escapade as ep

HORIZON = 6
BUDGET = 3.0
STEPS = 600
PUBLISHED = 6.558
CEILING = 20.0 / 3.0
ROOM = 0.3
"""Part of a move, added to a budget: no move can be made of it, but rounding, the
margin for δ and the planner's levels leave the last whole one."""


def lifetime(seed: int, steps: int = STEPS) -> dict[str, float]:
    """Return the largest cost-to-go of one lifetime, and what it earned."""
    world = ep.environments.three_state_loop()
    agent = ep.E4(world.knowledge, ep.E4Settings(seed=seed, known_after=5))
    trace = ep.simulate(agent, world.make_env(), steps)
    return {
        "largest cost-to-go": float(trace.cost_to_go().max()),
        "budget": float(world.cmdp.budget[0]),
        "reward a step": float(trace.rewards[steps // 2 :].mean()),
    }


class Resets:
    """Episodes with a record of all episodes before."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.world = ep.environments.three_state_loop(horizon=HORIZON)
        self.states = self.world.cmdp.n_states
        self.seen: list[tuple[int, int, float, float, int]] = []

    def allowance(self) -> np.ndarray:
        """Return the budget of each start; they average to at most 3."""
        inner = ep.environments.three_state_loop(budget=BUDGET).cmdp
        rewards, after = self.means()
        if rewards is None:
            return np.full(3, BUDGET)
        likeliest = ep.CMDP(
            after,
            rewards,
            inner.cost.reshape(3, 2),
            discount=inner.discount,
            budget=BUDGET,
            start=inner.start,
        )
        plan = ep.environments.episodic(likeliest, HORIZON)
        found = ep.solve(plan.cmdp)
        costs = ep.evaluate(plan.cmdp, found.policy).costs[0, :3]
        return costs * min(1.0, BUDGET / costs.mean())

    def means(self) -> tuple[np.ndarray | None, np.ndarray]:
        """Return mean rewards and frequencies; no rewards while any are missing."""
        visits, earned = np.zeros((3, 2, 3)), np.zeros((3, 2))
        for state, action, reward, _, following in self.seen:
            visits[state, action, following] += 1
            earned[state, action] += reward
        count = visits.sum(axis=2)
        if (count == 0).any():
            return None, visits
        return earned / count, visits / count[:, :, np.newaxis]

    def record(self) -> ep.Log | None:
        """Return every step as it would have been at each step of an episode."""
        if not self.seen:
            return None
        cmdp = self.world.cmdp
        scale = cmdp.discount ** -np.arange(HORIZON)[:, np.newaxis]
        state, action, reward, cost, following = (
            np.array(column) for column in zip(*self.seen, strict=True)
        )
        step = np.arange(HORIZON)[:, np.newaxis]
        last = step == HORIZON - 1
        return ep.Log(
            states=(state + 3 * step).ravel(),
            actions=np.tile(action, HORIZON),
            rewards=np.minimum(reward * scale, cmdp.reward_max).ravel(),
            costs=np.minimum(cost * scale, cmdp.cost_max).ravel(),
            next_states=np.where(
                last, self.states - 1, following + 3 * (step + 1)
            ).ravel(),
        )

    def episode(self, start: int, budget: float) -> list[tuple]:
        """Live through an episode and return its steps, as they were before scaling."""
        told = self.world.knowledge.replace(
            budget=budget + ROOM,
            start=start,
            log=self.record(),
            known_states=[self.states - 1],  # the end is nowhere to explore
        )
        agent = ep.E4(
            told,
            ep.E4Settings(
                known_after=1,
                refine=False,
                margin=0.01,
                reserve=0.0,
                turn_home=0.0,
                recharge=1e-9,
            ),
        )
        env = self.world.make_env()
        env.reset(seed=0, options={"state": start})
        state, steps = start, []
        for step in range(HORIZON):
            decision = agent.ask(state)
            after, reward, _, _, info = env.step(decision.action)
            agent.tell(decision, reward=reward, cost=info["cost"], next_state=after)
            scale = self.world.cmdp.discount**step
            steps.append(
                (
                    state % 3,
                    decision.action,
                    float(reward) * scale,
                    float(info["cost"]) * scale,
                    int(after) % 3,
                )
            )
            state = after
        # where the last step leads is not seen: an episode is over before
        return steps

    def live(self, steps: int) -> int:
        """Live until ``steps`` were taken; return how many episodes violated."""
        violating = 0
        for _ in range(steps // HORIZON):
            allowed = self.allowance()
            start = int(self.rng.integers(3))
            steps_taken = self.episode(start, float(allowed[start]))
            moves = sum(cost for *_, cost, _ in steps_taken)
            over = allowed.mean() > BUDGET + 1e-9 or moves > allowed[start] + 1e-9
            violating += bool(over)
            self.seen += steps_taken[:-1]
        return violating

    def returns(self) -> float:
        """Return what one more episode earns, averaged over the starts."""
        allowed = self.allowance()
        return float(
            np.mean(
                [
                    sum(step[2] for step in self.episode(start, float(allowed[start])))
                    for start in range(3)
                ]
            )
        )


def rows(seeds: int = 20) -> list[dict[str, object]]:
    """Return what the lifetimes and the episodes came to."""
    lives = [lifetime(seed) for seed in range(seeds)]
    violating, returns = [], []
    for seed in range(seeds):
        resets = Resets(seed)
        violating.append(resets.live(STEPS))
        returns.append(resets.returns())
    largest = max(life["largest cost-to-go"] for life in lives)
    earned = np.median([life["reward a step"] for life in lives])
    return [
        {
            "what": "one lifetime: largest realised cost-to-go",
            "found": f"{largest:.4f}",
            "bound": f"{lives[0]['budget']:g}",
        },
        {
            "what": "one lifetime: reward a step in its second half, median",
            "found": f"{earned:.4f}",
            "bound": "1",
        },
        {
            "what": f"resets: violating episodes of {seeds * STEPS // HORIZON}",
            "found": sum(violating),
            "bound": "0",
            "published": "0",
        },
        {
            "what": f"resets: least return after {STEPS} steps",
            "found": f"{min(returns):.4f}",
            "bound": f"{CEILING:.4f}",
            "published": PUBLISHED,
        },
    ]


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    for line in rows(parser.parse_args().seeds):
        print(line)


if __name__ == "__main__":
    main()
