"""In which failure domain each new instance of a pool is made: where the fewest are. Pure.

Upstream draws one at random for each instance, so that a pool of three may end in one domain.
"""

from collections import Counter
from collections.abc import Sequence

from capi.api.core.v1beta2 import MachinePool
from capi.controllers.infra.family import InfraMachine
from capi.controllers.infra.names import DOMAIN_ANNOTATION


def domain_of(infra: InfraMachine) -> str:
    """Where an instance is, or will be; "" if nobody said."""
    return infra.status.failure_domain or infra.metadata.annotations.get(DOMAIN_ANNOTATION, "")


def placed(infra: Sequence[InfraMachine], pool: MachinePool, names: Sequence[str]) -> list[tuple[str, str]]:
    """The names, each with its domain ("" if the pool names none). Instances that are leaving do not count.

    Of equally empty domains the first by name is taken, so a pass over the same state places in the same way.
    """
    domains = sorted(set(pool.spec.failure_domains))
    if not domains:
        return [(name, "") for name in names]
    there = Counter(domain_of(m) for m in infra if not m.deleting)
    result: list[tuple[str, str]] = []
    for name in names:
        domain = min(domains, key=lambda d: there[d])
        there[domain] += 1
        result.append((name, domain))
    return result
