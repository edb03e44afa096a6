"""Suggestions that name an argument of a use case, for doors that call it by different names."""

from typing import Self


class ArgumentAdvice(str):
    """A suggestion about one argument; as text it is in the words of the command line.

    An error is raised below the doors, which do not know its reader: another door takes the parts, and `named` puts the
    name that its users know into the sentence. A door that does not have the argument leaves the suggestion out.
    """

    argument: str
    value: str  # an example, or what stands for one; empty when there is none
    entry: str  # of an argument that holds several by name: the name of the one that is meant
    words: str  # a sentence with {} for the argument and its value

    def __new__(cls, argument: str, value: str = "", *, entry: str = "", words: str = "add {}") -> Self:
        """Return the suggestion; `words` is a sentence with {} in the place of the argument and its value."""
        given = f"{entry}={value}" if entry else value
        advice = super().__new__(cls, words.format(f"--{argument.replace('_', '-')} {given}".rstrip()))
        advice.argument, advice.value, advice.entry, advice.words = argument, value, entry, words
        return advice

    def named(self, argument: str) -> str:
        """Return the suggestion with the argument, and its value, as another door writes them."""
        return self.words.format(argument)
