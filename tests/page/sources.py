"""The files of the page, as they lie in the package."""

from __future__ import annotations

from pathlib import Path

import bunko.interfaces.page

ROOT = Path(__file__).parents[2]
PACKAGE = Path(bunko.interfaces.page.__file__).parent
TEMPLATES = sorted((PACKAGE / "templates").rglob("*.html"))
SCRIPTS = sorted((PACKAGE / "assets" / "js").rglob("*.js"))
STYLES = sorted((PACKAGE / "assets" / "css").rglob("*.css"))
MODULES = sorted(PACKAGE.rglob("*.py"))
