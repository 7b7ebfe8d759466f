"""The InfraMachines of a pool as they should be: their names, their content, the template they were made from. Pure.

New names follow from the pool's uid, its generation and the names in use: a pass that saw an old state asks for the same
names again, which changes nothing, and a name that was given up is not given again.
"""

import hashlib
import json

from capi.api.core import finalizers, labels
from capi.api.core.v1beta2 import MachinePool
from capi.api.infra.v1beta2 import DevMachineBackend, DockerMachineBackend, InMemoryMachineBackend
from capi.controllers.infra import knobs
from capi.controllers.infra.family import InfraMachine, InfraMachinePool
from capi.controllers.infra.machinepool.scope import Scope
from capi.controllers.infra.names import DOMAIN_ANNOTATION, HASH_ANNOTATION, VERSION_ANNOTATION
from capi.kube.names import SUFFIX_ALPHABET, SUFFIX_LENGTH, label_value
from capi.kube.objects import ObjectMeta, OwnerReference
from capi.runtime.plan import Apply, ClusterKey, apply

_LONGEST_BASE = 63 - SUFFIX_LENGTH - 1
"""The name is a host name too: one DNS label."""


def template_hash(pool: MachinePool, infra: InfraMachinePool) -> str:
    """What an instance is made from, as far as a change of it needs new instances.

    The version, what a container is made with, and the *reference* to the bootstrap config; never the data, which rotates, nor
    the digest that stands for a version's image, which comes with a release of this program, nor simulated timings.
    """
    spec = pool.spec.template.spec
    config = spec.bootstrap.config_ref
    parts: list[object] = [spec.version, [config.kind, config.name] if config else None]
    docker = infra.spec.backend.docker if infra.spec.backend else None
    if docker is not None and (docker.custom_image or docker.pre_load_images or docker.extra_mounts):
        mounts = [[m.host_path, m.container_path, bool(m.read_only)] for m in docker.extra_mounts]
        parts.append([docker.custom_image, list(docker.pre_load_images), mounts])
    external = infra.spec.backend.external if infra.spec.backend else None
    if external is not None:
        parts.append([external.name, external.parameters])
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:10]


def made_from(infra: InfraMachine) -> str:
    """The template hash of an existing InfraMachine; "" if it was not made by a pool."""
    return infra.metadata.annotations.get(HASH_ANNOTATION, "")


def new_names(seen: Scope, count: int, pool: MachinePool) -> list[str]:
    """`count` names that no InfraMachine or Machine of the pool has."""
    used = {infra.name for infra in seen.infra} | {machine.name for machine in seen.machines.values()}
    used |= {machine.name for machine in seen.dangling}
    seed = f"{seen.pool.metadata.uid}/{seen.pool.metadata.generation}"
    base = pool.name[:_LONGEST_BASE].rstrip(".-").replace(".", "-")
    names: list[str] = []
    number = 0
    while len(names) < count:
        name = f"{base}-{_suffix(f'{seed}/{number}')}"
        number += 1
        if name not in used:
            used.add(name)
            names.append(name)
    return names


def desired_machine(
    seen: Scope, pool: MachinePool, name: str, existing: InfraMachine | None = None, *, domain: str = ""
) -> Apply:
    """The whole InfraMachine. An existing one keeps what its instance was made from, and where."""
    made = existing.metadata.annotations if existing else {}
    origin = {
        HASH_ANNOTATION: made.get(HASH_ANNOTATION) or template_hash(pool, seen.pool),
        VERSION_ANNOTATION: made.get(VERSION_ANNOTATION) or pool.spec.template.spec.version,
        DOMAIN_ANNOTATION: made.get(DOMAIN_ANNOTATION) or domain,
        **knobs.inherited(made if existing else seen.pool.metadata.annotations),
    }
    metadata = ObjectMeta(
        name=name,
        namespace=seen.pool.namespace,
        uid=existing.metadata.uid if existing else "",
        labels=pool_labels(pool),
        annotations={key: value for key, value in origin.items() if value},
        owner_references=(owner(seen.pool),),
        finalizers=(finalizers.DEV_MACHINE,),
    )
    id_ = seen.identify(ClusterKey(seen.pool.namespace, pool.spec.cluster_name), name)
    known = existing.spec.provider_id if existing else ""
    return apply(
        seen.family.new_machine(
            metadata, known or id_, (existing.spec.backend if existing else None) or _backend(seen.pool)
        )
    )


def drifted(seen: Scope, pool: MachinePool, infra: InfraMachine) -> bool:
    """Something that the pool keeps on its InfraMachines is missing. Never true of one that is being deleted."""
    if infra.deleting:
        return False
    owned = any(ref.uid == seen.pool.metadata.uid for ref in infra.metadata.owner_references)
    labelled = pool_labels(pool).items() <= infra.metadata.labels.items()
    return not (owned and labelled and infra.spec.provider_id and finalizers.DEV_MACHINE in infra.metadata.finalizers)


def owner(pool: InfraMachinePool) -> OwnerReference:
    """Not the controller: that is the Machine."""
    return OwnerReference(
        api_version=pool.resource.api_version, kind=pool.resource.kind, name=pool.name, uid=pool.metadata.uid
    )


def pool_labels(pool: MachinePool) -> dict[str, str]:
    """By which core and this controller find the pool's InfraMachines and Machines."""
    return {labels.CLUSTER_NAME: pool.spec.cluster_name, labels.POOL_NAME: label_value(pool.name)}


def _backend(pool: InfraMachinePool) -> DevMachineBackend:
    asked = pool.spec.backend
    if asked is None:
        return DevMachineBackend()
    if asked.in_memory is not None:
        return DevMachineBackend(in_memory=InMemoryMachineBackend(vm=asked.in_memory.vm, node=asked.in_memory.node))
    if asked.docker is None:
        return DevMachineBackend(external=asked.external)
    return DevMachineBackend(
        docker=DockerMachineBackend(
            custom_image=asked.docker.custom_image,
            pre_load_images=asked.docker.pre_load_images,
            extra_mounts=asked.docker.extra_mounts,
            bootstrap_timeout=asked.docker.bootstrap_timeout,
        )
    )


def _suffix(seed: str) -> str:
    digest = hashlib.sha256(seed.encode()).digest()
    return "".join(SUFFIX_ALPHABET[byte % len(SUFFIX_ALPHABET)] for byte in digest[:SUFFIX_LENGTH])
