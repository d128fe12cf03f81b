"""Why the answer of a service says that it failed."""

from __future__ import annotations

from typing import Any

_OK = 1  # simulation_interfaces/msg/Result.RESULT_OK


def problem_of(answer: Any) -> str:
    """Return why a service did not fulfil a request; an empty text if it did.

    Args:
        answer: The answer of a service of any type.
    """
    reasons = [
        one.reason  # of rcl_interfaces/srv/SetParameters
        for one in getattr(answer, "results", ())
        if not getattr(one, "successful", True)
    ]
    if reasons:
        return "; ".join(reasons)
    if hasattr(answer, "success"):
        return "" if answer.success else getattr(answer, "message", "") or "it failed"
    result: Any = getattr(answer, "result", None)
    if hasattr(result, "successful"):  # of rcl_interfaces/srv/SetParametersAtomically
        return "" if result.successful else result.reason or "it failed"
    if hasattr(result, "error_message") and result.result != _OK:
        return result.error_message or f"it failed, result {result.result}"
    return ""
