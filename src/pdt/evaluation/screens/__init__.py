"""Screens decide which facts stand in a text."""
