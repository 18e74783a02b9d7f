"""What a sequential C++ function says of itself: its parameters, how they are used, and how long its arrays must be."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from regraph_db.errors import InputError
from verify.dtypes import DTYPES

_TYPES = {spelling: dtype for dtype in DTYPES.values() if not dtype.half for spelling in dtype.spellings}
#: Sample values of the sizes, large and without common factors, that tell products of sizes apart.
_SAMPLES = ((1009, 2003, 4001, 503, 751, 307), (5003, 1511, 907, 2503, 401, 1201))
_DEGREE = 3


@dataclass(frozen=True)
class CppParameter:
    """One parameter: its name, its dtype's name, and whether it is a pointer, and to const."""

    name: str
    dtype: str
    pointer: bool
    const: bool


@dataclass
class CppFunction:
    """A function definition found in a source text."""

    name: str
    start: int  #: byte where the definition begins
    linked: bool  #: it has C linkage already
    parameters: list[CppParameter]
    loops: dict[str, tuple[Any, Any, bool]]  #: loop variable → (first, bound, whether the bound is reached)
    locals: dict[str, Any]  #: local variable → the expression that it begins with
    subscripts: dict[str, list[Any]]  #: array → its index expressions
    written_first: set[str]  #: arrays whose first use is a plain assignment
    bounds: set[str]  #: names that stand in loop conditions or index expressions
    depth: int  #: deepest nest of loops
    index_arrays: dict[str, str] = field(default_factory=dict)  #: array whose elements index another → that other

    def length(self, array: str, sizes: Sequence[str]) -> str | None:
        """The smallest product of ``sizes`` that holds every element that the function touches; ``None`` when it
        cannot be told."""
        needs = []
        for values in _SAMPLES:
            known = dict(zip(sizes, values, strict=False))
            spans = [self._span(index, known, set()) for index in self.subscripts.get(array, [])]
            if not spans or any(span is None for span in spans):
                return None
            needs.append(max(span[1] for span in spans if span is not None) + 1)
        if all(need <= 64 for need in needs) and len(set(needs)) == 1:
            return str(needs[0])
        fitting = []
        for degree in range(1, _DEGREE + 1):
            for names in itertools.combinations_with_replacement(sizes, degree):
                products = [_product(names, dict(zip(sizes, values, strict=False))) for values in _SAMPLES]
                if all(need <= product <= 1.1 * need + 16 for need, product in zip(needs, products, strict=True)):
                    fitting.append((products[0], "*".join(names)))
        return min(fitting)[1] if fitting else None

    def _span(self, node: Any, known: Mapping[str, int], open_names: set[str]) -> tuple[int, int] | None:
        """The least and largest value of an index expression at some sizes; ``None`` for what is no such arithmetic."""
        kind, text = node.type, node.text.decode()
        if kind == "parenthesized_expression":
            return self._span(node.named_children[0], known, open_names)
        if kind == "cast_expression":
            return self._span(node.child_by_field_name("value"), known, open_names)
        if kind == "number_literal":
            digits = text.rstrip("uUlL")
            return (int(digits), int(digits)) if digits.isdigit() else None
        if kind == "identifier":
            return self._named(text, known, open_names)
        if kind != "binary_expression":
            return None
        left = self._span(node.child_by_field_name("left"), known, open_names)
        right = self._span(node.child_by_field_name("right"), known, open_names)
        return _combined(node.child_by_field_name("operator").text.decode(), left, right)

    def _named(self, name: str, known: Mapping[str, int], open_names: set[str]) -> tuple[int, int] | None:
        if name in known:
            return known[name], known[name]
        if name in open_names:
            return None
        inner = open_names | {name}
        if name in self.loops:
            first, bound, reached = self.loops[name]
            low, high = self._span(first, known, inner), self._span(bound, known, inner)
            if low is None or high is None:
                return None
            return low[0], high[1] - (0 if reached else 1)
        if name in self.locals:
            return self._span(self.locals[name], known, inner)
        return None


def _product(names: Sequence[str], values: Mapping[str, int]) -> int:
    product = 1
    for name in names:
        product *= values[name]
    return product


