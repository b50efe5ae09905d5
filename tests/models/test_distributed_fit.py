"""Fits of labels on other machines: what they say without reading any frame."""

import json
from types import SimpleNamespace

import pytest

import annotruth as at
from annotruth.models.em import direct_history
from annotruth.models.fits.notes import CHANCE_LINE


@pytest.mark.parametrize("readout", ["right", "opinion"])
def test_verdict_and_read_out_are_in_the_summary_and_the_json(readout):
    labels = at.Labels.of([("a", "ann", "cat"), ("a", "bob", "dog")])
    fit = at.Fit(
        model="robust-gpm",
        settings={},
        data=labels,
        history=direct_history(),
        frames=SimpleNamespace(columns=lambda _: []),
        readout=readout,
        verdict="chance",
    )
    lines = fit.summary().splitlines()
    assert lines[0] == f"WARNING: {CHANCE_LINE}"
    assert lines[-1].startswith("p_<label> and confidence are ")
    assert ("right label" in lines[-1]) == (readout == "right")
    entries = json.loads(fit.to_json())
    assert (entries["readout"], entries["verdict"]) == (readout, "chance")
