"""Is a candidate's function the task's? A quick look at the text first, then a proof that the compiler makes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from verify.task import Task

#: Two types agree when they are the same, or integers of one width and signedness; `const` of a pointee is free.
_TRAITS = """
#include <type_traits>
namespace regraph_signature {
template <class A, class B> struct agree {
    static constexpr bool value = std::is_same<A, B>::value ||
        (std::is_integral<A>::value && std::is_integral<B>::value && sizeof(A) == sizeof(B) && std::is_signed<A>::value == std::is_signed<B>::value);
};
template <class A, class B> struct agree<A*, B*> : agree<std::remove_cv_t<A>, std::remove_cv_t<B>> {};
template <class F, class G> struct same { static constexpr bool value = false; };
template <class... A, class... B> struct same<void (*)(A...), void (*)(B...)> {
    template <bool Same, class = void> struct each { static constexpr bool value = false; };
    template <class Nothing> struct each<true, Nothing> { static constexpr bool value = (agree<A, B>::value && ...); };
    static constexpr bool value = each<sizeof...(A) == sizeof...(B)>::value;
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
        f"static_assert(regraph_signature::same<decltype(&::{task.function}), void (*)({types})>::value, "
        f'"the signature is not: {expected}");\n'
    )


def mismatch(task: Task, source: str) -> str:
    """What is plainly wrong with the candidate's signature, with its line; empty when nothing is, or when it is not plain."""
    found = _definitions(source, task.function)
    if not found:
        if task.function not in source:
            return f"it does not define `{task.function}`; wanted: {task.signature}"
        return ""
    for line, count, linkage in found:
        if count is not None and count != len(task.parameters):
            continue
        if not linkage:
            return f'line {line}: `{task.function}` is not declared extern "C"; wanted: {task.signature}'
        return ""
    line, count, _ = found[0]
    return f"line {line}: `{task.function}` takes {count} parameters, not {len(task.parameters)}; wanted: {task.signature}"


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
        if node.type in ("translation_unit", "linkage_specification", "declaration_list", "preproc_ifdef", "preproc_if", "preproc_else", "preproc_elif"):
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
