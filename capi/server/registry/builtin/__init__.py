"""The built-in kinds: what they look like (catalog), what they do (rules), how they print (tables).

`kinds()` is all the registry needs; kinds.json is generated, see tools/generate_builtin.py.
"""

from collections.abc import Sequence

from capi.server.registry.builtin.rules import KindRules
from capi.server.registry.interface import ResourceInfo

__all__ = ["KindRules", "kinds", "rules_for"]


def kinds() -> Sequence[KindRules]:
    """Every built-in kind, in discovery order; shared by all servers of a process."""
    from capi.server.registry.builtin import table  # the rules in it use this package's other parts

    return table.kinds()


def rules_for(info: ResourceInfo) -> KindRules | None:
    """The rules of a built-in kind; None for custom resources."""
    from capi.server.registry.builtin import table

    return table.rules_for(info)
