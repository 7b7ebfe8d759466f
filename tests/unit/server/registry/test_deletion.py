"""Deletion: finalizers, policies, garbage collection, namespaces, definitions, pods."""

import pytest

from capi.aio.clock import LoopClock
from capi.kube.errors import AlreadyExists, Conflict, Forbidden, Invalid, NotFound, TooManyRequests
from capi.server.registry.interface import DeleteOptions, ListOptions, WriteOptions
from capi.server.registry.registry import ApiRegistry
from capi.server.store.memory import MemoryStore
from tests.unit.server.registry.rig import Rig, a_config_map, a_definition, a_widget, owned_by


async def test_delete_answers_a_status_or_the_object_by_kind(rig: Rig) -> None:
    made = await rig.create("configmaps", a_config_map())
    status = await rig.delete("configmaps", "a")
    assert status["details"] == {"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]}
    await rig.create("serviceaccounts", {"metadata": {"name": "s"}})
    assert (await rig.delete("serviceaccounts", "s"))["kind"] == "ServiceAccount"
    with pytest.raises(NotFound):
        await rig.delete("configmaps", "a")


async def test_finalizers_hold_an_object_until_the_last_is_gone(rig: Rig) -> None:
    await rig.create("configmaps", a_config_map(finalizers=["x.io/1"]))
    seen, _ = rig.watch("configmaps", resource_version=str(rig.registry.revision))
    marked = await rig.delete("configmaps", "a")
    assert marked["metadata"]["deletionTimestamp"] and marked["metadata"]["deletionGracePeriodSeconds"] == 0
    assert await rig.delete("configmaps", "a") == marked
    with pytest.raises(AlreadyExists, match='object is being deleted: configmaps "a" already exists'):
        await rig.create("configmaps", a_config_map())
    with pytest.raises(Invalid, match="no new finalizers can be added if the object is being deleted"):
        await rig.patch("configmaps", "a", {"metadata": {"finalizers": ["x.io/1", "x.io/2"]}})
    await rig.patch("configmaps", "a", {"metadata": {"finalizers": None}})
    assert rig.gone("configmaps", "a")
    assert seen.brief == [("MODIFIED", "a"), ("DELETED", "a")]


async def test_marking_a_custom_resource_raises_its_generation(rig: Rig) -> None:
    await rig.create("customresourcedefinitions", a_definition(), namespace="")
    await rig.create("widgets", {**a_widget(), "metadata": {"name": "w", "finalizers": ["x.io/1"]}})
    assert (await rig.delete("widgets", "w"))["metadata"]["generation"] == 2


async def test_preconditions_guard_a_delete(rig: Rig) -> None:
    made = await rig.create("configmaps", a_config_map())
    with pytest.raises(Conflict, match=r"the UID in the precondition \(u\) does not match the UID in record"):
        await rig.delete("configmaps", "a", uid="u")
    with pytest.raises(Conflict, match="ResourceVersion"):
        await rig.delete("configmaps", "a", resource_version="1")
    await rig.delete(
        "configmaps", "a", uid=made["metadata"]["uid"], resource_version=made["metadata"]["resourceVersion"]
    )


async def test_policies_set_and_replace_finalizers(rig: Rig) -> None:
    await rig.create("configmaps", a_config_map())
    assert (await rig.delete("configmaps", "a", propagation="Foreground"))["metadata"]["finalizers"] == [
        "foregroundDeletion"
    ]
    assert (await rig.delete("configmaps", "a", propagation="Orphan"))["metadata"]["finalizers"] == ["orphan"]
    await rig.delete("configmaps", "a", propagation="Background")
    assert rig.gone("configmaps", "a")


async def test_delete_collection_takes_what_is_selected(rig: Rig) -> None:
    for name in "abc":
        await rig.create("configmaps", a_config_map(name, labels={"x": name}))
    listing = await rig.registry.delete_collection(
        rig.info("configmaps"), "ns", ListOptions(label_selector="x!=b"), DeleteOptions()
    )
    assert len(listing.items) == 2 and rig.names("configmaps") == ["b"]


# -- garbage collection -------------------------------------------------------------------------------------------


async def test_dependents_follow_their_owner(rig: Rig) -> None:
    owner = await rig.create("configmaps", a_config_map("owner"))
    child = await rig.create("configmaps", a_config_map("child", **owned_by(owner)))
    await rig.create("secrets", {"metadata": {"name": "grandchild", **owned_by(child)}})
    await rig.settle()
    await rig.delete("configmaps", "owner")
    await rig.settle()
    assert rig.names("configmaps") == [] and rig.names("secrets") == []


async def test_orphaned_dependents_stay_and_lose_the_reference(rig: Rig) -> None:
    owner = await rig.create("configmaps", a_config_map("owner"))
    await rig.create("configmaps", a_config_map("child", **owned_by(owner)))
    await rig.delete("configmaps", "owner", propagation="Orphan")
    await rig.settle()
    assert rig.names("configmaps") == ["child"]
    assert "ownerReferences" not in rig.get("configmaps", "child")["metadata"]


async def test_a_foreground_owner_waits_for_blocking_dependents(rig: Rig) -> None:
    owner = await rig.create("configmaps", a_config_map("owner"))
    await rig.create(
        "configmaps", a_config_map("child", finalizers=["x.io/1"], **owned_by(owner, blockOwnerDeletion=True))
    )
    await rig.delete("configmaps", "owner", propagation="Foreground")
    await rig.settle()
    assert rig.names("configmaps") == ["child", "owner"]
    assert rig.get("configmaps", "child")["metadata"]["deletionTimestamp"]
    await rig.patch("configmaps", "child", {"metadata": {"finalizers": None}})
    await rig.settle()
    assert rig.names("configmaps") == []


async def test_foreground_deletion_ends_in_a_cycle_of_owners(rig: Rig) -> None:
    a = await rig.create("configmaps", a_config_map("a"))
    b = await rig.create("configmaps", a_config_map("b", **owned_by(a, blockOwnerDeletion=True)))
    await rig.patch("configmaps", "a", {"metadata": owned_by(b, blockOwnerDeletion=True)})
    await rig.settle()
    await rig.delete("configmaps", "a", propagation="Foreground")
    await rig.settle()
    assert rig.names("configmaps") == []


async def test_a_living_owner_keeps_a_dependent_and_dead_references_go(rig: Rig) -> None:
    dead, alive = [await rig.create("configmaps", a_config_map(name)) for name in ("dead", "alive")]
    refs = owned_by(dead)["ownerReferences"] + owned_by(alive)["ownerReferences"]
    await rig.create("configmaps", a_config_map("child", ownerReferences=refs))
    await rig.delete("configmaps", "dead")
    await rig.settle()
    assert rig.get("configmaps", "child")["metadata"]["ownerReferences"] == owned_by(alive)["ownerReferences"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"uid": "never-existed"}, id="X23 a uid that never existed"),
        pytest.param({"name": "other"}, id="X24 another name"),
    ],
)
async def test_references_to_nothing_are_collected(rig: Rig, change: dict[str, str]) -> None:
    owner = await rig.create("configmaps", a_config_map("owner"))
    await rig.create("configmaps", a_config_map("child", **owned_by(owner, **change)))
    await rig.settle()
    assert rig.names("configmaps") == ["owner"]


