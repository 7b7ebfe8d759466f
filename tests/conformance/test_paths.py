"""D: discovery, paths, health. T: tables and metadata only. A: who may ask."""

import json

import pytest

from tests.conformance.site import TABLE, V2_DISCOVERY, until


def test_d01_version(api):
    version = api.get("/version").ok().json
    assert version["gitVersion"].startswith("v1.") and version["major"] and version["minor"] and version["platform"]


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_d02_health(api, path):
    reply = api.get(path).ok()
    assert (reply.text, "text/plain" in reply.header("content-type")) == ("ok", True)
    verbose = api.get(f"{path}?verbose").text
    assert "[+]ping ok" in verbose and verbose.rstrip().endswith(f"{path[1:]} check passed")


def test_d03_core_versions(api):
    versions = api.get("/api", Accept="application/json").ok().json
    assert (versions["kind"], versions["versions"], bool(versions["serverAddressByClientCIDRs"])) == (
        "APIVersions",
        ["v1"],
        True,
    )


def test_d04_group_list(api, site):
    groups = {group["name"]: group for group in api.get("/apis", Accept="application/json").ok().json["groups"]}
    assert {"apps", "rbac.authorization.k8s.io", "coordination.k8s.io", site.group} <= set(groups)
    assert groups[site.group]["preferredVersion"] == {"groupVersion": f"{site.group}/v1", "version": "v1"}


def test_d05_a_group_and_no_group(api, site):
    assert api.get(f"/apis/{site.group}").ok().json["kind"] == "APIGroup"
    missing = api.get("/apis/nosuch.example.com").ok(404)
    assert "404 page not found" in missing.text and "text/plain" in missing.header("content-type")


def test_d07_core_resources_and_subresources(api):
    listed = {resource["name"]: resource for resource in api.get("/api/v1").ok().json["resources"]}
    eviction = listed["pods/eviction"]
    assert (eviction["group"], eviction["version"], eviction["kind"]) == ("policy", "v1", "Eviction")
    assert {"pods/binding", "pods/status", "namespaces/finalize", "namespaces/status"} <= set(listed)
    short = [listed[name]["shortNames"] for name in ("pods", "configmaps", "namespaces", "services", "serviceaccounts")]
    assert short == [["po"], ["cm"], ["ns"], ["svc"], ["sa"]]


def test_d08_d09_aggregated_discovery_with_etag(api, site):
    reply = api.get("/apis", Accept=V2_DISCOVERY).ok()
    assert "as=APIGroupDiscoveryList" in reply.header("content-type")
    version = next(item for item in reply.json["items"] if item["metadata"]["name"] == site.group)["versions"][0]
    widget = next(resource for resource in version["resources"] if resource["resource"] == "widgets")
    assert widget["responseKind"] == {"group": site.group, "version": "v1", "kind": "Widget"}
    assert (version["freshness"], widget["scope"]) == ("Current", "Namespaced")
    assert sorted(sub["subresource"] for sub in widget["subresources"]) == ["scale", "status"]

    def unchanged():
        again = api.get(
            "/apis", Accept=V2_DISCOVERY, If_None_Match=api.get("/apis", Accept=V2_DISCOVERY).header("etag")
        )
        return again.status == 304 and again.body == b""

    until(unchanged, 5)


def test_d10_the_first_servable_discovery_is_taken(api):
    kubectl = f"{V2_DISCOVERY},{V2_DISCOVERY.replace('v2', 'v2beta1')},application/json"
    assert "v=v2;" in api.get("/api", Accept=kubectl).header("content-type")
    assert api.get("/api", Accept=f"{V2_DISCOVERY.replace('v2', 'v9')},application/json").json["kind"] == "APIVersions"


def test_d11_openapi_index_and_core_document(api):
    url = api.get("/openapi/v3").ok().json["paths"]["api/v1"]["serverRelativeURL"]
    assert url.startswith("/openapi/v3/api/v1?hash=")
    document = api.get(url).ok()
    assert document.json["openapi"].startswith("3.") and document.header("etag")
    assert "io.k8s.api.core.v1.Pod" in document.json["components"]["schemas"]
    stale = api.get("/openapi/v3/api/v1?hash=stale").ok(301)
    assert stale.header("location") == url


def test_d12_openapi_of_a_custom_resource(api, site):
    entry = until(lambda: api.get("/openapi/v3").json["paths"].get(f"apis/{site.group}/v1"))
    document = api.get(entry["serverRelativeURL"].partition("?")[0]).ok().json  # the hash may be stale by now
    name = ".".join([*reversed(site.group.split(".")), "v1", "Widget"])
    wanted = {"group": site.group, "version": "v1", "kind": "Widget"}
    assert document["components"]["schemas"][name]["x-kubernetes-group-version-kind"] == [wanted]
    patch = document["paths"][f"/apis/{site.group}/v1/namespaces/{{namespace}}/widgets/{{name}}"]["patch"]
    assert patch["x-kubernetes-action"] == "patch"
    assert {"dryRun", "fieldManager", "fieldValidation", "force"} <= {
        parameter["name"] for parameter in patch["parameters"]
    }


