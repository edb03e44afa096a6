"""Where the project and the store are that a program opens: nothing that it says about them is ignored."""

from pathlib import Path

from muster.domain.errors import BadArgument
from muster.settings import CONFIG_FILE, DATABASE, HOME, Settings, is_address, load_settings


def locate(store: str | Path | None, project: str | Path | None) -> Settings:
    """Return the settings of the project and the store that were asked for, by default of the working folder.

    Raises BadArgument when one of them would be ignored.
    """
    folder = None if project is None else _project_folder(Path(project))
    if isinstance(store, str) and is_address(store):
        return load_settings(folder=folder, database_url=store)
    home = None if store is None else _store_folder(Path(store))
    found = load_settings(home, folder=folder)
    if home is not None and found.database_url is not None:
        raise BadArgument(
            f"would be ignored: the store is {found.store_place}, which MUSTER_DATABASE_URL or [store] url names",
            argument="store",
            suggestions=("leave out store", "or unset MUSTER_DATABASE_URL, and remove [store] url from muster.toml"),
        )
    return found


def _project_folder(folder: Path) -> Path:
    """Return the folder of a project; its store is made when it is opened, the folder is not."""
    if not folder.is_dir():
        raise BadArgument(
            f"must be the folder of a project, and {folder} is not a folder",
            argument="project",
            suggestions=(f"create {folder}", f"name the folder that has {CONFIG_FILE}, not the file"),
        )
    return folder.absolute()


def _store_folder(folder: Path) -> Path:
    """Return the folder of a store; raises BadArgument for that of a project, whose settings would be ignored."""
    looks_like_project = (folder / CONFIG_FILE).is_file() or (folder / HOME / DATABASE).is_file()
    if looks_like_project and not (folder / DATABASE).exists():
        raise BadArgument(
            f"must be the folder of a store, and {folder} is the folder of a project",
            argument="store",
            suggestions=(f"open(project={str(folder)!r})", f"or open({str(folder / HOME)!r}) for its store alone"),
        )
    return folder
