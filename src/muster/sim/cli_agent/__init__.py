"""A program that behaves like a CLI agent, well or badly, as it is told: for rehearsals and tests, without a model.

It needs the standard library only and starts quickly, which is why its values are named tuples and not dataclasses.
"""
