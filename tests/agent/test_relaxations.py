"""The paper's relaxations, one by one: each has its effect, and none costs the promise.

"From worst-case to practical assumptions", as named settings of the paper mode.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.agent.paper_worlds import born, harbour

from escapade.agent import E4, E4Settings, PaperSettings, Phase
from escapade.agent.paper.report import paper_report
from escapade.agent.paper.sampling import widths
from escapade.environments import wall_cycle
from escapade.errors import AssumptionError, InvalidInputError
from escapade.simulation import simulate
from escapade.theory.escape_budget import escape_cost_bound

RELAXED = {
    "value_bound": "empirical",
    "escape_cost": "confidence",
    "sampling": "adaptive",
    "safe_return": "when-needed",
    "stop": "when-certified",
    "diameter": "reversible",
    "discounting": "real",
    "budget_split": "by-known-states",
    "epsilon": "falling",
}


def lived(steps: int = 1_000, world=None, *, seed: int = 0, **how):
    world = world or harbour()
    agent = born(world, seed=seed, **how)
    return agent, simulate(agent, world.make_env(), steps)


@pytest.mark.parametrize("name", RELAXED)
def test_no_relaxation_costs_the_promise(name):
    agent, trace = lived(600, **{name: RELAXED[name]})
    report = paper_report(agent)
    assert report.relaxed == (name,)
    assert report.overdrawn == 0
    assert report.guarded
    assert (trace.reserved <= trace.promise).all()
    assert (trace.promise <= agent.cap).all()
    assert not agent.breaks


@pytest.mark.parametrize("name", [*RELAXED, "test", "requirements", "start"])
def test_each_is_refused_where_it_means_nothing(name):
    with pytest.raises(InvalidInputError, match=f"{name}: expected one of"):
        PaperSettings(**{name: "perhaps"})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"known_budget": -1.0}, "known_budget: expected a number of at least 0"),
        ({"return_budget": -1.0}, "return_budget: expected a number of at least 0"),
        ({"horizon": 0}, "horizon: expected"),
        ({"accuracy": 2.0}, "accuracy: expected numbers in"),
        ({"accuracy": (0.1, 0.2)}, "accuracy: expected one number, or three"),
    ],
)
def test_numbers_are_checked(given, message):
    with pytest.raises(InvalidInputError, match=message):
        PaperSettings(**given)


# -- one after another -----------------------------------------------------------------


def test_an_empirical_g_asks_for_a_greater_chance():
    """A trajectory that was finished bounds what trajectories are thought to earn."""
    world = harbour(reward_max=5.0)  # of which a fifth is ever earned
    chances = {
        how: paper_report(
            lived(1_500, world, value_bound=how, horizon=33)[0]
        ).least_chance
        for how in ("worst", "empirical")
    }
    largest = 5.0 * (1.0 - 0.9**33) / 0.1
    assert chances["worst"] == pytest.approx(0.4 / largest)
    assert chances["empirical"] > 2.0 * chances["worst"]


def test_before_a_trajectory_was_finished_g_is_the_worst():
    agent = born(harbour(), value_bound="empirical")
    assert paper_report(agent).least_chance == pytest.approx(
        paper_report(born(harbour())).least_chance
    )


def test_a_confidence_bound_in_place_of_c_max_lets_it_wander_longer():
    """After enough free steps a bound below c_max makes escapes cheaper."""
    world = harbour()
    plain, bounded, printed = (
        lived(1_500, world, escape_cost=how, known_after=10_000)[0]
        for how in ("worst", "confidence", "standard-error")
    )
    worst = plain.planning._escape.cost[0]
    confident = bounded.planning._escape.cost[0]
    hoped = printed.planning._escape.cost[0]
    assert (confident <= worst * (1 + 1e-9)).all()
    assert confident[1] < 0.98 * worst[1]
    assert hoped[1] < confident[1]  # a standard error is no bound
    upper = bounded.belief.cost_upper[0]
    assert (upper >= world.cmdp.cost[0] - 1e-12).all()


def test_adaptive_sampling_stops_when_the_widths_are_reached():
    quota = 120
    plain, _ = lived(2_500, known_after=quota)
    early, _ = lived(2_500, known_after=quota, sampling="adaptive", accuracy=0.8)
    assert paper_report(early).known > paper_report(plain).known
    learned = early.planning.known & ~early.knowledge.known_states
    done = learned[early.knowledge.pairs.pair_state]
    for width in widths(early.belief):
        assert (width[done] <= 0.8).all()


def test_a_separate_accuracy_for_each_thing_that_is_estimated():
    alike, _ = lived(1_500, known_after=400, sampling="adaptive", accuracy=0.6)
    apart, _ = lived(
        1_500, known_after=400, sampling="adaptive", accuracy=(0.6, 0.97, 0.97)
    )
    assert paper_report(apart).known >= paper_report(alike).known
    assert apart.planning._enough.sum() < alike.planning._enough.sum()


def test_a_given_known_set_is_not_sampled_again():
    few, many = (
        lived(400, harbour(known=known), requirements="reported")[1] for known in (1, 4)
    )
    wandered = [set(t.states[:-1][t.phases == Phase.WANDER]) for t in (few, many)]
    assert wandered[0] >= {1, 2}
    assert wandered[1] == {4}


def test_a_return_may_end_when_the_promise_has_recovered():
    returns = {
        how: int((lived(1_000, safe_return=how)[1].phases == Phase.RETURN).sum())
        for how in ("always", "after-escape", "when-needed")
    }
    assert returns["always"] > returns["after-escape"] > returns["when-needed"]


def test_exploring_ends_with_a_certificate_before_all_states_are_known():
    """A certificate is looked for while there is still something to explore."""
    more = {}
    for how in ("when-certified", "when-unlikely"):
        world = harbour()
        agent, env = born(world, known_after=400, stop=how), world.make_env()
        simulate(agent, env, 300)
        before = paper_report(agent).attempts
        assert before > 3
        assert (agent.gap is not None) == (how == "when-certified")
        agent.planning.certified = True  # as when the gap has closed
        trace = simulate(agent, env, 500)
        more[how] = paper_report(agent).attempts - before
        assert paper_report(agent).known < 5
        assert (trace.phases[-60:] == Phase.EXPLOIT).all() == (more[how] <= 1)
    assert more["when-certified"] <= 1 < more["when-unlikely"]


def test_exploring_ends_when_it_is_unlikely_to_succeed():
    """With ε/G at 1 no chance is above it, and the agent exploits from the start."""
    agent = E4(
        harbour().knowledge,
        E4Settings(
            mode="paper",
            epsilon=12.0,
            paper=PaperSettings(requirements="reported", horizon=33),
        ),
    )
    assert paper_report(agent).least_chance == 1.0
    simulate(agent, harbour().make_env(), 200)
    assert paper_report(agent).attempts == 0


def test_a_reversible_world_counts_only_the_states_it_can_enter():
    worst, near = (
        paper_report(lived(1, diameter=how)[0]).budgets
        for how in ("worst", "reversible")
    )
    assert worst.escape_steps == pytest.approx(4.0, rel=1e-3)  # from the last cell
    assert near.escape_steps == pytest.approx(2.0, rel=1e-3)  # a slip leads so far
    assert near.plan_budget > worst.plan_budget


def test_example_two_has_a_paper_mode_only_with_a_relaxed_diameter():
    world = wall_cycle(5)
    with pytest.raises(AssumptionError, match=r"diameter='reversible'\) asks less"):
        E4(world.knowledge, E4Settings(mode="paper"))
    with pytest.raises(AssumptionError, match="Escape Budget Lemma") as caught:
        born(harbour(0.5), diameter="reversible")
    assert "reversible" not in str(caught.value)
    assert str(caught.value).endswith("; requirements='reported' goes on without it")
    agent = E4(
        world.knowledge,
        E4Settings(mode="paper", paper=PaperSettings(diameter="reversible")),
    )
    assert paper_report(agent).budgets.hold


def test_the_real_discount_leaves_more_to_plan_with():
    one, real = (
        paper_report(lived(1, discounting=how)[0]).budgets for how in ("one", "real")
    )
    assert one.return_budget == pytest.approx([0.4])
    assert real.return_budget == pytest.approx([0.0])
    bound = escape_cost_bound(escape_steps=5.0, cost_max=1.0, discount=0.9)
    cap = float(real.budget[0])
    assert real.known_budget == pytest.approx([cap + 0.4 - bound], rel=1e-3)
    assert real.plan_budget > one.plan_budget


def test_budgets_follow_the_number_of_known_states():
    fixed, split = (
        paper_report(lived(1, budget_split=how)[0]).budgets
        for how in ("fixed", "by-known-states")
    )
    most = float(fixed.budget[0]) - 0.4
    expected = fixed.known_budget + (most - fixed.known_budget) / 5.0  # 1 of 5 known
    assert split.known_budget == pytest.approx(expected)


def test_epsilon_falls_as_there_is_less_to_explore():
    world = harbour()
    agent = born(world, epsilon="falling")
    report = paper_report(agent)
    assert report.epsilon == pytest.approx(float(agent.cap[0]) / 3.0 / 2.0**2)
    assert report.budgets.hold
    simulate(agent, world.make_env(), 2_500)
    assert paper_report(agent).epsilon == 0.4
    assert agent.planning.known.all()


def test_single_paths_are_promised_less():
    """d_p = d − k S_C, with S_C as given or at its bound (E33)."""
    world = harbour()
    how = {"requirements": "reported"}
    plain = born(world, **how)
    for mode, paper in (("paper", PaperSettings(**how)), ("ledger", None)):
        agent = E4(
            world.knowledge,
            E4Settings(
                mode=mode,
                path_deviations=3.0,
                path_deviation=1.5,
                paper=paper,
            ),
        )
        assert agent.cap == pytest.approx(plain.cap - 4.5)
    with pytest.raises(AssumptionError, match=r"path_deviations: .* found d_p = -7"):
        E4(world.knowledge, E4Settings(path_deviations=3.0))


def test_paths_rarely_cost_more_than_d_when_promised_d_p():
    """Cantelli: at most 1/10 at k = 3; 200 paths, failure below 1e-6 at p = 1/10."""
    world = harbour()
    over = 0
    for seed in range(20):
        agent = E4(
            world.knowledge,
            E4Settings(seed=seed, path_deviations=3.0, path_deviation=1.0),
        )
        trace = simulate(agent, world.make_env(), 300)
        over += int((trace.cost_to_go()[:250:25, 0] > 8.0).sum())
    assert over <= 45


def test_numbers_of_settings_survive_a_file(tmp_path):
    how = PaperSettings(accuracy=(0.1, 0.2, 0.3), sampling="adaptive")
    agent = E4(harbour().knowledge, E4Settings(mode="paper", epsilon=0.4, paper=how))
    agent.save(tmp_path / "agent.npz")
    assert E4.load(tmp_path / "agent.npz").settings.paper == how
    assert np.isclose(how.accuracies, (0.1, 0.2, 0.3)).all()
