"""X: delete, finalizers, garbage collection. N: namespaces."""

import pytest

from tests.conformance.site import until


def owner_of(owner, **changed):
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": owner.meta["name"], "uid": owner.meta["uid"], **changed}


@pytest.fixture
def controllers(site):
    """For cases of garbage collection."""
    if not site.controllers:
        pytest.skip("no controllers run beside a bare kube-apiserver")


def test_x01_x03_x15_gone_at_once(api, site):
    made = site.map("x01")
    reply = api.delete(f"{site.maps}/x01").ok().json
    assert (reply["kind"], reply["status"]) == ("Status", "Success")
    assert reply["details"] == {"name": "x01", "kind": "configmaps", "uid": made.meta["uid"]}
    api.get(f"{site.maps}/x01").ok(404)
    api.delete(f"{site.maps}/x01").ok(404, "NotFound")
    again = site.map("x01")
    assert again.meta["uid"] != made.meta["uid"] and int(again.version) > int(made.version)


def test_x02_kinds_that_answer_the_object(api, site):
    accounts = f"{site.core}/serviceaccounts"
    api.post(accounts, {"metadata": {"name": "x02"}}).ok(201)
    assert api.delete(f"{accounts}/x02").ok().json["kind"] == "ServiceAccount"
    api.post(site.pods, site.a_pod("x02")).ok(201)
    assert api.delete(f"{site.pods}/x02").ok().json["kind"] == "Pod"


def test_x04_x05_x06_finalizers(api, site):
    path = f"{site.widgets}/x04"
    site.widget("x04", finalizers=["x.io/f"])
    meta = api.delete(path).ok().meta
    assert meta["deletionTimestamp"] and (meta["deletionGracePeriodSeconds"], meta["generation"]) == (0, 2)
    version = api.get(path).ok().version
    api.delete(path).ok()
    assert api.get(path).version == version
    exists = api.post(site.widgets, site.a_widget("x04")).ok(409, "AlreadyExists").message
    assert exists == f'object is being deleted: widgets.{site.group} "x04" already exists'
    added = api.merge(path, {"metadata": {"finalizers": ["x.io/f", "x.io/g"]}}).ok(422, "Invalid").message
    assert "no new finalizers can be added if the object is being deleted" in added and "x.io/g" in added
    api.merge(path, {"metadata": {"finalizers": None}}).ok()
    api.get(path).ok(404)
    _, events = api.watch(site.widgets, 2, 1, resourceVersion=version, fieldSelector="metadata.name=x04")
    assert [event["type"] for event in events] == ["DELETED"]


@pytest.mark.parametrize("policy", ["Foreground", "Orphan"])
def test_x08_propagation_policies(api, site, policy):
    path = f"{site.maps}/x08"
    site.map("x08", finalizers=["x.io/hold"])
    finalizers = (
        api.delete(path, {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy})
        .ok()
        .meta["finalizers"]
    )
    assert {"Foreground": "foregroundDeletion", "Orphan": "orphan"}[policy] in finalizers or site.controllers
    api.delete(path, {"propagationPolicy": "Background"}).ok()
    api.merge(path, {"metadata": {"finalizers": None}})
    until(lambda: api.get(path).status == 404)


def test_x09_preconditions(api, site):
    site.map("x09")
    api.delete(f"{site.maps}/x09", {"preconditions": {"uid": "other"}}).ok(409, "Conflict")
    api.delete(f"{site.maps}/x09", {"preconditions": {"resourceVersion": "1"}}).ok(409, "Conflict")
    api.get(f"{site.maps}/x09").ok()


@pytest.mark.parametrize(
    "query", [{"propagationPolicy": "Bogus"}, {"propagationPolicy": "Orphan", "orphanDependents": "true"}]
)
def test_x07_bad_options(api, site, query):
    api.post(site.maps, {"metadata": {"name": "x07"}})
    api.delete(f"{site.maps}/x07", query=query).ok(422, "Invalid")


def test_x10_dry_run(api, site):
    site.map("x10")
    api.delete(f"{site.maps}/x10", query={"dryRun": "All"}).ok()
    api.get(f"{site.maps}/x10").ok()


