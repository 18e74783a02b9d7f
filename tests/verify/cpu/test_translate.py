"""What the translator rewrites, what it leaves alone, and that lines keep their numbers."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verify.cpu.refusals import unsupported
from verify.cpu.translate import TranslationError, translate

KERNEL = "__global__ void k(int n) {}\n"


def rewritten(source: str) -> str:
    return re.sub(r"\s+", " ", translate(source).text).strip()


@pytest.mark.parametrize(
    ("launch", "expected"),
    [
        ("k<<<1, 2>>>(n);", '::regraph::Launch(2, "k", ::regraph::address(k), 1, 2)(REGRAPH_CALL(k), n);'),
        ("k<<<g, b, s, st>>>();", '::regraph::Launch(2, "k", ::regraph::address(k), g, b, s, st)(REGRAPH_CALL(k));'),
        (
            "k<<<dim3(1, f(2)), n >> 2>>>(n);",
            '::regraph::Launch(2, "k", ::regraph::address(k), dim3(1, f(2)), n >> 2)(REGRAPH_CALL(k), n);',
        ),
        ("k<<<a<b<int>>>>>(n);", '::regraph::Launch(2, "k", ::regraph::address(k), a<b<int>>)(REGRAPH_CALL(k), n);'),
        (
            "other::k<(3 > 2), int><<<1, 2>>>(n);",
            '::regraph::Launch(2, "other::k<(3 > 2), int>", nullptr, 1, 2)(REGRAPH_CALL(other::k<(3 > 2), int>), n);',
        ),
        ("(*pointer)<<<1, 2>>>(n);", '::regraph::Launch(2, "(*pointer)", nullptr, 1, 2)(REGRAPH_CALL((*pointer)), n);'),
        ("table[i]<<<1, 2>>>(n);", '::regraph::Launch(2, "table[i]", nullptr, 1, 2)(REGRAPH_CALL(table[i]), n);'),
        (
            "if (n) k <<< 1, 2 >>> (n);",
            'if (n) ::regraph::Launch(2, "k", ::regraph::address(k), 1, 2)(REGRAPH_CALL(k), n);',
        ),
        (
            "return k<<<1, 2>>>(n);",
            'return ::regraph::Launch(2, "k", ::regraph::address(k), 1, 2)(REGRAPH_CALL(k), n);',
        ),
    ],
)
def test_launches(launch: str, expected: str) -> None:
    without_spaces = "".join(rewritten(KERNEL + launch).split())
    assert without_spaces == "".join((KERNEL + expected).split())


@pytest.mark.parametrize(
    "text",
    [
        "// k<<<1, 2>>>(n)",
        "/* __shared__ int x; */",
        'auto s = "k<<<1>>>()";',
        'auto s = R"x(extern __shared__ int a[];)x";',
    ],
)
def test_comments_and_literals_stay(text: str) -> None:
    assert translate(text).text == text + "\n"
    assert translate(text).launches == 0


def test_template_kernels_have_an_address_only_with_all_their_arguments() -> None:
    source = "template <int N, class T = float> __global__ void k(T* p) {}\n"
    assert "address(k<4, int>)" in translate(source + "k<4, int><<<1, 2>>>(p);").text
    assert "nullptr" in translate(source + "k<<<1, 2>>>(p);").text
    variadic = "template <class... T> __global__ void k(T... p) {}\n"
    assert "nullptr" in translate(variadic + "k<int><<<1, 2>>>(p);").text


def test_overloaded_kernels_have_no_address() -> None:
    assert (
        "nullptr"
        in translate("__global__ void k(int n) {}\n__global__ void k(float x) {}\nvoid f() { k<<<1, 2>>>(3); }").text
    )


def test_a_forward_declaration_is_no_overload() -> None:
    assert (
        "address(k)"
        in translate("__global__ void k(int n);\n__global__ void k(int n) {}\nvoid f() { k<<<1, 2>>>(3); }").text
    )


def test_static_shared_memory_gets_a_red_zone() -> None:
    assert "REGRAPH_RED_ZONE __shared__ float a[4], b[4];" in rewritten("void f() { __shared__ float a[4], b[4]; }")
    assert "REGRAPH_RED_ZONE volatile __shared__ int s[8];" in rewritten("void f() { volatile __shared__ int s[8]; }")
    assert rewritten("void f() { static __shared__ int s[8]; }").count("static") == 0


@pytest.mark.parametrize(
    ("declaration", "element"),
    [
        ("extern __shared__ float s[];", "float"),
        ("extern __shared__ __align__(16) unsigned char s[];", "unsigned char"),
        ("extern __shared__ alignas(16) float4 s[];", "float4"),
        ("__shared__ extern volatile int s[];", "volatile int"),
    ],
)
def test_dynamic_shared_memory_in_a_function(declaration: str, element: str) -> None:
    assert (
        rewritten(f"void f() {{ {declaration} }}")
        == f"void f() {{ {element}* s = ::regraph::dynamic_shared_as<{element}>(); }}"
    )


def test_dynamic_shared_memory_at_file_scope() -> None:
    text = rewritten("namespace a { extern __shared__ float s[];\nvoid f() { s[0] = q.s; } }")
    assert "(::regraph::dynamic_shared_as<float>())[0] = q.s" in text
    assert "__shared__" not in text


def test_unroll_pragmas() -> None:
    assert "unroll" not in translate("#pragma unroll 4\nfor (;;) {}").text
    assert "#pragma GCC unroll 4\n" in translate("#pragma unroll 4\nfor (;;) {}", unroll=True).text
    assert "#pragma GCC unroll 1\n" in translate("#pragma nounroll\nfor (;;) {}", unroll=True).text


def test_constants_are_named() -> None:
    assert translate("__constant__ float a[4], b; __constant__ __align__(16) int c = 3;").constants == {"a", "b", "c"}


def test_what_cannot_be_read_is_an_error() -> None:
    with pytest.raises(TranslationError, match="line 2"):
        translate("\nk<<<1, 2>>>(n;")
    with pytest.raises(TranslationError, match="line 1"):
        translate("void f() { extern __shared__ float s[][32]; }")


CODE = st.lists(
    st.sampled_from(
        [
            "k<<<1, 2>>>(n);",
            "// <<<",
            "\n",
            "{",
            "}",
            "__shared__ int s[4];",
            "extern __shared__ int d[];",
            "#pragma unroll\n",
            '"<<<"',
            "int x = a < b;",
            "__global__ void k(int n) {}",
        ]
    )
).map("\n".join)


@given(CODE)
def test_lines_keep_their_numbers(source: str) -> None:
    try:
        text = translate(source).text
    except TranslationError:
        return
    assert text.count("\n") == source.count("\n") + 1


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ('void f() { asm volatile("bar.sync 0;"); }', "inline assembly"),
        ("\n#include <cub/cub.cuh>", "cub or thrust (`cub/cub.cuh`, line 2)"),
        ("#include <mma.h>", "tensor cores"),
        ("#include <cuda/barrier>", "libcu++"),
        ("auto g = cooperative_groups::this_grid();", "grid-wide barriers"),
        ("cudaTextureObject_t t;", "textures"),
        ("__pipeline_memcpy_async(a, b, 16);", "asynchronous copies"),
    ],
)
def test_unsupported_constructs_are_named(source: str, reason: str) -> None:
    assert reason in unsupported(source)


def test_comments_and_strings_are_supported() -> None:
    assert unsupported('// asm volatile\nconst char* s = "asm"; /* cub:: */') == ""
