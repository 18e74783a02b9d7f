"""A modelled time for a named GPU: counts from the CPU level, one formula, profiles, an explanation, calibration."""

from verify.model.explain import explanation_lines
from verify.model.launches import NoModel
from verify.model.model import model

__all__ = ["NoModel", "explanation_lines", "model"]