def test_x11_collections(api, site):
    for name in ("x11a", "x11b"):
        site.map(name, labels={"x11": "y"})
    gone = api.delete(site.maps, query={"labelSelector": "x11=y"}).ok().json
    assert gone["kind"] == "ConfigMapList" and len(gone["items"]) == 2
    assert api.get(site.maps, query={"labelSelector": "x11=y"}).json["items"] == []


def test_x12_x13_pods_have_grace(api, site):
    path = f"{site.pods}/x12"
    api.post(site.pods, site.a_pod("x12", "n1")).ok(201)
    assert api.delete(path).ok().meta["deletionGracePeriodSeconds"] == 30
    api.get(path).ok()
    api.delete(path, query={"gracePeriodSeconds": "0"}).ok()
    api.get(path).ok(404)
    api.post(site.pods, site.a_pod("x13")).ok(201)
    api.delete(f"{site.pods}/x13").ok()
    api.get(f"{site.pods}/x13").ok(404)


def test_x20_dependents_follow_their_owner(api, site, controllers):
    owner = site.map("x20")
    site.map("x20d", ownerReferences=[owner_of(owner)])
    api.delete(f"{site.maps}/x20", {"propagationPolicy": "Background"}).ok()
    api.get(f"{site.maps}/x20").ok(404)
    until(lambda: api.get(f"{site.maps}/x20d").status == 404)


def test_x22_orphans_stay(api, site, controllers):
    owner = site.map("x22")
    site.map("x22d", ownerReferences=[owner_of(owner)])
    api.delete(f"{site.maps}/x22", {"propagationPolicy": "Orphan"}).ok()
    until(lambda: api.get(f"{site.maps}/x22").status == 404)
    assert "ownerReferences" not in api.get(f"{site.maps}/x22d").ok().meta


def test_x23_x24_owners_that_never_were(api, site, controllers):
    owner = site.map("x23")
    gone = owner_of(owner, name="gone", uid="no-such-uid")
    site.map("x23d", ownerReferences=[gone])
    site.map("x23e", ownerReferences=[owner_of(owner), gone])
    site.map("x24d", ownerReferences=[owner_of(owner, uid="wrong")])
    until(lambda: api.get(f"{site.maps}/x23d").status == api.get(f"{site.maps}/x24d").status == 404)
    until(lambda: len(api.get(f"{site.maps}/x23e").ok().meta["ownerReferences"]) == 1)
    api.get(f"{site.maps}/x23").ok()


def test_n01_what_a_namespace_is_made_of(api, site):
    namespace = api.get(f"/api/v1/namespaces/{site.namespace}").ok().json
    assert namespace["metadata"]["labels"]["kubernetes.io/metadata.name"] == site.namespace
    assert (namespace["spec"]["finalizers"], namespace["status"]["phase"]) == (["kubernetes"], "Active")


def test_n05_a_namespace_goes_when_it_is_empty(api, site, controllers):
    path = f"/api/v1/namespaces/n05-{site.suffix}"
    api.post("/api/v1/namespaces", {"metadata": {"name": f"n05-{site.suffix}"}}).ok(201)
    api.post(f"{path}/configmaps", {"metadata": {"name": "free"}}).ok(201)
    api.post(f"{path}/configmaps", {"metadata": {"name": "held", "finalizers": ["x.io/h"]}}).ok(201)
    api.delete(path).ok()

    def reasons() -> dict[str, str]:
        return {c["type"]: c["reason"] for c in api.get(path).json["status"].get("conditions", ())}

    until(lambda: reasons().get("NamespaceFinalizersRemaining") == "SomeFinalizersRemain")
    assert reasons()["NamespaceContentRemaining"] == "SomeResourcesRemain"
    refused = api.post(f"{path}/configmaps", {"metadata": {"name": "late"}}).ok(403, "Forbidden").message
    assert "because it is being terminated" in refused
    api.merge(f"{path}/configmaps/held", {"metadata": {"finalizers": None}}).ok()
    until(lambda: api.get(path).status == 404)
