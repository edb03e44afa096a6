from pathlib import Path

import pytest

from muster.suites.evidence.export import Exported
from tests.suites.evidence.scene import export, story


@pytest.fixture(scope="package")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """The archive that most tests look at; nobody changes it."""
    return export(tmp_path_factory.mktemp("evidence"), story())


@pytest.fixture(scope="package")
def archive(exported: Exported) -> Path:
    return exported.path
