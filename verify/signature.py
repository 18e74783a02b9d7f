"""Is a candidate's function the task's? A quick look at the text first, then a proof that the compiler makes."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from verify.task import Task

#: The names are long because the candidate's macros are still in force here. Two types agree when they are the same,
#: or integers of one width and signedness; `const` of a pointee is free.
_TRAITS = """
#include <type_traits>
namespace regraph_signature {
template <class regraph_a, class regraph_b> struct regraph_agree {
    static constexpr bool value = std::is_same<regraph_a, regraph_b>::value || (std::is_integral<regraph_a>::value &&
    std::is_integral<regraph_b>::value &&
        sizeof(regraph_a) == sizeof(regraph_b) && std::is_signed<regraph_a>::value == std::is_signed<regraph_b>::value);
};
template <class regraph_a, class regraph_b> struct regraph_agree<regraph_a*, regraph_b*>
    : regraph_agree<std::remove_cv_t<regraph_a>, std::remove_cv_t<regraph_b>> {};
template <class regraph_f, class regraph_g> struct regraph_same { static constexpr bool value = false; };
template <class... regraph_a, class... regraph_b> struct regraph_same<void (*)(regraph_a...), void (*)(regraph_b...)> {
    template <bool regraph_equal, class = void> struct regraph_each { static constexpr bool value = false; };
    template <class regraph_none> struct regraph_each<true, regraph_none> {
        static constexpr bool value = (regraph_agree<regraph_a, regraph_b>::value && ...);
    };
    static constexpr bool value = regraph_each<sizeof...(regraph_a) == sizeof...(regraph_b)>::value;
};
}
"""


def proof(task: Task) -> str:
    """Lines after a candidate that stop the compiler when its function is not the task's."""
    types = ", ".join(p.declaration.rsplit(" ", 1)[0] for p in task.parameters)
    headers = ["#include <cstdint>"]
    if any(p.dtype.name == "float16" for p in task.parameters):
        headers.append("#include <cuda_fp16.h>")
    if any(p.dtype.name == "bfloat16" for p in task.parameters):
        headers.append("#include <cuda_bf16.h>")
    expected = task.signature.replace('"', '\\"')
    return (
        f'\n#line 1 "signature"\n{chr(10).join(headers)}{_TRAITS}'
        f"static_assert(regraph_signature::regraph_same<decltype(&::{task.function}), void (*)({types})>::value, "
        f'"the signature is not: {expected}");\n'
    )


def mismatch(task: Task, source: str) -> str:
    """What is plainly wrong with the candidate's signature, with its line; empty when nothing is, or when it is not
    plain."""
    found = _definitions(source, task.function)
    if not found:
        if not re.search(rf"\b{task.function}\s*\(", source):
            return f"it does not define `{task.function}`; wanted: {task.signature}"
        return ""
    for line, count, linkage in found:
        if count is not None and count != len(task.parameters):
            continue
        if not linkage:
            return f'line {line}: `{task.function}` is not declared extern "C"; wanted: {task.signature}'
        return ""
    line, count, _ = found[0]
    return (
        f"line {line}: `{task.function}` takes {count} parameters, not {len(task.parameters)}; wanted: {task.signature}"
    )


@lru_cache(maxsize=1)
def _parser() -> Any:
    import tree_sitter_cpp
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_cpp.language()))


def _definitions(source: str, function: str) -> list[tuple[int, int | None, bool]]:
    """Top-level definitions of ``function``: (line, number of parameters or None when unclear, declared extern "C")."""
    tree = _parser().parse(source.encode(errors="replace"))
    found: list[tuple[int, int | None, bool]] = []
    declared_c = False
    pending = [(tree.root_node, False)]
    while pending:
        node, linkage = pending.pop()
        if node.type == "linkage_specification":
            value = node.child_by_field_name("value")
            linkage = linkage or (value is not None and value.text == b'"C"')
        if node.type in ("function_definition", "declaration"):
            declarator = _function_declarator(node)
            if declarator is not None and _name(declarator) == function:
                if node.type == "declaration":
                    declared_c = declared_c or linkage
                else:
                    found.append((node.start_point[0] + 1, _count(declarator, node.has_error), linkage))
            continue
        if node.type in (
            "translation_unit",
            "linkage_specification",
            "declaration_list",
            "preproc_ifdef",
            "preproc_if",
            "preproc_else",
            "preproc_elif",
        ):
            pending += [(child, linkage) for child in node.children]
        elif node.type == "ERROR":
            return []  # macros that this grammar does not know: the compiler decides
    return [(line, count, linkage or declared_c) for line, count, linkage in found]


def _function_declarator(node: Any) -> Any:
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type in ("pointer_declarator", "reference_declarator"):
        declarator = declarator.child_by_field_name("declarator")
    return declarator if declarator is not None and declarator.type == "function_declarator" else None


def _name(declarator: Any) -> str:
    name = declarator.child_by_field_name("declarator")
    return name.text.decode(errors="replace") if name is not None else ""


def _count(declarator: Any, broken: bool) -> int | None:
    parameters = declarator.child_by_field_name("parameters")
    if parameters is None or parameters.has_error:
        return None
    declared = [child for child in parameters.named_children if "parameter" in child.type]
    if len(declared) == 1 and declared[0].text == b"void":
        return 0
    return len(declared)
