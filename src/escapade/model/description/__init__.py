"""A plant in plain words: CMDPs in TOML or JSON files that a person can write.

A description names what there is and lists one row for each action in each state::

    discount = 0.9
    budget = 1.0

    transitions = [
      # state     action    next                          reward  cost
      ["working", "hard",   {working = 0.8, broken = 0.2}, 1.0],
      ["working", "gently", "working",                     0.4],
      ["broken",  "wait",   {working = "1/3", broken = "rest"}, 0.0, 1.0],
    ]

A row is such a list, or a table with the keys ``state``, ``action``, ``next``,
``reward`` and ``cost``.  ``next`` is a state, or a table of probabilities; in it a
fraction may be written as a string, and one state may take the ``"rest"``.  Everything
else has a default:

- ``states`` and ``actions``: names in the order wanted, or a number of them, which are
  then called 0, 1, ...; by default what the rows name, in order of appearance;
- ``start``: a state or a table of probabilities; by default the first state;
- ``defaults``: a table with the ``reward`` and ``cost`` of rows that give none; 0;
- ``budget``: a number; for several costs a list, or a table that names them.  Costs in
  rows are then lists or tables too;
- ``reward_max``, ``cost_max``, ``coordinates``: as in :class:`~escapade.model.CMDP`;
- ``about``: a sentence for people.

What is wrong is refused by its key and place: ``transitions[3].next: expected
probabilities that sum to 1, found a sum of 0.9``.  A key that does not exist is wrong
too, as it is more likely misspelt than meant for somebody else.  What
:func:`write_description` writes, :func:`read_description` reads back equal, bit for
bit.
"""

from escapade.model.description.files import read_description, write_description
from escapade.model.description.reading import Description, parse_description
from escapade.model.description.writing import describe

__all__ = [
    "Description",
    "describe",
    "parse_description",
    "read_description",
    "write_description",
]
