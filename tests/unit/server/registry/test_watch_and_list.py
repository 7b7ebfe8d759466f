"""Lists, pages, watches, bookmarks, selectors."""

import base64
import re
from typing import Any

import pytest

from capi.kube.errors import ApiError, BadRequest, Expired, Invalid, NotFound, Timeout
from capi.kube.types import Object
from capi.server.registry.interface import ListOptions
from tests.unit.server.registry.rig import Lines, Rig, a_config_map, a_definition, a_widget


async def five(rig: Rig) -> None:
    for name in "abcde":
        await rig.create("configmaps", a_config_map(name, labels={"x": name}))


async def test_pages_show_the_first_pages_state(rig: Rig) -> None:
    await five(rig)
    info = rig.info("configmaps")
    page = rig.registry.list(info, "ns", ListOptions(limit=2))
    assert ([o["metadata"]["name"] for o in page.items], page.remaining) == (["a", "b"], 3)
    await rig.create("configmaps", a_config_map("bb"))
    await rig.delete("configmaps", "d")
    await rig.patch("configmaps", "c", {"data": {"new": "1"}})
    seen = []
    while page.continue_:
        revision = page.revision
        page = rig.registry.list(info, "ns", ListOptions(limit=2, continue_=page.continue_))
        assert page.revision == revision
        seen += [(o["metadata"]["name"], o["data"]) for o in page.items]
    assert seen == [("c", {"k": "1"}), ("d", {"k": "1"}), ("e", {"k": "1"})]


async def test_a_selected_page_does_not_count_the_rest(rig: Rig) -> None:
    await five(rig)
    page = rig.registry.list(rig.info("configmaps"), "ns", ListOptions(limit=1, label_selector="x in (b,c)"))
    assert ([o["metadata"]["name"] for o in page.items], page.remaining) == (["b"], None)


async def test_an_expired_page_offers_an_inconsistent_way_on(rig: Rig) -> None:
    await five(rig)
    info = rig.info("configmaps")
    page = rig.registry.list(info, "ns", ListOptions(limit=2))
    await rig.delete("configmaps", "c")
    rig.registry._store.compact(rig.registry.revision)  # type: ignore[attr-defined]  # both stores have it
    with pytest.raises(Expired) as raised:
        rig.registry.list(info, "ns", ListOptions(limit=2, continue_=page.continue_))
    more = rig.registry.list(info, "ns", ListOptions(continue_=raised.value.list_continue))
    assert [o["metadata"]["name"] for o in more.items] == ["d", "e"]


async def test_an_exact_list_shows_the_past(rig: Rig) -> None:
    await five(rig)
    then = str(rig.registry.revision)
    await rig.delete("configmaps", "a")
    assert rig.names("configmaps", resource_version=then, resource_version_match="Exact") == list("abcde")
    assert rig.names("configmaps", resource_version=then, resource_version_match="NotOlderThan") == list("bcde")
    assert rig.names("configmaps", resource_version="0") == list("bcde")


@pytest.mark.parametrize(
    "options, error, text",
    [
        pytest.param({"continue_": "garbage"}, BadRequest, "invalid continue token: continue key is not valid", id="L05 garbage"),
        pytest.param({"continue_": base64.urlsafe_b64encode(b"{}").decode()}, BadRequest, "continue key is not valid", id="L05 empty"),
        pytest.param({"continue_": "x", "resource_version": "5"}, BadRequest, "not allowed when using continue", id="L05 revision"),
        pytest.param({"resource_version_match": "Exact"}, Invalid, "forbidden unless resourceVersion is provided", id="L07 match alone"),
        pytest.param({"resource_version": "0", "resource_version_match": "Exact"}, Invalid, "forbidden for resourceVersion", id="L07 exact 0"),
        pytest.param({"resource_version": "1", "resource_version_match": "Bogus"}, Invalid, "Unsupported value", id="L07 unknown"),
        pytest.param({"send_initial_events": True}, Invalid, "sendInitialEvents is forbidden for list", id="W06 list"),
        pytest.param({"resource_version": "x"}, BadRequest, "invalid syntax", id="no number"),
        pytest.param({"resource_version": "99999"}, Timeout, "Too large resource version: 99999, current:", id="future"),
        pytest.param({"label_selector": "a=="}, None, "", id="empty value"),
        pytest.param({"label_selector": "a in"}, BadRequest, "unable to parse requirement", id="L10 unparsable"),
        pytest.param({"field_selector": "spec.foo=1"}, BadRequest, '"spec.foo" is not a known field selector: only "metadata.name", "metadata.namespace"', id="unknown field"),
    ],
)  # fmt: skip
async def test_bad_list_options_are_refused(
    rig: Rig, options: dict[str, Any], error: type[ApiError] | None, text: str
) -> None:
    if error is None:
        assert rig.names("configmaps", **options) == []
        return
    with pytest.raises(error, match=re.escape(text)):
        rig.names("configmaps", **options)


