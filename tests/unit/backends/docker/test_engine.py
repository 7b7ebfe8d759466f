"""The engine is somebody's only who wants a container."""

import subprocess
import sys


def test_the_client_of_the_engine_is_not_imported_at_the_start() -> None:
    asked = "import sys, capi.app.compose; print(sorted({'aiodocker', 'aiohttp'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
