"""L: get and list. W: watch."""

import time

import pytest

from tests.conformance.site import names, until


def test_l01_items_and_their_kinds(api, site):
    site.map("l01")
    site.widget("l01")
    builtin, custom = api.get(site.maps).ok().json, api.get(site.widgets).ok().json
    assert (builtin["kind"], builtin["apiVersion"], "kind" in builtin["items"][0]) == ("ConfigMapList", "v1", False)
    assert (custom["kind"], custom["items"][0]["kind"]) == ("WidgetList", "Widget")
    assert builtin["metadata"]["resourceVersion"]


def test_l02_a_namespace_that_does_not_exist(api):
    assert api.get("/api/v1/namespaces/nosuch/configmaps").ok().json["items"] == []


def test_l03_l04_pages(api, site):
    path = f"/api/v1/namespaces/{site.other}/secrets"
    for number in range(5):
        api.post(path, {"metadata": {"name": f"l{number}", "labels": {"l03": "y"}}}).ok(201)
    first = page = api.get(path, query={"limit": "2"}).ok()
    assert (len(page.json["items"]), page.meta["remainingItemCount"]) == (2, 3)
    found = names(page)
    api.post(path, {"metadata": {"name": "l9"}}).ok(201)
    while more := page.meta.get("continue"):
        page = api.get(path, query={"limit": "2", "continue": more}).ok()
        assert page.version == first.version
        found += names(page)
    assert found == ["l0", "l1", "l2", "l3", "l4"]
    selected = api.get(path, query={"limit": "2", "labelSelector": "l03=y"}).ok().meta
    assert selected["continue"] and "remainingItemCount" not in selected


def test_l05_bad_page_options(api, site):
    assert "continue key is not valid" in api.get(site.maps, query={"continue": "zz"}).ok(400).message
    site.map("l05a")
    site.map("l05b")
    token = api.get(site.maps, query={"limit": "1"}).meta["continue"]
    reply = api.get(site.maps, query={"limit": "1", "continue": token, "resourceVersion": "5"}).ok(400)
    assert "specifying resource version is not allowed when using continue" in reply.message
    api.get(site.maps, query={"limit": "x"}).ok(400)


def test_l06_a_past_state(api, site):
    api.get(site.maps, query={"resourceVersion": "0"}).ok()
    made = site.map("l06")
    site.map("l06b")
    past = api.get(site.maps, query={"resourceVersion": made.version, "resourceVersionMatch": "Exact"}).ok()
    assert past.version == made.version and "l06" in names(past) and "l06b" not in names(past)


