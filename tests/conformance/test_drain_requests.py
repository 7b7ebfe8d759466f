"""What a drain asks of an API server, answered alike by both: evictions, their refusals, lists of a Node's Pods."""


def eviction(name, **options):
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    return {**body, "deleteOptions": options} if options else body


def a_pod_on(site, api, name, app="x", node="n"):
    """A Pod that runs and is ready."""
    pod = site.a_pod(name, node)
    pod["metadata"]["labels"] = {"app": app}
    made = api.post(site.pods, pod).ok(201)
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    api.merge(f"{site.pods}/{name}/status", {"status": ready}).ok()
    return made.meta["uid"]


def test_an_eviction_ends_a_pod_with_the_grace_asked_for(api, site):
    a_pod_on(site, api, "ev1")
    api.post(f"{site.pods}/ev1/eviction", eviction("ev1", gracePeriodSeconds=1)).ok(201)
    meta = api.get(f"{site.pods}/ev1").ok().meta
    assert meta["deletionGracePeriodSeconds"] == 1
    api.delete(f"{site.pods}/ev1", {"gracePeriodSeconds": 0}).ok()


def test_an_eviction_of_another_uid_is_a_conflict_and_of_nothing_not_found(api, site):
    uid = a_pod_on(site, api, "ev2")
    api.post(f"{site.pods}/ev2/eviction", eviction("ev2", preconditions={"uid": "other"})).ok(409, "Conflict")
    assert "deletionTimestamp" not in api.get(f"{site.pods}/ev2").ok().meta
    api.post(f"{site.pods}/ev2/eviction", eviction("ev2", preconditions={"uid": uid})).ok(201)
    api.post(f"{site.pods}/none/eviction", eviction("none")).ok(404, "NotFound")
    api.delete(f"{site.pods}/ev2", {"gracePeriodSeconds": 0}).ok()


def test_a_budget_refuses_with_a_cause_that_says_so(api, site):
    a_pod_on(site, api, "ev3", "guarded")
    budgets = site.pods.replace("/api/v1/", "/apis/policy/v1/").replace("/pods", "/poddisruptionbudgets")
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}}
    api.post(budgets, {"metadata": {"name": "guard"}, "spec": spec}).ok(201)
    early = api.post(f"{site.pods}/ev3/eviction", eviction("ev3")).ok(429, "TooManyRequests")
    status = {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1}
    api.merge(f"{budgets}/guard/status", {"status": {**status, "expectedPods": 1}}).ok()
    late = api.post(f"{site.pods}/ev3/eviction", eviction("ev3")).ok(429, "TooManyRequests")
    texts = (
        (early, "The disruption budget guard is still being processed by the server."),
        (late, "The disruption budget guard needs 1 healthy pods and has 1 currently"),
    )
    for reply, text in texts:
        assert reply.message == "Cannot evict pod as it would violate the pod's disruption budget."
        [cause] = reply.json["details"]["causes"]
        assert (cause["reason"], cause["message"]) == ("DisruptionBudget", text)
    api.delete(f"{budgets}/guard").ok()
    api.delete(f"{site.pods}/ev3", {"gracePeriodSeconds": 0}).ok()


def test_pods_are_listed_by_node(api, site):
    for name, node in (("ev4", "n4"), ("ev5", "n5")):
        a_pod_on(site, api, name, node=node)
    found = api.get("/api/v1/pods", query={"fieldSelector": "spec.nodeName=n4"}).ok().json["items"]
    assert [pod["metadata"]["name"] for pod in found] == ["ev4"]
    for name in ("ev4", "ev5"):
        api.delete(f"{site.pods}/{name}", {"gracePeriodSeconds": 0}).ok()
