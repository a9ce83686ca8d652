"""How static files are named where they may be kept for ever."""

from django.contrib.staticfiles.storage import HashedFilesMixin
from whitenoise.storage import CompressedManifestStaticFilesStorage  # type: ignore[import-untyped]


class HashedFiles(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    """Modules import each other by their hashed names: a page never mixes files of two versions.

    Only our own are read for imports: comments in those of packages name files that are not there.
    """

    support_js_module_import_aggregation = True
    _js_module_import_aggregation_patterns = (
        "js/*.js",
        HashedFilesMixin._js_module_import_aggregation_patterns[1],  # type: ignore[attr-defined]
    )
