"""JSON answers."""

from __future__ import annotations

import json
from typing import Any

from fastapi.responses import JSONResponse

__all__ = ["JSONAnswer"]


class JSONAnswer(JSONResponse):
    """JSON in UTF-8, or in ASCII where a name holds a lone surrogate, which UTF-8 cannot encode.

    Tables with such names are refused, but older models and other sources may have them.
    """

    def render(self, content: Any) -> bytes:
        """The bytes to send."""
        try:
            return super().render(content)
        except UnicodeEncodeError:
            return json.dumps(content, separators=(",", ":")).encode()