async def test_field_selectors_find_pods_by_node_and_nodes_by_schedulability(rig: Rig) -> None:
    for name, node in (("p", "n1"), ("q", "n2")):
        await rig.create(
            "pods",
            {"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}},
        )
    assert rig.names("pods", field_selector="spec.nodeName=n1,status.phase=Pending") == ["p"]
    assert rig.names("pods", field_selector="spec.nodeName!=n1") == ["q"]
    assert rig.names("pods", field_selector="metadata.name=q") == ["q"]
    with pytest.raises(BadRequest, match=r"field label not supported: spec\.foo"):
        rig.names("pods", field_selector="spec.foo=1")


async def test_list_items_of_core_kinds_carry_no_type_on_the_wire(rig: Rig) -> None:
    await rig.create("configmaps", a_config_map())
    listing = rig.registry.list(rig.info("configmaps"), "", ListOptions())
    assert listing.items[0]["kind"] == "ConfigMap" and listing.encoded[0].startswith(b'{"metadata"')
    await rig.create("customresourcedefinitions", a_definition(), namespace="")
    await rig.create("widgets", a_widget())
    assert b'"kind":"Widget"' in rig.registry.list(rig.info("widgets"), "", ListOptions()).encoded[0]


async def test_get_says_what_is_missing_and_waits_for_no_future(rig: Rig) -> None:
    with pytest.raises(NotFound, match='configmaps "a" not found'):
        rig.get("configmaps", "a")
    await rig.create("configmaps", a_config_map())
    with pytest.raises(Timeout):
        rig.get("configmaps", "a", resource_version="9999")
    assert rig.get("configmaps", "a", resource_version="0")


# -- watches ------------------------------------------------------------------------------------------------------


async def test_a_watch_starts_with_what_exists_and_goes_on(rig: Rig) -> None:
    await rig.create("configmaps", a_config_map())
    seen, _ = rig.watch("configmaps")
    await rig.patch("configmaps", "a", {"data": {"x": "1"}})
    await rig.create("configmaps", a_config_map("b"))
    last = await rig.delete("configmaps", "a")
    assert last["status"] == "Success"
    assert seen.brief == [("ADDED", "a"), ("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "a")]
    assert seen.events[-1]["object"]["metadata"]["resourceVersion"] == str(rig.registry.revision)


async def test_a_watch_from_a_revision_shows_what_came_after(rig: Rig) -> None:
    made = await rig.create("configmaps", a_config_map())
    await rig.create("configmaps", a_config_map("b"))
    seen, _ = rig.watch("configmaps", resource_version=made["metadata"]["resourceVersion"])
    await rig.create("configmaps", a_config_map("c"))
    assert seen.brief == [("ADDED", "b"), ("ADDED", "c")]


async def test_a_watch_from_a_forgotten_revision_is_told_to_list_again(rig: Rig) -> None:
    await rig.create("configmaps", a_config_map())
    rig.registry._store.compact(rig.registry.revision)  # type: ignore[attr-defined]
    seen, _ = rig.watch("configmaps", resource_version="1")
    assert seen.ended and len(seen.events) == 1
    status = seen.events[0]["object"]
    assert (seen.events[0]["type"], status["code"], status["reason"]) == ("ERROR", 410, "Expired")
    assert status["message"] == f"too old resource version: 1 ({rig.registry.revision})"


async def test_a_watch_list_ends_its_beginning_with_a_bookmark(rig: Rig) -> None:
    await rig.create("configmaps", a_config_map())
    seen, _ = rig.watch(
        "configmaps", send_initial_events=True, resource_version_match="NotOlderThan", allow_bookmarks=True
    )
    assert [e["type"] for e in seen.events] == ["ADDED", "BOOKMARK"]
    bookmark = seen.events[1]["object"]
    assert bookmark == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {
            "resourceVersion": str(rig.registry.revision),
            "annotations": {"k8s.io/initial-events-end": "true"},
        },
    }
    quiet, _ = rig.watch("configmaps", send_initial_events=False, resource_version_match="NotOlderThan")
    assert quiet.events == []
    future, _ = rig.watch(
        "configmaps", send_initial_events=True, resource_version_match="NotOlderThan", resource_version="9999"
    )
    assert future.events[0]["object"]["code"] == 504 and future.ended


@pytest.mark.parametrize("options", [{"send_initial_events": True}, {"resource_version_match": "NotOlderThan"}])
async def test_half_a_watch_list_is_refused(rig: Rig, options: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        rig.watch("configmaps", **options)


async def test_selected_watches_see_objects_come_and_go(rig: Rig) -> None:
    await rig.create("configmaps", a_config_map(labels={"x": "no"}))
    seen, _ = rig.watch("configmaps", label_selector="x=yes")
    again = str(rig.registry.revision)
    for value in ("yes", "yes", "no"):
        await rig.patch(
            "configmaps", "a", {"metadata": {"labels": {"x": value}}, "data": {"n": str(rig.registry.revision)}}
        )
    assert seen.brief == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    meta = seen.events[-1]["object"]["metadata"]
    assert (meta["labels"], meta["resourceVersion"]) == ({"x": "yes"}, str(rig.registry.revision))
    replayed, _ = rig.watch("configmaps", label_selector="x=yes", resource_version=again)
    assert replayed.events == seen.events


async def test_watches_keep_to_their_namespace_and_name(rig: Rig) -> None:
    everywhere, _ = rig.watch("configmaps", "")
    here, _ = rig.watch("configmaps", "ns")
    one, _ = rig.watch("configmaps", "ns", field_selector="metadata.name=a")
    await rig.create("configmaps", a_config_map())
    await rig.create("configmaps", a_config_map("b"))
    await rig.create("configmaps", a_config_map(), namespace="default")
    assert len(everywhere.events) == 3
    assert here.brief == [("ADDED", "a"), ("ADDED", "b")] and one.brief == [("ADDED", "a")]


async def test_a_slow_watcher_pauses_and_catches_up_in_order(rig: Rig) -> None:
    slow, watch = rig.watch("configmaps", sink=Lines(room=100))
    fast, _ = rig.watch("configmaps")
    await five(rig)
    assert len(slow.events) == 1 and len(fast.events) == 5
    while len(slow.events) < 5:
        slow.room = 100
        watch.resume()
    assert slow.data == fast.data
    slow.room = 1 << 20
    watch.resume()
    await rig.create("configmaps", a_config_map("z"))
    assert slow.data == fast.data


async def test_a_watcher_paused_within_its_initial_events_gets_the_rest_and_what_came_meanwhile(rig: Rig) -> None:
    await rig.create("configmaps", {"metadata": {"name": "a"}, "data": {"x": "x" * 100_000}})
    await rig.create("configmaps", {"metadata": {"name": "b"}, "data": {"x": "old"}})
    options = {"send_initial_events": True, "resource_version_match": "NotOlderThan", "allow_bookmarks": True}
    slow, watch = rig.watch("configmaps", sink=Lines(room=1), **options)
    snapshot = str(rig.registry.revision)
    await rig.patch("configmaps", "b", {"data": {"x": "new"}})
    await rig.delete("configmaps", "a")
    assert slow.brief == [("ADDED", "a")]
    slow.room = 1 << 20
    watch.resume()
    wanted = [("ADDED", "a"), ("ADDED", "b"), ("BOOKMARK", ""), ("MODIFIED", "b"), ("DELETED", "a")]
    assert slow.brief == wanted
    assert slow.events[1]["object"]["data"]["x"] == "old"
    assert slow.events[2]["object"]["metadata"]["resourceVersion"] == snapshot


async def test_a_watcher_that_reads_too_late_is_told_to_list_again(rig: Rig) -> None:
    slow, watch = rig.watch("configmaps", sink=Lines(room=1))
    await five(rig)
    rig.registry._store.compact(rig.registry.revision)
    slow.room = 1 << 20
    watch.resume()
    assert [event["type"] for event in slow.events] == ["ADDED", "ERROR"]
    assert slow.events[-1]["object"]["code"] == 410
    assert slow.ended and rig.registry.watches() == 0


class _Broken:
    def encode(self, obj: Object, encoded: bytes) -> bytes:
        raise ValueError("cannot be shown")


async def test_an_object_that_cannot_be_shown_ends_its_watch_and_nothing_else(rig: Rig) -> None:
    broken, info = Lines(), rig.info("configmaps")
    rig.registry.watch(info, "ns", ListOptions(), _Broken()).start(broken)
    healthy, _ = rig.watch("configmaps")
    await rig.create("configmaps", a_config_map())
    late = Lines()
    rig.registry.watch(info, "ns", ListOptions(), _Broken()).start(late)
    for seen in (broken, late):
        assert [event["type"] for event in seen.events] == ["ERROR"] and seen.ended
    assert healthy.brief == [("ADDED", "a")] and rig.registry.watches() == 1


async def test_a_stopped_watch_is_forgotten(rig: Rig) -> None:
    seen, watch = rig.watch("configmaps")
    watch.stop()
    watch.stop()
    await rig.create("configmaps", a_config_map())
    assert seen.events == [] and rig.registry.watches() == 0


async def test_a_changed_definition_ends_the_watches_of_its_kind(rig: Rig) -> None:
    await rig.create("customresourcedefinitions", a_definition(), namespace="")
    seen, _ = rig.watch("widgets")
    other, _ = rig.watch("configmaps")
    columns = {
        "spec": {
            "versions": [
                {
                    **a_definition()["spec"]["versions"][0],
                    "additionalPrinterColumns": [{"name": "S", "type": "integer", "jsonPath": ".spec.size"}],
                }
            ]
        }
    }
    await rig.patch("customresourcedefinitions", "widgets.ex.io", columns)
    assert seen.ended and not other.ended
    assert rig.info("widgets").columns[0].name == "S"


async def test_closing_the_registry_ends_watches(rig: Rig) -> None:
    seen, _ = rig.watch("configmaps")
    await rig.registry.close()
    assert seen.ended
