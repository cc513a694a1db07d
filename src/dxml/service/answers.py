"""JSON as it is sent."""

from __future__ import annotations

import json
from typing import Any

from fastapi.responses import JSONResponse

__all__ = ["JSONAnswer"]


class JSONAnswer(JSONResponse):
    """In UTF-8, or in ASCII where a name holds half a character, which UTF-8 cannot write.

    Tables with such names are refused, but older models and other sources may have them.
    """

    def render(self, content: Any) -> bytes:
        """The bytes to send."""
        try:
            return super().render(content)
        except UnicodeEncodeError:
            return json.dumps(content, separators=(",", ":")).encode()
