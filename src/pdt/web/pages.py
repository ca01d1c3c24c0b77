"""Pages from templates, and the files beside them.

Templates and files of a room stand in its `templates` and `static` folders; those here are shared.
Every value is escaped, and one that is missing is an error and not an empty place.
"""

from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope


def folder(package: str, name: str) -> Path:
    """A folder of a package, as a path."""
    return Path(str(resources.files(package))) / name


class Pages:
    """Renders the templates of a room; `base.html` and the macros of this one are there too."""

    def __init__(self, package: str) -> None:
        places = [folder(package, "templates"), folder("pdt.web", "templates")]
        self._environment = Environment(
            loader=FileSystemLoader(places),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    def text(self, template: str, **values: Any) -> str:
        return self._environment.get_template(template).render(**values)

    def page(self, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        return HTMLResponse(self.text(template, **values), status, {"cache-control": "no-store"})


class Files(StaticFiles):
    """Files of a package. A browser asks again each time, and is told when nothing changed."""

    def __init__(self, package: str) -> None:
        super().__init__(directory=folder(package, "static"))

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["cache-control"] = "no-cache"
        return response