async def test_an_owner_in_another_namespace_counts_as_absent(rig: Rig) -> None:
    owner = await rig.create("configmaps", a_config_map("owner"), namespace="default")
    await rig.create("configmaps", a_config_map("child", **owned_by(owner)))
    await rig.settle()
    assert rig.names("configmaps") == []


async def test_impossible_and_unknown_owners_collect_nothing(rig: Rig) -> None:
    owner = await rig.create("configmaps", a_config_map("owner"))
    await rig.create("nodes", {"metadata": {"name": "n", **owned_by(owner, uid="x")}}, namespace="")
    unknown = {"apiVersion": "ex.io/v1", "kind": "Widget", "name": "w", "uid": "x"}
    await rig.create("configmaps", a_config_map("child", ownerReferences=[unknown]))
    await rig.settle()
    assert rig.names("nodes", "") == ["n"] and "child" in rig.names("configmaps")
    await rig.create("customresourcedefinitions", a_definition(), namespace="")
    await rig.settle()
    assert "child" not in rig.names("configmaps"), "the kind is known now, and its owner is not there"


async def test_a_restart_collects_what_was_left_and_nothing_else() -> None:
    store = MemoryStore()
    first = Rig(ApiRegistry(store, clock=LoopClock()))
    await first.registry.start()
    await first.create("customresourcedefinitions", a_definition(), namespace="")
    owner = await first.create("widgets", a_widget("owner"), namespace="default")
    kept = await first.create("widgets", a_widget("kept"), namespace="default")
    await first.create("configmaps", a_config_map("child", **owned_by(owner)), namespace="default")
    await first.create("configmaps", a_config_map("kept", **owned_by(kept)), namespace="default")
    await first.delete("widgets", "owner", "default")
    second = Rig(ApiRegistry(store, clock=LoopClock()))
    await second.registry.start()
    await second.settle()
    assert second.names("configmaps", "default") == ["kept"]


