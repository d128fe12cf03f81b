"""Linear equations of flights: how certain their unknowns are."""

from __future__ import annotations

import numpy as np

from crazyflow_ros.identification.equations import Equations, LinearTerms

RUNS = 400
SHAPE = (15, 20, 2)
"""Seconds, samples and axes of a flight."""


def test_covariances_are_those_of_solutions_with_other_noise() -> None:
    """Of three unknowns that are hard to tell apart, beside one that each flight has of its own.

    Errors last about half a second; the second axis has smaller ones.
    """
    rng, true = np.random.default_rng(0), np.array([1.0, -2.0, 0.5])
    mixed = np.array([[1.0, 0.8, 0.0], [0.0, 0.6, -0.7], [0.0, 0.0, 0.7]])
    columns = [(rng.normal(size=(*SHAPE, 3)) @ mixed, rng.normal(size=(*SHAPE, 1)) + 1)] * 2
    smooth = np.array([np.convolve(row, np.ones(10), "same") for row in np.eye(SHAPE[1])])
    found, stated, spreads = [], [], []
    for _ in range(RUNS):
        flights = []
        for (common, own), offset in zip(columns, (0.3, -0.7)):
            noise = np.einsum("st,ntd->nsd", smooth, rng.normal(size=SHAPE)) * (1.0, 0.3)
            response = common @ true + offset * own[..., 0] + noise
            flights.append(LinearTerms(response, common, own))
        equations = Equations(flights, ("a", "b", "c"), ("d",))
        found.append([*equations.values.values()])
        stated.append(equations.covariance())
        spreads.append([*equations.spread().values()])
    np.testing.assert_allclose(np.sqrt(np.diagonal(stated, axis1=1, axis2=2)), spreads, rtol=1e-12)
    expected = np.corrcoef(np.transpose(found))
    mean = np.mean(stated, axis=0)
    size = np.sqrt(np.diag(mean))
    assert expected[0, 1] < -0.5 and expected[1, 2] > 0.5
    np.testing.assert_allclose(mean / np.outer(size, size), expected, atol=0.12)
    ratio = size / np.std(found, axis=0)
    assert (ratio > 0.95).all() and (ratio < 1.5).all(), ratio  # the larger of two estimates
