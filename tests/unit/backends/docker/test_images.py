"""Images of Docker nodes: case 115 of the Docker provider, and versions as people write them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capi.backends.docker import images
from capi.backends.docker.images import InvalidVersion, NodeImage, Version, node_image, parse_version

REFERENCE = re.compile(r"kindest/node:(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]{0,127})(@sha256:[0-9a-f]{64})?")
NUMBER = st.integers(0, 99)
WORDS = st.from_regex(r"[0-9A-Za-z-]{1,8}(\.[0-9A-Za-z-]{1,8}){0,2}", fullmatch=True)
VERSIONS = st.builds(Version, NUMBER, NUMBER, NUMBER, st.just("") | WORDS, st.just("") | WORDS)
OLD = "kindest/node:v1.26.0@sha256:691e24bd2417609db7e589e1a479b902d2e209892a10ce375fab60a8407c7352"
"""Built by kind 0.17."""


def written(version: Version) -> str:
    pre, build = version.pre and f"-{version.pre}", version.build and f"+{version.build}"
    return f"{version.major}.{version.minor}.{version.patch}{pre}{build}"


@pytest.mark.parametrize("version", ["v1.34.0", "1.34.0", " v1.34 ", "v01.34.00", "v1.34.0+build"])
def test_a_known_version_is_pinned_by_its_digest(version: str) -> None:
    image = node_image(version)
    assert image.reference.startswith("kindest/node:v1.34.0")
    assert re.search(r"@sha256:[0-9a-f]{64}$", image.reference)
    assert image.private_cgroups


def test_the_tag_alone_is_what_an_engine_may_have_instead() -> None:
    assert node_image("v1.34.0").fallback == "kindest/node:v1.34.0"
    assert node_image("v1.34.0+mine").fallback == "kindest/node:v1.34.0_mine"
    assert node_image("v1.34.0+mine").reference == node_image("v1.34.0").reference
    assert node_image("v1.34.99").fallback == ""


def test_of_several_builds_of_a_version_the_newest_is_used() -> None:
    builds = [image for known, image in images.published() if known == Version(1, 23, 17)]
    assert len({build.digest for build in builds}) == len(builds) > 1
    assert not builds[-1].private_cgroups
    assert node_image("v1.23.17") == NodeImage(
        f"kindest/node:v1.23.17@{builds[0].digest}", True, "kindest/node:v1.23.17"
    )


@pytest.mark.parametrize(
    ("version", "tag", "private"),
    [
        pytest.param("v1.34.99", "v1.34.99", True, id="a newer patch runs in the newest way"),
        pytest.param("v1.27.99", "v1.27.99", True, id="also of a minor that began in the old way"),
        pytest.param("v1.26.5", "v1.26.5", True, id="between two: in the way of the newer one"),
        pytest.param("v1.26.1", "v1.26.1", False, id="between two old ones"),
        pytest.param("v1.22.1", "v1.22.1", False, id="older than all of its minor: in the oldest way"),
        pytest.param("v1.99.0", "v1.99.0", True, id="an unknown minor"),
        pytest.param("v1.12.0", "v1.12.0", True, id="an unknown old minor"),
        pytest.param("v1.34.0-rc.1", "v1.34.0-rc.1", True, id="a pre-release is not the release"),
        pytest.param("v1.27.0-rc.0", "v1.27.0-rc.0", False, id="a pre-release of an old one"),
        pytest.param("v1.99.0-a.1+b.2", "v1.99.0-a.1_b.2", True, id="a tag has no plus"),
    ],
)
def test_an_unknown_version_runs_by_its_tag(version: str, tag: str, private: bool) -> None:
    assert node_image(version) == NodeImage(f"kindest/node:{tag}", private)


@pytest.mark.parametrize(
    ("version", "custom", "private"),
    [
        pytest.param("v1.34.0", "mine:1", True, id="as its version is"),
        pytest.param("v1.26.0", "mine:1", False, id="as its old version is"),
        pytest.param("v1.34.0", OLD, False, id="a known one as it was built, whatever the version"),
        pytest.param("v1.34.0", OLD.replace("kindest", "mirror"), False, id="known by its digest, from anywhere"),
        pytest.param("", "mine:1", True, id="no version"),
        pytest.param("", OLD, False, id="a known one without a version"),
        pytest.param("latest", "mine:1", True, id="a version that cannot be read"),
    ],
)
def test_a_custom_image_is_used_as_it_is(version: str, custom: str, private: bool) -> None:
    assert node_image(version, custom) == NodeImage(custom, private)


@pytest.mark.parametrize(
    "version",
    ["", "  ", "latest", "v", "1.", "1.34.", "1.34.0.0", "v1.34-rc.1", "1.34.0-", "1.34.0-a..b", "1.34.0+", "-1.0.0",
     "1.٣.0", "v1.34.0\n-x", "vv1.34.0", "1." + "9" * 5000, "v1.34.0+" + "x" * 128],
)  # fmt: skip
def test_a_version_that_cannot_be_read_says_what_to_set(version: str) -> None:
    with pytest.raises(InvalidVersion) as refusal:
        node_image(version)
    assert refusal.value.reason == "InvalidVersion"
    assert "version" in refusal.value.message
    assert len(refusal.value.message) < 500


def test_the_refusal_names_the_version_and_the_way_out() -> None:
    with pytest.raises(InvalidVersion, match=r"^'latest' is not .* set spec\.version .*customImage"):
        node_image("latest")
    with pytest.raises(InvalidVersion, match=r"^no Kubernetes version is set: "):
        node_image("")


@given(VERSIONS, st.sampled_from(["", "v"]))
def test_a_version_is_read_as_it_was_written(version: Version, before: str) -> None:
    assert parse_version(before + written(version)) == version


@given(VERSIONS)
def test_an_image_can_be_asked_for_and_its_fallback_is_itself_without_the_digest(version: Version) -> None:
    image = node_image(written(version))
    assert (match := REFERENCE.fullmatch(image.reference))
    assert "+" not in match["tag"]
    assert bool(image.fallback) == ("@" in image.reference)
    assert image.fallback in ("", version.image)


@given(st.text(max_size=20), st.text(min_size=1))
def test_a_custom_image_never_fails(version: str, custom: str) -> None:
    image = node_image(version, custom)
    assert (image.reference, image.fallback) == (custom, "")


@given(st.text(max_size=20) | st.from_regex(r"v?[0-9.+-]{1,12}", fullmatch=True))
def test_any_text_is_a_version_or_is_refused(text: str) -> None:
    try:
        image = node_image(text)
    except InvalidVersion:
        return
    assert REFERENCE.fullmatch(image.reference)


def test_the_table_is_ordered_as_the_choice_needs_it() -> None:
    """Within a minor version newer patches come first; a digest is one image."""
    latest: dict[tuple[int, int], Version] = {}
    for known, _ in images.published():
        before = latest.setdefault(known.numbers[:2], known)
        assert known.patch <= before.patch
        latest[known.numbers[:2]] = known
    digests = [image.digest for _, image in images.published()]
    assert len(set(digests)) == len(digests) > 100
    assert all(re.fullmatch("sha256:[0-9a-f]{64}", digest) for digest in digests)
