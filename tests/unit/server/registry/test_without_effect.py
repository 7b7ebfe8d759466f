"""Objects nobody acts on yet: refused where silence would be a hole, stored with a warning where it is not."""

import pytest

from capi.kube.errors import Forbidden
from tests.unit.server.registry.rig import Rig


@pytest.mark.parametrize("plural", ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"])
async def test_webhooks_are_refused_because_nobody_would_call_them(rig: Rig, plural: str) -> None:
    with pytest.raises(Forbidden, match="does not call admission webhooks"):
        await rig.create(plural, {"metadata": {"name": "w"}, "webhooks": []})


async def test_who_creates_a_role_is_told_that_it_gives_no_rights(rig: Rig) -> None:
    written = await rig.create_("roles", {"metadata": {"name": "r"}, "rules": []})
    assert written.created
    assert [text for text in written.warnings if "does not evaluate roles" in text]
