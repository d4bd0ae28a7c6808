"""The command ``escapade``: the library for people who do not want to write Python.

Every command has ``--help`` and ``--json``, and ends with one of these codes:

=====  ==================================================================
code   meaning
=====  ==================================================================
0      done
1      the answer is no: no policy keeps the budget, or a check failed
2      the input was wrong; one line on stderr says how
3      Escapade itself broke down; nothing is said about the question
=====  ==================================================================

With ``--json`` standard output holds one JSON object and nothing else, whatever the
code is.  What a command needs is imported when it runs, so that help and completion
answer at once.
"""

from escapade.cli.app import app, main

__all__ = ["app", "main"]
