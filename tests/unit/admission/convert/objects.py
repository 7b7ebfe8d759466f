"""Objects of v1beta2 as they may be stored: every member there or not, zero and false told apart from unset."""

from typing import Any

from hypothesis import strategies as st

CORE, INFRA = "cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io"
TIME = "2026-01-01T00:00:00Z"
_words = st.sampled_from(["a", "b-c", "d0"])
_numbers = st.integers(0, 1000)
_flags = st.booleans()


def _some(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Any of the members, at least one."""
    return st.fixed_dictionaries({}, optional=members).filter(bool)


def _with(
    required: dict[str, st.SearchStrategy[Any]], **members: st.SearchStrategy[Any]
) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(required, optional=members)


_ref = st.fixed_dictionaries({"apiGroup": st.sampled_from(["g.x", "h.y"]), "kind": st.just("Foo"), "name": _words})
_labels = st.dictionaries(_words, _words, min_size=1, max_size=2)
_selector = _with({}, matchLabels=_labels)
_condition = st.fixed_dictionaries(
    {"type": _words, "status": st.sampled_from(["True", "False"]), "reason": st.just("R"), "message": _words, "lastTransitionTime": st.just(TIME)}
)  # fmt: skip
_old_condition = st.fixed_dictionaries({"type": _words, "status": st.just("True"), "lastTransitionTime": st.just(TIME)})
_conditions = st.lists(_condition, min_size=1, max_size=2)
_old_conditions = st.lists(_old_condition, min_size=1, max_size=2)
_failures = {"conditions": _old_conditions, "failureReason": _words, "failureMessage": _words}
_flags_of_machines = _some(infrastructureProvisioned=_flags, bootstrapDataSecretCreated=_flags)
_new_counters = {
    "readyReplicas": _numbers,
    "availableReplicas": _numbers,
    "upToDateReplicas": _numbers,
    "replicas": _numbers,
}


def _deprecated(**more: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"v1beta1": _with({}, **more)})


_machine_spec = _with(
    {"clusterName": _words, "bootstrap": _with({}, configRef=_ref, dataSecretName=st.sampled_from(["", "s"])), "infrastructureRef": _ref},
    version=st.just("v1.35.0"), providerID=_words, failureDomain=_words, minReadySeconds=_numbers,
    readinessGates=st.lists(st.fixed_dictionaries({"conditionType": _words}), min_size=1, max_size=2),
    deletion=_some(nodeDrainTimeoutSeconds=_numbers, nodeVolumeDetachTimeoutSeconds=_numbers, nodeDeletionTimeoutSeconds=_numbers),
)  # fmt: skip
_template = _with({"spec": _machine_spec}, metadata=_some(labels=_labels, annotations=_labels))
_machine_status = _some(
    conditions=_conditions, initialization=_flags_of_machines, nodeRef=st.fixed_dictionaries({"name": _words}),
    lastUpdated=st.just(TIME), phase=st.sampled_from(["Running", "Updating", "Deleting"]), failureDomain=_words,
    observedGeneration=_numbers, deprecated=_deprecated(**_failures),
)  # fmt: skip
_pool_spec = _with(
    {"clusterName": _words, "template": _template}, replicas=_numbers, providerIDList=st.lists(_words, min_size=1), failureDomains=st.lists(_words, min_size=1),
)  # fmt: skip
_pool_status = _some(
    conditions=_conditions, initialization=_flags_of_machines, phase=st.just("Running"), observedGeneration=_numbers,
    versions=st.lists(st.fixed_dictionaries({"version": _words, "replicas": _numbers}), min_size=1, max_size=1),
    deprecated=_deprecated(**_failures, readyReplicas=_numbers, availableReplicas=_numbers, unavailableReplicas=_numbers), **_new_counters,
)  # fmt: skip
_deployment_spec = _with(
    {"clusterName": _words, "template": _template, "selector": _selector}, replicas=_numbers, paused=_flags,
    rollout=_some(
        after=st.just(TIME),
        strategy=_with({"type": st.just("RollingUpdate")}, rollingUpdate=_some(maxSurge=st.sampled_from([0, 1, "20%"]), maxUnavailable=_numbers)),
    ),
    machineNaming=_some(template=_words), remediation=_some(maxInFlight=_numbers), deletion=_some(order=st.just("Oldest")),
)  # fmt: skip
_check_spec = _with(
    {"clusterName": _words, "selector": _selector},
    checks=_some(
        nodeStartupTimeoutSeconds=_numbers,
        unhealthyNodeConditions=st.lists(
            st.fixed_dictionaries({"type": _words, "status": _words, "timeoutSeconds": _numbers}), min_size=1, max_size=2
        ),
    ),
    remediation=_some(
        triggerIf=_some(unhealthyLessThanOrEqualTo=st.sampled_from([0, 3, "40%"]), unhealthyInRange=st.just("[1-2]")),
        templateRef=st.fixed_dictionaries({"apiVersion": st.just("g.x/v1"), "kind": st.just("FixTemplate"), "name": _words}),
    ),
)  # fmt: skip
_check_status = _some(
    conditions=_conditions, expectedMachines=_numbers, currentHealthy=_numbers, remediationsAllowed=_numbers, targets=st.lists(_words, min_size=1),
    observedGeneration=_numbers, deprecated=_deprecated(conditions=_old_conditions),
)  # fmt: skip
_counters = _some(desiredReplicas=_numbers, replicas=_numbers, readyReplicas=_numbers)
_cluster_spec = _with(
    {"infrastructureRef": _ref}, paused=_flags, controlPlaneRef=_ref,
    controlPlaneEndpoint=_some(host=_words, port=st.integers(1, 65535)),
    clusterNetwork=_some(apiServerPort=st.integers(1, 65535), serviceDomain=_words, pods=st.fixed_dictionaries({"cidrBlocks": st.just(["10.0.0.0/16"])})),
)  # fmt: skip
_cluster_status = _some(
    conditions=_conditions, initialization=_some(infrastructureProvisioned=_flags, controlPlaneInitialized=_flags), controlPlane=_counters, workers=_counters,
    failureDomains=st.lists(_with({"name": _words}, controlPlane=_flags, attributes=_labels), min_size=1, max_size=2, unique_by=lambda d: d["name"]),
    phase=st.just("Provisioned"), observedGeneration=_numbers, deprecated=_deprecated(**_failures),
)  # fmt: skip
_port = st.integers(1, 65535)
_endpoint = _some(host=_words, port=_port)
_domains = st.lists(
    _with({"name": _words}, controlPlane=_flags, attributes=_labels), min_size=1, max_size=3, unique_by=lambda d: d["name"]
).map(lambda domains: sorted(domains, key=lambda d: d["name"]))  # fmt: skip
_balancer = _with({}, imageRepository=_words, imageTag=_words, customHAProxyConfigTemplateRef=st.just({"name": "lb"}))
_docker_cluster = {"failureDomains": _domains, "loadBalancer": _balancer}
_time = st.sampled_from(["5m", "1m30s", "0s"])
_step = _with({}, provisioning=_with({"startupDuration": _time}, startupJitter=st.just("0.2")))
_dev_cluster_spec = _with(
    {"backend": st.one_of(st.fixed_dictionaries({"docker": _with({}, **_docker_cluster)}), st.just({"inMemory": {}}))},
    controlPlaneEndpoint=_endpoint,
)  # fmt: skip
_infra_status = {
    "conditions": _conditions, "initialization": st.fixed_dictionaries({"provisioned": _flags}),
    "deprecated": st.fixed_dictionaries({"v1beta1": st.fixed_dictionaries({"conditions": _old_conditions})}),
}  # fmt: skip
_infra_cluster_status = _some(failureDomains=_domains, **_infra_status)
_mount = _some(hostPath=_words, containerPath=_words, readOnly=_flags)
_container = {
    "customImage": _words, "preLoadImages": st.lists(_words, min_size=1, max_size=2), "extraMounts": st.lists(_mount, min_size=1, max_size=2),
    "bootstrapTimeout": _time,
}  # fmt: skip
_dev_machine_spec = _with(
    {
        "backend": st.one_of(
            st.fixed_dictionaries({"docker": _with({}, **_container)}),
            st.fixed_dictionaries({"inMemory": _with({}, vm=_step, node=_step, apiServer=_step, etcd=_step)}),
        )
    },
    providerID=_words,
)
_docker_machine_spec = _with({}, providerID=_words, bootstrapped=_flags, **_container)
_addresses = st.lists(st.fixed_dictionaries({"type": st.just("InternalIP"), "address": _words}), min_size=1, max_size=2)
_infra_machine_status = {"addresses": _addresses, "failureDomain": _words, **_infra_status}
_capacity = _some(capacity=st.just({"cpu": "8", "memory": 17179869184}))


def _template_of(spec: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    template = _with({"spec": spec}, metadata=_some(labels=_labels, annotations=_labels))
    return st.fixed_dictionaries({"template": template})


_docker_pool_spec = _with(
    {}, template=_with({}, **_container), providerID=_words, providerIDList=st.lists(_words, min_size=1, max_size=3),
    strategy=_some(type=st.just("OnDelete"), rollingUpdate=_some(maxSurge=st.sampled_from([1, "20%"]))),
)  # fmt: skip
_instance = _some(
    instanceName=_words, providerID=_words, version=_words, ready=_flags, bootstrapped=_flags, addresses=_addresses
)
_docker_pool_status = _some(
    ready=_flags, replicas=_numbers, observedGeneration=_numbers, infrastructureMachineKind=st.just("DockerMachine"),
    instances=st.lists(_instance, min_size=1, max_size=2), capacity=st.just({"cpu": 2}), nodeInfo=_some(architecture=_words), **_infra_status,
)  # fmt: skip
_KINDS = {
    (CORE, "Cluster"): (_cluster_spec, _cluster_status),
    (CORE, "Machine"): (_machine_spec, _machine_status),
    (CORE, "MachinePool"): (_pool_spec, _pool_status),
    (CORE, "MachineDeployment"): (_deployment_spec, None),
    (CORE, "MachineHealthCheck"): (_check_spec, _check_status),
    (INFRA, "DevCluster"): (_dev_cluster_spec, _infra_cluster_status),
    (INFRA, "DevClusterTemplate"): (_template_of(_dev_cluster_spec), None),
    (INFRA, "DevMachine"): (_dev_machine_spec, _some(**_infra_machine_status)),
    (INFRA, "DevMachineTemplate"): (_template_of(_dev_machine_spec), _capacity),
    (INFRA, "DockerCluster"): (_with({}, controlPlaneEndpoint=_endpoint, **_docker_cluster), _infra_cluster_status),
    (INFRA, "DockerMachine"): (_docker_machine_spec, _some(loadBalancerConfigured=_flags, **_infra_machine_status)),
    (INFRA, "DockerMachineTemplate"): (_template_of(_docker_machine_spec), _capacity),
    (INFRA, "DockerMachinePool"): (_docker_pool_spec, _docker_pool_status),
}


def hubs() -> st.SearchStrategy[dict[str, Any]]:
    """Objects of all kinds whose v1beta1 keeps what it cannot say."""
    return st.one_of(*(_hub(group, kind, spec, status) for (group, kind), (spec, status) in _KINDS.items()))


def _hub(
    group: str, kind: str, spec: st.SearchStrategy[Any], status: st.SearchStrategy[Any] | None
) -> st.SearchStrategy[dict[str, Any]]:
    meta = _with({"name": _words, "namespace": st.just("n")}, annotations=_labels)
    required: dict[str, st.SearchStrategy[Any]] = {
        "apiVersion": st.just(f"{group}/v1beta2"),
        "kind": st.just(kind),
        "metadata": meta,
        "spec": spec,
    }
    return st.fixed_dictionaries(required, optional={"status": status} if status is not None else {})
