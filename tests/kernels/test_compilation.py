"""How kernels are compiled: on first use, with their machine code kept."""

from __future__ import annotations

import os
import subprocess
import sys

import numba
import pytest

from escapade.kernels import compilation
from escapade.kernels.backups import bellman_backup
from escapade.kernels.compilation import compiled, compiled_parallel, pieces_of_work

OFF = bool(numba.config.DISABLE_JIT)


def double(x):
    return 2.0 * x


@pytest.mark.parametrize("decorate", [compiled, compiled_parallel])
def test_a_kernel_does_what_its_function_does(decorate):
    kernel = decorate(double)
    assert kernel(1.5) == 3.0
    assert (kernel is double) == OFF


def test_division_by_zero_is_infinite_and_sums_keep_their_order():
    options = {} if OFF else bellman_backup.targetoptions
    assert not options.get("fastmath")
    assert options.get("error_model", "numpy") == "numpy"


def test_work_is_cut_only_where_it_is_worth_it(monkeypatch):
    monkeypatch.setattr(compilation.numba, "get_num_threads", lambda: 7)
    assert pieces_of_work(100) == 1
    assert pieces_of_work(19_999) == 1
    assert pieces_of_work(20_000) == 7


def test_importing_the_kernels_compiles_nothing():
    code = """
import importlib, pkgutil, numba, escapade.kernels as kernels
for module in pkgutil.iter_modules(kernels.__path__):
    found = vars(importlib.import_module(f"escapade.kernels.{module.name}"))
    for name, kernel in found.items():
        if isinstance(kernel, numba.core.dispatcher.Dispatcher):
            assert not kernel.signatures, name
            assert type(kernel._cache).__name__ == "FunctionCache", name
"""
    subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "0"},
    )