def _combined(operator: str, left: tuple[int, int] | None, right: tuple[int, int] | None) -> tuple[int, int] | None:
    if left is None or right is None:
        return None
    if operator == "+":
        return left[0] + right[0], left[1] + right[1]
    if operator == "-":
        return left[0] - right[1], left[1] - right[0]
    if operator == "*":
        products = [a * b for a in left for b in right]
        return min(products), max(products)
    if operator == "/" and right[0] > 0 and left[0] >= 0:
        return left[0] // right[1], left[1] // right[0]
    if operator == "%" and right[0] > 0 and left[0] >= 0:
        return 0, min(left[1], right[1] - 1)
    return None


def read_function(source: str, name: str, where: str) -> CppFunction:
    """The definition of ``name``. Raises :class:`InputError` for what a task's reference cannot be, saying how to
    mend it."""
    import tree_sitter_cpp
    from tree_sitter import Language, Parser

    tree = Parser(Language(tree_sitter_cpp.language())).parse(source.encode())
    found = [node for node in _walk(tree.root_node) if node.type == "function_definition" and _name(node) == name]
    if not found:
        others = sorted({_name(node) for node in _walk(tree.root_node) if node.type == "function_definition"} - {""})
        raise InputError(
            f"no function `{name}` is defined.",
            where=where,
            fix=f"It defines {', '.join(others)}." if others else "Give a C++ file that defines it.",
        )
    if len(found) > 1:
        raise InputError(
            f"`{name}` is defined {len(found)} times.",
            where=where,
            fix="Leave one definition: a task has one reference.",
        )
    if any(node.type == "function_definition" and _name(node) == "main" for node in _walk(tree.root_node)):
        raise InputError(
            "defines `main`.",
            where=where,
            fix="Move the function into a file of its own: the judge brings its own main.",
        )
    node = found[0]
    place = f"{where}:{node.start_point[0] + 1}"
    if node.child_by_field_name("type").text.decode() != "void" or _declarator(node).type != "function_declarator":
        raise InputError(
            f"`{name}` returns a value.",
            where=place,
            fix="Return void, and write the result through a pointer, e.g. `float* result`.",
        )
    if any(child.type == "storage_class_specifier" and child.text == b"static" for child in node.children):
        raise InputError(f"`{name}` is static.", where=place, fix="Remove `static`: the judge calls it from outside.")
    if node.parent is not None and node.parent.type == "template_declaration":
        raise InputError(f"`{name}` is a template.", where=place, fix="Write it for one type.")
    return _described(node, name, place)


def _described(node: Any, name: str, place: str) -> CppFunction:
    parameters = [
        _parameter(each, place)
        for each in _declarator(node).child_by_field_name("parameters").named_children
        if each.type != "comment"
    ]
    arrays = {parameter.name for parameter in parameters if parameter.pointer}
    body = node.child_by_field_name("body")
    function = CppFunction(name, node.start_byte, _linked(node), parameters, {}, {}, {}, set(), set(), _depth(body))
    used: set[str] = set()
    for each in _walk(body):
        if each.type == "for_statement":
            _note_loop(each, function)
        elif each.type == "init_declarator" and (value := each.child_by_field_name("value")) is not None:
            declared = each.child_by_field_name("declarator").text.decode()
            if declared not in function.loops:
                function.locals.setdefault(declared, value)
        elif each.type == "subscript_expression":
            array = each.child_by_field_name("argument").text.decode()
            if array in arrays:
                _note_subscript(each, array, arrays, function)
                if array not in used and _is_assigned(each):
                    function.written_first.add(array)
                used.add(array)
        elif each.type == "pointer_expression" and (argument := each.child_by_field_name("argument")) is not None:
            used.add(argument.text.decode())
    return function


