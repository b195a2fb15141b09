"""A plugin whose full server and packages are stubs, so that its environment is built without a network."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tools.client import Client

CHECKOUT = Path(__file__).parents[2]
PACKAGES = ("psutil", "jinja2", "tomlkit", "jsonschema")


@dataclass(frozen=True)
class Stub:
    """The stub plugin, the folder its one wheel is found in, and the state folder of its environments."""

    root: Path
    wheels: Path
    state: Path

    @property
    def runtime(self) -> Path:
        return self.state / "runtime"

    def environments(self) -> list[Path]:
        return sorted(path for path in self.runtime.iterdir() if path.is_dir())

    def log(self) -> str:
        (path,) = self.runtime.glob("*.log")
        return path.read_text()

    def start(self, **variables: str) -> Client:
        """Start the front as Codex does."""
        env = {
            "HOME": os.environ["HOME"],
            "PATH": str(self.root.parent / "bin"),
            "BATON_STATE": str(self.state),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
            "PIP_CONFIG_FILE": os.devnull,
        }
        return Client(["/bin/sh", "scripts/serve.sh"], cwd=self.root, env={**env, **variables})


@pytest.fixture
def stub(test_root: Path) -> Stub:
    root = test_root / "plugin"
    ignored = shutil.ignore_patterns("__pycache__")
    (root / "scripts").mkdir(parents=True)
    for name in ("serve.py", "serve.sh"):
        shutil.copy(CHECKOUT / "scripts" / name, root / "scripts")
    baton = root / "server" / "baton"
    for room in ("runtime", "contract"):
        shutil.copytree(CHECKOUT / "server" / "baton" / room, baton / room, ignore=ignored)
    (baton / "tools").mkdir()
    shutil.copy(CHECKOUT / "server/baton/tools/surface.json", baton / "tools")
    shutil.copy(Path(__file__).with_name("stub_server.py"), baton / "tools" / "server.py")
    for package in (baton, baton / "tools"):
        (package / "__init__.py").touch()
    wheels = test_root / "wheels"
    wheels.mkdir()
    digest = _write_wheel(wheels)
    (root / "requirements.lock").write_text(f"baton-stub==1.0 \\\n    --hash=sha256:{digest}\n")
    programs = test_root / "bin"
    programs.mkdir()
    base = getattr(sys, "_base_executable", sys.executable)
    (programs / "python3").symlink_to(base)
    return Stub(root, wheels, test_root / "state")


def _write_wheel(folder: Path) -> str:
    """Write a wheel of empty modules; returns its sha256."""
    metadata = "baton_stub-1.0.dist-info"
    files = {f"{name}.py": "" for name in PACKAGES}
    files[f"{metadata}/METADATA"] = "Metadata-Version: 2.1\nName: baton-stub\nVersion: 1.0\n"
    files[f"{metadata}/WHEEL"] = (
        "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    record = "".join(f"{name},sha256={_digest(text)},{len(text)}\n" for name, text in files.items())
    files[f"{metadata}/RECORD"] = record + f"{metadata}/RECORD,,\n"
    path = folder / "baton_stub-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@pytest.fixture
def write_wheel() -> Callable[[Path], str]:
    return _write_wheel
