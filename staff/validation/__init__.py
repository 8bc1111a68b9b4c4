"""Validation: whether the suite catches what it should, and nothing else; one judge for all."""