def _parameter(node: Any, place: str) -> CppParameter:
    text = " ".join(node.text.decode().split())
    declarator = node.child_by_field_name("declarator")
    pointers = 0
    while declarator is not None and declarator.type in ("pointer_declarator", "array_declarator"):
        pointers += 1
        inner = declarator.child_by_field_name("declarator")
        declarator = (
            inner
            if inner is not None
            else next((c for c in declarator.named_children if c.type.endswith(("identifier", "declarator"))), None)
        )
    if declarator is None or declarator.type != "identifier" or pointers > 1:
        raise InputError(
            f"the parameter `{text}` is neither a scalar nor a pointer.",
            where=place,
            fix="Use scalars and pointers to scalars.",
        )
    spelled = node.child_by_field_name("type").text.decode().removeprefix("std::")
    dtype = _TYPES.get(" ".join(spelled.split())) or {"size_t": DTYPES["uint64"], "bool": DTYPES["uint8"]}.get(spelled)
    if dtype is None or spelled == "bool":
        raise InputError(
            f"the parameter `{text}` has a type that a task cannot pass.",
            where=place,
            fix=f"Use one of {', '.join(sorted(_TYPES))}.",
        )
    const = any(child.type == "type_qualifier" and child.text == b"const" for child in node.children)
    return CppParameter(declarator.text.decode(), dtype.name, pointers == 1, const)


def _note_loop(node: Any, function: CppFunction) -> None:
    start, condition = node.child_by_field_name("initializer"), node.child_by_field_name("condition")
    if condition is not None:
        function.bounds |= {each.text.decode() for each in _walk(condition) if each.type == "identifier"}
    if start is None or condition is None or condition.type != "binary_expression":
        return
    initial = next((each for each in _walk(start) if each.type in ("init_declarator", "assignment_expression")), None)
    operator = condition.child_by_field_name("operator").text.decode()
    if initial is None or operator not in ("<", "<=", "!="):
        return
    variable = (initial.child_by_field_name("declarator") or initial.child_by_field_name("left")).text.decode()
    first = initial.child_by_field_name("value") or initial.child_by_field_name("right")
    if condition.child_by_field_name("left").text.decode() == variable:
        function.loops[variable] = (first, condition.child_by_field_name("right"), operator == "<=")


def _note_subscript(node: Any, array: str, arrays: set[str], function: CppFunction) -> None:
    indices = node.child_by_field_name("indices")
    index = indices.named_children[0] if indices is not None else node.named_children[-1]
    function.subscripts.setdefault(array, []).append(index)
    function.bounds |= {each.text.decode() for each in _walk(index) if each.type == "identifier"}
    for inner in _walk(index):
        if (
            inner.type == "subscript_expression"
            and (source := inner.child_by_field_name("argument").text.decode()) in arrays
        ):
            function.index_arrays[source] = array
        elif (
            inner.type == "identifier"
            and (value := function.locals.get(inner.text.decode())) is not None
            and value.type == "subscript_expression"
        ):
            source = value.child_by_field_name("argument").text.decode()
            if source in arrays:
                function.index_arrays[source] = array


def _is_assigned(node: Any) -> bool:
    """Whether a subscript is the left side of a plain assignment whose right side does not read the array."""
    parent = node.parent
    if parent is None or parent.type != "assignment_expression" or parent.child_by_field_name("left") != node:
        return False
    array = node.child_by_field_name("argument").text
    reads = any(
        each.type == "subscript_expression" and each.child_by_field_name("argument").text == array
        for each in _walk(parent.child_by_field_name("right"))
    )
    return parent.child_by_field_name("operator").text == b"=" and not reads


def _walk(node: Any) -> Iterator[Any]:
    stack = [node]
    while stack:
        each = stack.pop()
        yield each
        stack.extend(reversed(each.children))


def _declarator(node: Any) -> Any:
    return node.child_by_field_name("declarator")


def _name(node: Any) -> str:
    declarator = _declarator(node)
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    inner = declarator.child_by_field_name("declarator") if declarator is not None else None
    return inner.text.decode() if inner is not None else ""


def _linked(node: Any) -> bool:
    while node is not None:
        if node.type == "linkage_specification":
            return True
        node = node.parent
    return False


def _depth(node: Any) -> int:
    inner = max((_depth(child) for child in node.children), default=0)
    return inner + (node.type in ("for_statement", "while_statement", "do_statement"))
