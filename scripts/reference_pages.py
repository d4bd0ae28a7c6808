"""Write the reference: one page a package, made from its docstrings while docs build.

MkDocs calls this as a hook.  Every public package of ``escapade`` gets a page with the
docstring of the package and of each of its public modules, and all pages stand under
*Reference* in the navigation; so nothing that is added can be forgotten here.  A name
that begins with an underscore is not public.  ``docs/reference.md`` is the page that
they hang from.
"""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

SOURCE = Path(__file__).resolve().parents[1] / "src"
ROOT = "escapade"

# From the top to the bottom, as docs/decisions/0006-layers.md has it; what is not named
# comes after, by name.
ORDER = (
    "model",
    "planning",
    "uncertainty",
    "knowledge",
    "learning",
    "preflight",
    "agent",
    "simulation",
    "experiment",
    "environments",
    "baselines",
    "theory",
    "testing",
)


def packages(source: Path = SOURCE) -> list[str]:
    """Return the names of the public packages, in the order of the navigation."""
    found = {
        path.parent.name
        for path in (source / ROOT).glob("*/__init__.py")
        if not path.parent.name.startswith("_")
    }
    return [name for name in ORDER if name in found] + sorted(found - set(ORDER))


def modules(package: str, source: Path = SOURCE) -> list[str]:
    """Return the dotted names of the public modules of a package, itself first."""
    top = source / ROOT / package
    found = []
    for path in sorted(top.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        if parts[-1] == "__init__":
            parts = parts[:-1]
        if not any(part.startswith("_") for part in parts):
            found.append(".".join(parts))
    return sorted(found)


def page(package: str, source: Path = SOURCE) -> str:
    """Return the page of a package: what mkdocstrings is to put there."""
    first, *rest = modules(package, source)
    lines = [f"# {first}", "", f"::: {first}", "    options:"]
    # what a package exports is shown where it is defined
    lines += ["      members: false", "      show_root_heading: false", ""]
    for name in rest:
        lines += [f"## {name.removeprefix(first + '.')}", "", f"::: {name}"]
        lines += ["    options:", "      show_root_heading: false", ""]
    return "\n".join(lines)


def address(package: str) -> str:
    """Return where the page of a package stands, below ``docs``."""
    return f"reference/{package}.md"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages into the navigation."""
    for entry in config.nav or []:
        if isinstance(entry, dict) and "Reference" in entry:
            front = entry["Reference"]
            entry["Reference"] = [
                *(front if isinstance(front, list) else [front]),
                *({f"{ROOT}.{name}": address(name)} for name in packages()),
            ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages to those of ``docs``."""
    for name in packages():
        files.append(File.generated(config, address(name), content=page(name)))
    return files
