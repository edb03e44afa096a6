"""The readers of files that people write, by the ends of their names."""

from collections.abc import Mapping

from muster.text.documents.toml_reader import TomlFile
from muster.text.documents.yaml_reader import YamlFile

READERS: Mapping[str, type[YamlFile] | type[TomlFile]] = {".yaml": YamlFile, ".yml": YamlFile, ".toml": TomlFile}