# -- namespaces ---------------------------------------------------------------------------------------------------


async def test_a_namespace_is_labelled_active_and_finalized(rig: Rig) -> None:
    namespace = rig.get("namespaces", "ns", "")
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "ns"}
    assert (namespace["spec"], namespace["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Active"})
    assert rig.names("namespaces", "") == ["default", "kube-node-lease", "kube-public", "kube-system", "ns"]
    with pytest.raises(Forbidden, match="this namespace may not be deleted"):
        await rig.delete("namespaces", "default", "")


async def test_a_deleted_namespace_takes_its_content_along_and_says_what_it_waits_for(rig: Rig) -> None:
    await rig.create("customresourcedefinitions", a_definition(), namespace="")
    await rig.create("configmaps", a_config_map())
    await rig.create("configmaps", a_config_map(), namespace="default")
    await rig.create("widgets", {**a_widget(), "metadata": {"name": "w", "finalizers": ["x.io/1"]}})
    assert (await rig.delete("namespaces", "ns", ""))["status"]["phase"] == "Terminating"
    await rig.settle()
    assert rig.names("configmaps") == []
    conditions = {c["type"]: c for c in rig.get("namespaces", "ns", "")["status"]["conditions"]}
    assert (
        conditions["NamespaceContentRemaining"]["message"]
        == "Some resources are remaining: widgets.ex.io has 1 resource instances"
    )
    assert conditions["NamespaceFinalizersRemaining"]["reason"] == "SomeFinalizersRemain"
    await rig.patch("widgets", "w", {"metadata": {"finalizers": None}})
    await rig.settle()
    assert rig.gone("namespaces", "ns", "") and rig.names("configmaps", "default") == ["a"]


async def test_finalize_lets_a_namespace_go(rig: Rig) -> None:
    await rig.create("configmaps", a_config_map(finalizers=["x.io/1"]))
    await rig.delete("namespaces", "ns", "")
    namespace = rig.get("namespaces", "ns", "")
    await rig.update("namespaces", {**namespace, "spec": {"finalizers": []}}, subresource="finalize")
    assert rig.gone("namespaces", "ns", "")


# -- definitions --------------------------------------------------------------------------------------------------


