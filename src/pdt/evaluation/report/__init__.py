"""The numbers of an evaluation, for programs and for people."""