@pytest.mark.parametrize(
    "query",
    [
        {"resourceVersionMatch": "Exact"},
        {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
        {"resourceVersionMatch": "Bogus", "resourceVersion": "1"},
        {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"},
    ],
)
def test_l07_revision_options_that_make_no_sense(api, site, query):
    api.get(site.maps, query=query).ok(422, "Invalid")


@pytest.mark.parametrize(
    ("selector", "wanted"),
    [
        ("l10=b", ["l10a"]),
        ("l10==b", ["l10a"]),
        ("l10 in (b,c)", ["l10a", "l10b"]),
        ("l10,l10!=b", ["l10b"]),
        ("l10,l10 notin (b)", ["l10b"]),
        ("l10,!z", ["l10b"]),
        ("a in (", None),
    ],
)
def test_l10_label_selectors(api, site, selector, wanted):
    for name, labels in (("l10a", {"l10": "b", "z": "1"}), ("l10b", {"l10": "c"})):
        api.post(site.maps, {"metadata": {"name": name, "labels": labels}})
    reply = api.get(site.maps, query={"labelSelector": selector})
    assert reply.ok(400, "BadRequest") if wanted is None else names(reply.ok()) == wanted


def test_l12_field_selectors_of_builtin_kinds(api, site):
    api.post(site.pods, site.a_pod("l12a", "n1")).ok(201)
    api.post(site.pods, site.a_pod("l12b")).ok(201)

    def found(selector: str) -> list[str]:
        return names(api.get(site.pods, query={"fieldSelector": selector}).ok())

    assert found("spec.nodeName=n1,status.phase=Pending") == ["l12a"]
    assert "l12b" in found("spec.nodeName!=n1") and "l12b" in found("spec.nodeName=")
    secrets = f"{site.core}/secrets"
    api.post(secrets, {"metadata": {"name": "l12"}, "type": "x.io/t"}).ok(201)
    assert names(api.get(secrets, query={"fieldSelector": "type=x.io/t"}).ok()) == ["l12"]


def test_l13_selectable_fields_of_custom_resources(api, site):
    site.widget("l13", {"mode": "b", "size": 3})
    assert names(api.get(site.widgets, query={"fieldSelector": "spec.mode=b,spec.size=3"}).ok()) == ["l13"]
    api.get(site.widgets, query={"fieldSelector": "spec.plain=x"}).ok(400)


def test_l14_order(api, site):
    site.map("l14")
    api.post(f"/api/v1/namespaces/{site.other}/configmaps", {"metadata": {"name": "l14"}}).ok(201)
    keys = [
        (item["metadata"]["namespace"], item["metadata"]["name"])
        for item in api.get("/api/v1/configmaps").ok().json["items"]
    ]
    assert keys == sorted(keys, key="/".join) and {site.namespace, site.other} <= {namespace for namespace, _ in keys}


def test_l15_compression(api, site):
    site.map("l15", {"a": "x" * 200_000})
    site.map("l15b")
    assert api.get(site.maps, Accept_Encoding="gzip").header("content-encoding") == "gzip"
    assert api.get(f"{site.maps}/l15b", Accept_Encoding="gzip").header("content-encoding") is None
    api.delete(f"{site.maps}/l15")


def kinds(events):
    return [event["type"] for event in events]


@pytest.mark.parametrize("query", [{}, {"resourceVersion": "0"}], ids=["unset", "zero"])
def test_w02_what_exists_comes_first(api, site, query):
    api.post(site.maps, {"metadata": {"name": "w02", "labels": {"w02": "y"}}})
    _, events = until(lambda: (watched := api.watch(site.maps, 1, 1, labelSelector="w02=y", **query))[1] and watched)
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [("ADDED", "w02")]


def test_w03_objects_come_into_a_selection_and_leave_it(api, site):
    made, path = site.map("w03"), f"{site.maps}/w03"
    api.merge(path, {"metadata": {"labels": {"w03": "y"}}}).ok()
    api.merge(path, {"data": {"b": "1"}}).ok()
    left = api.merge(path, {"metadata": {"labels": None}}).ok()
    _, events = api.watch(site.maps, 3, 3, resourceVersion=made.version, labelSelector="w03=y")
    assert kinds(events) == ["ADDED", "MODIFIED", "DELETED"]
    last = events[2]["object"]["metadata"]
    assert (last["labels"], last["resourceVersion"]) == ({"w03": "y"}, left.version)


def test_w04_watches_of_one_name_and_of_a_field(api, site):
    made = site.map("w04")
    site.map("w04b")
    api.merge(f"{site.maps}/w04", {"data": {"z": "1"}}).ok()
    _, events = api.watch(site.maps, 1, resourceVersion=made.version, fieldSelector="metadata.name=w04")
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [("MODIFIED", "w04")]
    pod = api.post(site.pods, site.a_pod("w04")).ok(201)
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "w04"},
        "target": {"kind": "Node", "name": "nw04"},
    }
    api.post(f"{site.pods}/w04/binding", binding).ok(201)
    assert kinds(api.watch(site.pods, 2, 1, resourceVersion=pod.version, fieldSelector="spec.nodeName=nw04")[1]) == [
        "ADDED"
    ]


def test_w05_initial_events_end_with_a_bookmark(api, site):
    site.widget("w05")
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    _, events = api.watch(site.widgets, 2, 2, fieldSelector="metadata.name=w05", **query)
    assert kinds(events) == ["ADDED", "BOOKMARK"]
    mark = events[1]["object"]
    assert (mark["kind"], mark["metadata"]["annotations"]["k8s.io/initial-events-end"]) == ("Widget", "true")
    assert int(mark["metadata"]["resourceVersion"]) >= int(events[0]["object"]["metadata"]["resourceVersion"])


@pytest.mark.parametrize(
    "query", [{"sendInitialEvents": "true"}, {"resourceVersionMatch": "NotOlderThan", "resourceVersion": "1"}]
)
def test_w06_watch_options_that_make_no_sense(api, site, query):
    api.watch(site.maps, 1, **query)[0].ok(422, "Invalid")


def test_w07_no_initial_events(api, site):
    query = {"sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    assert "ADDED" not in kinds(api.watch(site.maps, 1, **query)[1])


def test_w08_a_revision_too_old(api, site):
    reply, events = api.watch(f"{site.core}/secrets", 2, 1, resourceVersion="1")
    reply.ok()
    if events and events[0]["type"] == "ERROR":
        status = events[0]["object"]
        assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
        assert "too old resource version: 1 (" in status["message"]


def test_w09_a_watch_ends_in_time(api, site):
    start = time.monotonic()
    assert api.watch(site.maps, 1, resourceVersion=api.get(site.maps).version)[1] == []
    assert 0.5 < time.monotonic() - start < 4


def test_w11_all_watchers_see_the_same(api, site):
    since = api.get("/api/v1/configmaps").version
    site.map("w11")
    api.post(f"/api/v1/namespaces/{site.other}/configmaps", {"metadata": {"name": "w11"}}).ok(201)

    def seen() -> list[tuple[str, str]]:
        events = api.watch("/api/v1/configmaps", 2, 2, resourceVersion=since)[1]
        return [
            (event["object"]["metadata"]["namespace"], event["object"]["metadata"]["resourceVersion"])
            for event in events
        ]

    first = seen()
    assert first == seen() and [namespace for namespace, _ in first] == [site.namespace, site.other]


def test_w13_the_old_watch_prefix(api, site):
    site.map("w13")
    reply, events = api.watch(f"/api/v1/watch/namespaces/{site.namespace}/configmaps", 1, 1)
    assert (reply.ok().status, kinds(events)) == (200, ["ADDED"])
