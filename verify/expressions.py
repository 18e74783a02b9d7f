"""Arithmetic over a task's named sizes: shapes, bytes, flops and generator bounds, without `eval`.

Integers, floats, size names, ``+ - * / // % **``, parentheses, ``min``, ``max``, ``ceil`` and ``log2``.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

Number = int | float

#: No shape, byte count or bound needs a number beyond this; it stops towers of powers.
LARGEST: Final = 2**64
LONGEST: Final = 400


class ExpressionError(ValueError):
    """The text is no expression of this kind, names an unknown size, or its value is out of range."""


def _power(base: Number, exponent: Number) -> Number:
    if abs(exponent) > 64:
        raise ExpressionError("an exponent beyond 64")
    value = base**exponent
    if isinstance(value, complex):
        raise ExpressionError("a root of a negative number")
    return value


_BINARY: Final[dict[type[ast.operator], Callable[[Number, Number], Number]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
_FUNCTIONS: Final[dict[str, Callable[..., Number]]] = {
    "min": min,
    "max": max,
    "ceil": math.ceil,
    "log2": math.log2,
}


@dataclass(frozen=True)
class Expression:
    """One parsed expression; ``names`` are the sizes it needs."""

    text: str
    names: frozenset[str] = field(compare=False)
    _tree: ast.expr = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: str | int | float) -> Expression:
        """Parse ``text``. Raises :class:`ExpressionError` for anything that is not arithmetic."""
        text = str(text).strip()
        if len(text) > LONGEST:
            raise ExpressionError(f"longer than {LONGEST} characters")
        try:
            tree = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            raise ExpressionError(f"`{text}` is not an expression") from None
        names: set[str] = set()
        _check(tree, names)
        return cls(text, frozenset(names), tree)

    def value(self, sizes: Mapping[str, int]) -> Number:
        """Its value at ``sizes``; a finite number of a magnitude up to 2**64."""
        try:
            value = _evaluate(self._tree, sizes)
        except (ArithmeticError, ValueError, TypeError) as error:
            raise ExpressionError(f"`{self.text}` has no value at {_show(sizes)}: {error}") from None
        if not math.isfinite(value) or abs(value) > LARGEST:
            raise ExpressionError(f"`{self.text}` overflows at {_show(sizes)}")
        return value

    def integer(self, sizes: Mapping[str, int]) -> int:
        """Its value at ``sizes``, which must be whole and not negative."""
        value = self.value(sizes)
        if value != int(value) or value < 0:
            raise ExpressionError(f"`{self.text}` is {value} at {_show(sizes)}, not a count")
        return int(value)

    def __str__(self) -> str:
        return self.text


def _show(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in sizes.items()) or "no sizes"


def _check(node: ast.expr, names: set[str]) -> None:
    match node:
        case ast.Constant(value=bool()):
            raise ExpressionError("only numbers are constants")
        case ast.Constant(value=int() | float()):
            pass
        case ast.Name(id=name):
            names.add(name)
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _BINARY:
            _check(left, names)
            _check(right, names)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            _check(operand, names)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS and arguments:
            for argument in arguments:
                _check(argument, names)
        case _:
            raise ExpressionError(f"`{ast.unparse(node)}` is not arithmetic over sizes")


def _evaluate(node: ast.expr, sizes: Mapping[str, int]) -> Number:
    match node:
        case ast.Constant(value=value):
            result = value
        case ast.Name(id=name):
            if name not in sizes:
                raise ExpressionError(f"no size is called `{name}`")
            result = sizes[name]
        case ast.BinOp(left=left, op=operation, right=right):
            result = _BINARY[type(operation)](_evaluate(left, sizes), _evaluate(right, sizes))
        case ast.UnaryOp(op=operation, operand=operand):
            inner = _evaluate(operand, sizes)
            result = -inner if isinstance(operation, ast.USub) else inner
        case ast.Call(func=ast.Name(id=name), args=arguments):
            result = _FUNCTIONS[name](*(_evaluate(argument, sizes) for argument in arguments))
        case _:
            raise ExpressionError("not arithmetic over sizes")
    if isinstance(result, int | float) and abs(result) <= LARGEST * 2:
        return result
    raise ExpressionError("overflows")