async def test_a_definition_is_established_and_served_when_it_is_answered(rig: Rig) -> None:
    before = rig.registry.discovery_generation
    made = await rig.create("customresourcedefinitions", a_definition(), namespace="")
    conditions = {c["type"]: c["status"] for c in made["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert made["status"]["acceptedNames"]["kind"] == "Widget" and made["status"]["storedVersions"] == ["v1"]
    assert rig.registry.lookup("ex.io", "v1", "widgets") is not None
    assert rig.registry.discovery_generation > before


async def test_a_deleted_definition_takes_its_objects_along(rig: Rig) -> None:
    await rig.create("customresourcedefinitions", a_definition(), namespace="")
    await rig.create("widgets", {**a_widget(), "metadata": {"name": "w", "finalizers": ["x.io/1"]}})
    marked = await rig.delete("customresourcedefinitions", "widgets.ex.io", "")
    assert marked["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    with pytest.raises(Forbidden, match="create not allowed while custom resource definition is terminating"):
        await rig.create("widgets", a_widget("late"))
    await rig.settle()
    assert rig.get("widgets", "w")["metadata"]["deletionTimestamp"]
    await rig.patch("widgets", "w", {"metadata": {"finalizers": None}})
    await rig.settle()
    assert rig.gone("customresourcedefinitions", "widgets.ex.io", "")
    assert rig.registry.lookup("ex.io", "v1", "widgets") is None


async def test_a_name_that_is_taken_is_served_when_it_is_free(rig: Rig) -> None:
    await rig.create("customresourcedefinitions", a_definition(), namespace="")
    second = await rig.create("customresourcedefinitions", a_definition("gadgets", "Widget"), namespace="")
    assert {c["type"]: c["status"] for c in second["status"]["conditions"]}["NamesAccepted"] == "False"
    assert rig.registry.lookup("ex.io", "v1", "gadgets") is None
    await rig.delete("customresourcedefinitions", "widgets.ex.io", "")
    await rig.settle()
    assert rig.registry.lookup("ex.io", "v1", "gadgets") is not None


# -- pods ---------------------------------------------------------------------------------------------------------


async def test_a_scheduled_pod_gets_its_grace_period(rig: Rig) -> None:
    def a_pod(name: str, **spec: object) -> dict[str, object]:
        return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}

    await rig.create("pods", a_pod("free"))
    await rig.delete("pods", "free")
    await rig.create("pods", a_pod("bound", nodeName="n"))
    marked = await rig.delete("pods", "bound")
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
    assert marked["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:30Z"
    assert (await rig.delete("pods", "bound", grace_period_seconds=5))["metadata"]["deletionGracePeriodSeconds"] == 5
    assert (await rig.delete("pods", "bound", grace_period_seconds=60))["metadata"]["deletionGracePeriodSeconds"] == 5
    await rig.delete("pods", "bound", grace_period_seconds=0)
    assert rig.names("pods") == []


async def test_an_eviction_is_charged_to_the_pods_budget(rig: Rig) -> None:
    options = WriteOptions(field_manager="test")

    async def evict() -> None:
        await rig.registry.create(
            rig.info("pods"), "ns", {"metadata": {"name": "p"}}, options, name="p", subresource="eviction"
        )

    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}}
    await rig.create("poddisruptionbudgets", budget)
    pod = {
        "metadata": {"name": "p", "labels": {"app": "x"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"},
    }
    await rig.create("pods", pod)
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    await rig.patch("pods", "p", ready, subresource="status")
    with pytest.raises(TooManyRequests, match="disruption budget"):
        await evict()
    status = {
        "observedGeneration": 1,
        "disruptionsAllowed": 0,
        "currentHealthy": 1,
        "desiredHealthy": 1,
        "expectedPods": 1,
    }
    await rig.patch("poddisruptionbudgets", "b", {"status": status}, subresource="status")
    with pytest.raises(TooManyRequests) as raised:
        await evict()
    assert raised.value.causes[0].message == "The disruption budget b needs 1 healthy pods and has 1 currently"
    await rig.patch("poddisruptionbudgets", "b", {"status": {"disruptionsAllowed": 1}}, subresource="status")
    await evict()
    spent = rig.get("poddisruptionbudgets", "b")["status"]
    assert (spent["disruptionsAllowed"], list(spent["disruptedPods"])) == (0, ["p"])
    assert rig.get("pods", "p")["metadata"]["deletionTimestamp"]
