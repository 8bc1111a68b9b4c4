"""Validation: does the suite catch what it should, and nothing else? One judge decides for all."""
