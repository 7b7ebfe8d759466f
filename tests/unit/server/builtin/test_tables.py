"""How built-in kinds print."""

from datetime import UTC, datetime

import pytest

from capi.server.registry.builtin import ages, table

NOW = datetime(2026, 1, 1, 0, 5, 3, tzinfo=UTC)
BORN = {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"}
INFOS = {(rules.info.type.group, rules.info.type.kind): rules.info for rules in table.kinds()}


def row(kind, obj, group=""):
    info = INFOS[group, kind]
    return dict(zip((column.name for column in info.columns), info.cells({"metadata": BORN, **obj}, NOW), strict=True))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"), (-1, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (303, "5m3s"), (600, "10m"), (10799, "179m"),
        (10800, "3h"), (11100, "3h5m"), (28800, "8h"), (172799, "47h"), (172800, "2d"), (180000, "2d2h"), (691200, "8d"),
        (63072000, "2y"), (63158400, "2y1d"), (252288000, "8y"),
    ],
)  # fmt: skip
def test_ages_are_short(seconds, text):
    assert ages.human(seconds) == text


def test_a_missing_or_broken_time_is_said_so():
    assert (ages.since(None, NOW), ages.since("soon", NOW)) == ("<unknown>", "<invalid>")


def test_a_node_shows_state_roles_and_version():
    obj = {
        "metadata": {**BORN, "labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "gpu"}},
        "spec": {"unschedulable": True},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"kubeletVersion": "v1.35.0", "osImage": ""},
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        },
    }
    shown = row("Node", obj)
    wanted = {"Status": "Ready,SchedulingDisabled", "Roles": "gpu,worker", "Age": "5m3s", "Version": "v1.35.0"}
    assert wanted.items() <= shown.items()
    assert (shown["Internal-IP"], shown["External-IP"], shown["OS-Image"]) == ("10.0.0.1", "<none>", "<unknown>")
    assert row("Node", {})["Status"] == "Unknown"


CONTAINERS = {"containers": [{"name": "c"}], "initContainers": [{"name": "i"}]}


@pytest.mark.parametrize(
    ("status", "ready", "word"),
    [
        ({"phase": "Pending"}, "0/1", "Pending"),
        ({"phase": "Running", "containerStatuses": [{"name": "c", "ready": True, "state": {"running": {}}}]}, "1/1", "Running"),
        ({"containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]}, "0/1", "ImagePullBackOff"),
        ({"containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 3}}}]}, "0/1", "ExitCode:3"),
        ({"initContainerStatuses": [{"name": "i", "state": {"running": {}}}]}, "0/1", "Init:0/1"),
        ({"phase": "Failed", "reason": "Evicted"}, "0/1", "Evicted"),
    ],
)  # fmt: skip
def test_a_pod_says_what_it_does(status, ready, word):
    shown = row("Pod", {"spec": CONTAINERS, "status": status})
    assert (shown["Ready"], shown["Status"]) == (ready, word)


def test_a_deleted_pod_is_terminating_and_restarts_are_counted():
    ended = {"terminated": {"finishedAt": "2026-01-01T00:04:03Z"}}
    statuses = [{"name": "c", "restartCount": 2, "lastState": ended}]
    obj = {"metadata": {**BORN, "deletionTimestamp": "2026-01-01T00:05:00Z"}, "status": {"containerStatuses": statuses}}
    shown = row("Pod", obj)
    assert (shown["Status"], shown["Restarts"]) == ("Terminating", "2 (60s ago)")


def test_an_event_shows_when_and_about_what_in_both_views():
    core = {
        "involvedObject": {"kind": "Pod", "name": "p"}, "reason": "R", "message": " m ", "type": "Normal",
        "firstTimestamp": "2026-01-01T00:00:03Z", "lastTimestamp": "2026-01-01T00:05:00Z", "count": 3,
        "source": {"component": "c", "host": "h"},
    }  # fmt: skip
    wanted = {
        "Last Seen": "3s",
        "Object": "pod/p",
        "Message": "m",
        "First Seen": "5m",
        "Count": 3,
        "Source": "c, h",
        "Name": "a",
    }
    view = {rules.info.type.group: rules for rules in table.kinds() if rules.info.type.kind == "Event"}["events.k8s.io"]
    for shown in (row("Event", core), row("Event", view.from_storage({**core, "metadata": BORN}), "events.k8s.io")):
        assert wanted.items() <= shown.items()


def test_services_and_workloads_show_the_usual():
    service = {
        "spec": {
            "type": "NodePort",
            "clusterIP": "10.0.0.1",
            "ports": [{"port": 80, "nodePort": 30000, "protocol": "TCP"}],
        }
    }
    assert row("Service", service)["Port(s)"] == "80:30000/TCP"
    deployment = {"spec": {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}}, "status": {"readyReplicas": 1}}
    shown = row("Deployment", deployment, "apps")
    assert (shown["Ready"], shown["Selector"], shown["Available"]) == ("1/3", "a=b", 0)