def test_d14_an_unknown_builtin_resource(api):
    reply = api.get("/api/v1/nosuch").ok(404, "NotFound")
    assert (reply.message, reply.json["details"]) == ("the server could not find the requested resource", {})


@pytest.mark.parametrize("path", ["/api/v1/pods", "/api/v1/namespaces"], ids=["d15", "d16"])
def test_d15_d16_what_cannot_be_deleted_as_a_collection(api, path):
    assert "the server does not allow this method" in api.delete(path).ok(405, "MethodNotAllowed").message


def test_d17_scopes_of_custom_resources(api, site):
    api.get(f"/apis/{site.group}/v1/widgets").ok()
    api.post(f"/apis/{site.group}/v1/widgets", site.a_widget("x")).ok(404)
    api.get(f"/apis/{site.group}/v1/namespaces/{site.namespace}/plains").ok(404)


def test_d18_unknown_versions_and_resources(api, site):
    api.get(f"/apis/{site.group}/v9/widgets").ok(404)
    api.get(f"/apis/{site.group}/v1/nosuch").ok(404)


def test_t01_t02_a_table_of_custom_resources(api, site):
    site.widget("t01")
    table = api.get(site.widgets, Accept=TABLE, query={"fieldSelector": "metadata.name=t01"}).ok().json
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1") and table["metadata"]["resourceVersion"]
    assert [(c["name"], c["priority"]) for c in table["columnDefinitions"]] == [
        ("Name", 0),
        ("Size", 0),
        ("Made", 0),
        ("Phase", 1),
    ]
    row = table["rows"][0]
    assert (row["cells"][:2], row["cells"][3], row["object"]["kind"]) == (["t01", 2], None, "PartialObjectMetadata")
    whole = api.get(f"{site.widgets}/t01", Accept=TABLE, query={"includeObject": "Object"}).ok().json
    assert whole["rows"][0]["object"]["spec"]["size"] == 2
    assert (
        not api.get(f"{site.widgets}/t01", Accept=TABLE, query={"includeObject": "None"}).json["rows"][0].get("object")
    )
    api.get(site.widgets, Accept=TABLE, query={"includeObject": "Bogus"}).ok(400)


def test_t03_t04_default_columns(api, site):
    site.map("t03")
    for path, columns in (
        (site.maps, ["Name", "Data", "Age"]),
        (f"{site.maps}/t03", ["Name", "Data", "Age"]),
        (site.plains, ["Name", "Age"]),
    ):
        assert [c["name"] for c in api.get(path, Accept=TABLE).ok().json["columnDefinitions"]] == columns


def test_t06_metadata_only(api, site):
    site.widget("t06")
    one, many = (f"application/json;as=PartialObjectMetadata{suffix};v=v1;g=meta.k8s.io" for suffix in ("", "List"))
    shown = api.get(f"{site.widgets}/t06", Accept=one).ok().json
    assert (shown["kind"], set(shown)) == ("PartialObjectMetadata", {"kind", "apiVersion", "metadata"})
    assert api.get(site.widgets, Accept=many).ok().json["kind"] == "PartialObjectMetadataList"
    api.get(site.maps, Accept=one).ok(406)


def test_t07_t09_other_forms(api, site):
    api.get(site.maps, Accept="application/json;as=Nonsense").ok(406)
    assert (
        api.get(site.maps, Accept="application/json;as=Nonsense, application/json").ok().json["kind"] == "ConfigMapList"
    )
    site.map("t09")
    assert api.get(f"{site.maps}/t09", Accept="application/yaml").ok().text.startswith("apiVersion: v1")


def test_t05_a_table_watch(api, site):
    made = site.widget("t05")
    api.merge(f"{site.widgets}/t05", {"spec": {"size": 3}}).ok()
    query = {"resourceVersion": str(int(made.version) - 1), "fieldSelector": "metadata.name=t05"}
    connection, response = api._send(
        "GET", site.widgets, None, "", {"watch": "1", "timeoutSeconds": "2", **query}, {"Accept": TABLE}
    )
    first, second = (json.loads(response.readline())["object"] for _ in range(2))
    connection.close()
    assert (first["kind"], len(first["rows"]), bool(first["columnDefinitions"]), bool(second["columnDefinitions"])) == (
        "Table",
        1,
        True,
        False,
    )


def test_a03_a_user_without_rights(api, site):
    somebody = api.as_("somebody", "some-group")
    listed = somebody.get(site.maps).ok(403, "Forbidden")
    assert listed.message == (
        f'configmaps is forbidden: User "somebody" cannot list resource "configmaps" in API group "" in the namespace "{site.namespace}"'
    )
    assert listed.json["details"] == {"kind": "configmaps"}
    assert (
        somebody.get(f"{site.pods}/x/status")
        .ok(403)
        .message.startswith('pods "x" is forbidden: User "somebody" cannot get resource "pods/status"')
    )


def test_a04_what_every_user_may(api):
    somebody = api.as_("somebody")
    for path in ("/api", "/apis", "/version", "/openapi/v3"):
        somebody.get(path).ok()
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
    }
    assert (
        somebody.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body).ok(201).json["status"]["allowed"]
        is False
    )
