"""What servers leave out of messages: secrets, and places of the machine that they run on."""

from collections.abc import Callable

from muster.app.base.telemetry import secret_remover
from muster.settings import Settings


def cleaner(settings: Settings) -> Callable[[str], str]:
    """Return what takes configured secrets and places of this machine out of a message."""
    hide = secret_remover(settings)
    names = {settings.folder: "the project", settings.home: "the store"}
    places = {str(way): name for path, name in names.items() for way in (path.absolute(), path.resolve()) if way.name}
    # The longest first: the store usually lies in the project.
    found = sorted(places.items(), key=lambda place: -len(place[0]))

    def clean(text: str) -> str:
        for place, name in found:
            text = text.replace(f"{place}/", "").replace(place, name)
        return hide(text)

    return clean
