"""Models do not change: fits of every kind give the recorded trees, bit for bit."""

import pytest

import fits


@pytest.mark.parametrize("name", fits.FITS)
def test_the_trees_of_a_fit_are_the_recorded_ones(name):
    assert fits.digest_of(name) == fits.recorded()[name]


def test_every_recorded_fit_is_made():
    assert fits.recorded().keys() == fits.FITS.keys()
