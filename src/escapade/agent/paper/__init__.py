"""The paper's Algorithm 1, corrected, as a mode of the agent.

===========  =========================================================================
module       what it holds
===========  =========================================================================
``settings``  what the mode may be told, the paper's relaxations by name among it
``budgets``   d, d', d'', d_s and l of the Escape Budget Lemma, and what binds
``escape``    the worst-case cost of escape from unknown states
``sampling``  when a pair has been sampled enough
``policies``  the policies that explore and exploit, in the induced problems
``planning``  all of it put together into one plan
``report``    what a life by Algorithm 1 came to
===========  =========================================================================

The steps themselves are taken by :mod:`escapade.kernels.paper`.
"""
