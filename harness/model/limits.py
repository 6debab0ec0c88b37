"""The limits that a run file is held to when it is read; what the harness measures lies far within them."""

from __future__ import annotations

from typing import Annotated

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Magnitude = Annotated[float, msgspec.Meta(ge=0)]
CaseId = Annotated[str, msgspec.Meta(max_length=1 << 16)]
