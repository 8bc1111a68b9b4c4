"""Attempts of our own, found by trying."""

from staff.tests.hostile.attack import Attack

INVENTING: tuple[Attack, ...] = ()
