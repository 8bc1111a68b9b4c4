"""Validation: checks that the suite catches every mistake and accepts every right answer."""
