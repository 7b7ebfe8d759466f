"""What happens between a list and a watch is never lost."""


def test_a_watch_from_a_lists_revision_yields_every_later_change_once_and_in_order(api, site):
    maps = site.maps
    first = site.map("wl-a")
    site.map("wl-b")
    listed = api.get(maps).ok()
    start = listed.json["metadata"]["resourceVersion"]
    assert int(start) >= int(first.version)
    site.map("wl-c")
    api.merge(f"{maps}/wl-a", {"data": {"k": "2"}}).ok()
    api.delete(f"{maps}/wl-b").ok()
    _, events = api.watch(maps, 3, 5, resourceVersion=start)
    assert [(e["type"], e["object"]["metadata"]["name"]) for e in events] == [
        ("ADDED", "wl-c"), ("MODIFIED", "wl-a"), ("DELETED", "wl-b"),
    ]  # fmt: skip
    revisions = [int(e["object"]["metadata"]["resourceVersion"]) for e in events]
    assert revisions == sorted(set(revisions)) and revisions[0] > int(start)


def test_an_empty_list_has_a_revision_to_watch_from(api, site):
    empty = api.get(site.maps, query={"labelSelector": "nobody=has-this"}).ok()
    start = empty.json["metadata"]["resourceVersion"]
    assert empty.json["items"] == [] and int(start) > 0
    site.map("wl-d")
    _, events = api.watch(site.maps, 1, 5, resourceVersion=start, fieldSelector="metadata.name=wl-d")
    assert [e["type"] for e in events] == ["ADDED"]
