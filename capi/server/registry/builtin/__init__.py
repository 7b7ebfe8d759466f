"""The built-in kinds: what they look like (catalog), what they do (rules), how they print (tables).

`kinds()` is all the registry needs; kinds.json is generated, see tools/generate_builtin.py.
"""

from capi.server.registry.builtin.kinds import kinds, rules_for
from capi.server.registry.builtin.rules import KindRules

__all__ = ["KindRules", "kinds", "rules_for"]
