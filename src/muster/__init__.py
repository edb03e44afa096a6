"""Muster runs fleets of AI agents as durable work: answered once, paid once, inside a hard budget.

The public names are declared in `__init__.pyi`, which type checkers and editors read. Each is loaded from where that
says when it is first asked for, so that importing the package costs nothing.
"""

import importlib

__version__ = "0.1.0"

_HOMES: dict[str, tuple[str, str]] = {}  # module and name there, by public name; read when one is first asked for


def _homes() -> dict[str, tuple[str, str]]:
    """Return where each public name is defined, as lines like `from MODULE import NAME as PUBLIC` say."""
    if not _HOMES:
        declared = __loader__.get_data(f"{__file__.rpartition('.')[0]}.pyi").decode()
        imports = [line.split() for line in declared.splitlines() if line.startswith("from ")]
        _HOMES.update({public: (module, name) for _, module, _, name, _, public, *_ in imports})
    return _HOMES


def __getattr__(name: str) -> object:
    """Load a public name."""
    if name == "__all__":
        return sorted(_homes())
    if name.startswith("_") or name not in _homes():
        raise AttributeError(f"module 'muster' has no attribute {name!r}")
    module, attribute = _homes()[name]
    if module == __name__:
        return importlib.import_module(f"{module}.{name}")
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    """Return the public names, for help and completion."""
    return [*sorted(_homes()), "__version__"]
