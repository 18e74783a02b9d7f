"""Index maps: resizing between two sizes, crops, pads, rolls, permutations, tables of rows, picks and packs."""

from __future__ import annotations

from slm.corpus.expressions import text
from slm.corpus.work import Work


class Gather(Work):
    """Every output computes where it reads, from its own place and sizes of its own."""

    name = "gather"
    kinds = ("float",) * 6 + ("double", "int", "int")

    def make(self) -> None:
        forms = (
            self.nearest, self.nearest, self.bilinear, self.bilinear, self.shrink, self.shrink, self.crop, self.permute,
            self.permute, self.rows_of_table, self.rows_of_table, self.roll, self.join, self.patches, self.remap,
            self.triangle,
        )  # fmt: skip
        self.rng.choice(forms)()

    def image(self) -> tuple[list[tuple[str, str]], str, str, str, str]:
        """(planes, height, width, new height, new width) with the axes of the new image."""
        rng = self.rng
        planes = []
        if rng.random() < 0.6:
            count = self.size(3, "channels planes C batch n nc depth")
            planes = [(self.name_of("c ch p plane b n"), count)]
        if planes and rng.random() < 0.2:
            planes.insert(0, (self.name_of("b n img batch_i"), self.size(2, "batch N images B")))
        h, w = self.size(19, "in_h src_h height h H ih rows_in"), self.size(23, "in_w src_w width w W iw cols_in")
        oh, ow = self.size(29, "out_h dst_h new_h oh H2 rows_out"), self.size(35, "out_w dst_w new_w ow W2 cols_out")
        self.axes = [*planes, (self.name_of("y oy r i dy"), oh), (self.name_of("x ox c j dx"), ow)]
        return planes, h, w, oh, ow

    def nearest(self) -> None:
        planes, h, w, oh, ow = self.image()
        rng, (y, _), (x, _) = self.rng, self.axes[-2], self.axes[-1]
        source = self.array("src in image input x", *(b for _, b in planes), h, w)
        target = self.result("dst out output resized y", *(b for _, b in self.axes))
        if rng.random() < 0.6:
            place = (f"{y} * {h} / {oh}", f"{x} * {w} / {ow}")
        else:
            place = (f"@imin({y} * {h} / {oh}, {h} - 1)", f"@imin({x} * {w} / {ow}, {w} - 1)")
        first, sy = self.declare("sy iy yy src_y ny0", place[0], "int")
        second, sx = self.declare("sx ix xx src_x nx0", place[1], "int")
        load = f"{source}«{self.at(*planes, (sy, h), (sx, w))}»"
        value = load if rng.random() < 0.7 else text(rng, self.kind, [load])
        self.plain = [first, second, f"{target}[{self.at(*self.axes)}] = {value};"]

    def bilinear(self) -> None:
        self.kind = "float" if self.kind == "int" else self.kind
        planes, h, w, oh, ow = self.image()
        rng, (y, _), (x, _) = self.rng, self.axes[-2], self.axes[-1]
        kind, num = self.kind, self.number
        source = self.array("src in image input x", *(b for _, b in planes), h, w)
        target = self.result("dst out output resized y", *(b for _, b in self.axes))
        sides = []
        lines = []
        aligned = rng.random() < 0.5
        for v, n, m, words in ((y, h, oh, ("fy gy sy", "y0 top iy0", "y1 bottom iy1", "wy ty ay")),
                               (x, w, ow, ("fx gx sx", "x0 left0 ix0", "x1 right0 ix1", "wx tx ax"))):  # fmt: skip
            cast = f"static_cast<{kind}>" if rng.random() < 0.5 else f"({kind})"
            ratio = f"{cast}({n} - 1) / {cast}({m} - 1)" if aligned else f"{cast}({n}) / {cast}({m})"
            # a sixteenth keeps a position off the whole numbers, where two ways of rounding would differ
            value = f"{v} * ({ratio}) + {num(0.0625)}" if aligned else f"({v} + {num(0.4375)}) * ({ratio})"
            line, f = self.declare(words[0], value)
            low, a = self.declare(words[1], f"@imin((int){f}, {n} - 1)", "int")
            high, b = self.declare(
                words[2], rng.choice((f"@imin({a} + 1, {n} - 1)", f"{a} + 1 < {n} ? {a} + 1 : {a}")), "int"
            )
            part, t = self.declare(words[3], f"{f} - {a}")
            lines += [line, low, high, part]
            sides.append((a, b, t))
        (y0, y1, ty), (x0, x1, tx) = sides
        one = num(1.0)
        loads = {(p, q): f"{source}«{self.at(*planes, (p, h), (q, w))}»" for p in (y0, y1) for q in (x0, x1)}
        if rng.random() < 0.5:
            upper, a = self.declare("top_v upper a v0", f"{loads[y0, x0]} * ({one} - {tx}) + {loads[y0, x1]} * {tx}")
            lower, b = self.declare(
                "bottom_v lower b0 v1", f"{loads[y1, x0]} * ({one} - {tx}) + {loads[y1, x1]} * {tx}"
            )
            lines += [upper, lower]
            value = rng.choice((f"{a} * ({one} - {ty}) + {b} * {ty}", f"{a} + {ty} * ({b} - {a})"))
        else:
            names = []
            for key, word in zip(loads, ("v00 a tl", "v01 b tr", "v10 c bl", "v11 d br"), strict=True):
                line, n = self.declare(word, loads[key])
                lines.append(line)
                names.append(n)
            v00, v01, v10, v11 = names
            value = (f"({one} - {ty}) * (({one} - {tx}) * {v00} + {tx} * {v01}) + "
                     f"{ty} * (({one} - {tx}) * {v10} + {tx} * {v11})")  # fmt: skip
        self.plain = [*lines, f"{target}[{self.at(*self.axes)}] = {value};"]

    def shrink(self) -> None:
        """Pooling with a kernel, a stride and clipped borders; the place of the largest may be kept too."""
        self.kind = "float" if self.kind == "int" else self.kind
        rng = self.rng
        planes = [(self.name_of("c ch p plane b"), self.size(3, "channels planes C batch nc"))]
        h, w = self.size(21, "height in_h h H"), self.size(33, "width in_w w W")
        oh, ow = self.size(10, "out_h oh pooled_h H_out"), self.size(16, "out_w ow pooled_w W_out")
        k = (
            self.fixed_size((3, 4, 5), "K KERNEL POOL WIN")
            if rng.random() < 0.4
            else self.size(3, "kernel k pool win size")
        )
        stride, pad = self.size(2, "stride s step"), self.size(1, "pad p padding") if rng.random() < 0.5 else ""
        (y, x) = self.name_of("oy y r i"), self.name_of("ox x c0 j")
        self.axes = [*planes, (y, oh), (x, ow)]
        source = self.array("x input in src feat", *(b for _, b in planes), h, w)
        target = self.result("y output out pooled dst", *(b for _, b in self.axes))
        (ky, kx), (sy, sx) = (
            (self.name_of("ky dy wy a0"), self.name_of("kx dx wx b0")),
            (self.name_of("iy sy"), self.name_of("ix sx")),
        )
        minus = f" - {pad}" if pad else ""
        lines = [
            f"{self.quiet}int {sy} = {y} * {stride} + {ky}{minus};",
            f"{self.quiet}int {sx} = {x} * {stride} + {kx}{minus};",
        ]
        load = f"{source}«{self.at(*planes, (sy, h), (sx, w))}»"
        test = f"{sy} >= 0 && {sy} < {h} && {sx} >= 0 && {sx} < {w}" if pad else f"{sy} < {h} && {sx} < {w}"
        acc = self.name_of("best sum acc m value")
        place = f"[{self.at(*self.axes)}]"
        self.around = [(ky, k), (kx, k)]
        roll = rng.random()
        if roll < 0.4:
            self.sums = [(acc, "max")]
            update = rng.choice(
                ([f"{acc} = @max({acc}, {load});"], [f"if ({load} > {acc}) {{", f"{acc} = {load};", "}"])
            )
            self.after = [f"{target}{place} = {acc};"]
        elif roll < 0.75:
            count = self.name_of("count n_in used hits")
            self.sums = [(acc, "sum"), (count, "sum")]
            update = [f"{acc} += {load};", f"{count} += {self.number(1.0)};"]
            self.after = [f"{target}{place} = {acc} / @max({count}, {self.number(1.0)});"]
        else:
            where = self.name_of("where arg at best_i place")
            index = self.result("index indices arg argmax_out where_out", *(b for _, b in self.axes), type="int")
            v = self.name_of("v value")
            low = self.starts("max")
            self.plain = [
                f"{self.kind} {acc} = {low};",
                f"int {where} = -1;",
                self.loop(ky, k),
                "@unroll",
                self.loop(kx, k),
                *lines,
                f"if ({test}) {{",
                f"{self.quiet}{self.kind} {v} = {load};",
                f"if ({v} > {acc}) {{",
                f"{acc} = {v};",
                f"{where} = {sy} * {w} + {sx};",
                "}",
                "}",
                "}",
                "}",
                f"{target}{place} = {acc};",
                f"{index}{place} = {where};",
            ]
            self.sums, self.around = [], []
            return
        self.inner = [*lines, f"if ({test}) {{", *update, "}"]
        if rng.random() < 0.3:
            out = f"{sy} < 0 || {sy} >= {h} || {sx} < 0 || {sx} >= {w}" if pad else f"{sy} >= {h} || {sx} >= {w}"
            self.inner = [*lines, f"if ({out}) {{", "continue;", "}", *update]

    def crop(self) -> None:
        """A part of an image with an offset, or an image with a frame round it."""
        planes, h, w, _, _ = self.image()
        rng, (y, _), (x, _) = self.rng, self.axes[-2], self.axes[-1]
        top, left = self.size(3, "top pad_t y_off oy0 offset_y"), self.size(4, "left pad_l x_off ox0 offset_x")
        source = self.array("src in image input", *(b for _, b in planes), h, w)
        target = self.result("dst out output padded cropped", *(b for _, b in self.axes))
        first, sy = self.declare("sy iy yy", f"{y} {rng.choice('-+')} {top}", "int")
        second, sx = self.declare("sx ix xx", f"{x} {rng.choice('-+')} {left}", "int")
        test = f"{sy} >= 0 && {sy} < {h} && {sx} >= 0 && {sx} < {w}"
        load, place = f"{source}«{self.at(*planes, (sy, h), (sx, w))}»", f"{target}[{self.at(*self.axes)}]"
        fill = self.factor("fill value pad_value") if rng.random() < 0.5 else self.zero
        lines = rng.choice((
            [f"{place} = {test} ? {load} : {fill};"],
            [f"if ({test}) {{", f"{place} = {load};", "} else {", f"{place} = {fill};", "}"],
            [f"{self.kind} pixel0 = {fill};", f"if ({test}) {{", f"pixel0 = {load};", "}", f"{place} = pixel0;"],
        ))  # fmt: skip
        self.plain = [first, second, *lines]

    def permute(self) -> None:
        """Axes in another order."""
        rng = self.rng
        rank = rng.choice((2, 3, 3, 4))
        words = ("batch B N n0", "heads H C channels d1", "seq T rows height d2", "dim D cols width d3")[4 - rank :]
        marks = ("b n i0", "h c k", "t r y i", "d x j w")[4 - rank :]
        values = (2, 3, 17, 21)[4 - rank :]
        self.axes = [(self.name_of(m), self.size(v, word)) for m, word, v in zip(marks, words, values, strict=True)]
        order = list(range(rank))
        while order == list(range(rank)):
            rng.shuffle(order)
        other = [self.axes[k] for k in order]
        source = self.array("src in x input a", *(b for _, b in self.axes))
        target = self.result("dst out y output permuted", *(b for _, b in other))
        load = f"{source}«{self.at(*self.axes)}»"
        value = load if rng.random() < 0.75 else text(rng, self.kind, [load])
        if rng.random() < 0.4:
            a, from_ = self.declare(
                "from src_i i_in at",
                self.at(*self.axes),
                "size_t" if "size_t" in self.cast else "long" if "long" in self.cast else "int",
            )
            b, to = self.declare(
                "to dst_i o_out dest",
                self.at(*other),
                "size_t" if "size_t" in self.cast else "long" if "long" in self.cast else "int",
            )
            self.plain = [a, b, f"{target}[{to}] = {source}«{from_}»;"]
        else:
            self.plain = [f"{target}[{self.at(*other)}] = {value};"]

    def rows_of_table(self) -> None:
        """Embeddings: a row of a table for every index, with a position's row, a scale or a sum of several."""
        rng = self.rng
        n, dim, vocab = (
            self.size(37, "n tokens count batch queries"),
            self.size(29, "dim d width features hidden"),
            self.size(50, "vocab rows table_rows entries"),
        )
        i, j = self.name_of("i t r token q"), self.name_of("j d c k f")
        self.axes = [(i, n), (j, dim)]
        table = self.array("table embedding weights src emb", vocab, dim)
        if rng.random() < 0.5:
            index = self.array("index ids idx token_ids lookup", n, type="int", values=vocab)
            line, row = self.declare("row id src_row r0", f"{index}«{i}»", "int")
            load = f"{table}«{self.at((row, vocab), (j, dim))}»"
            if rng.random() < 0.5:
                line = ""
                load = f"{table}«{self.at((f'{index}«{i}»', vocab), (j, dim))}»"
            if rng.random() < 0.4:
                position = self.array("pos position bias_rows", n, dim)
                load = f"{load} + {position}«{self.at((i, n), (j, dim))}»"
            elif rng.random() < 0.3:
                load = f"{load} * {self.factor()}"
            target = self.result("out y gathered output", n, dim)
            self.plain = [*([line] if line else []), f"{target}[{self.at(*self.axes)}] = {load};"]
            return
        per = self.size(4, "per bag k hops links")
        index = self.array("index ids idx neighbours bags", n, per, type="int", values=vocab)
        m, acc = self.name_of("m k p s"), self.name_of("sum acc total")
        weight = self.array("weight w score", n, per) if rng.random() < 0.5 else ""
        line, row = self.declare("row id src_row", f"{index}«{self.at((i, n), (m, per))}»", "int")
        self.sums, self.around = [(acc, "sum")], [(m, per)]
        scale = f" * {weight}«{self.at((i, n), (m, per))}»" if weight else ""
        self.inner = [line, f"{acc} += {table}«{self.at((row, vocab), (j, dim))}»{scale};"]
        target = self.result("out y pooled output", n, dim)
        self.after = [f"{target}[{self.at(*self.axes)}] = {acc};"]

    def roll(self) -> None:
        rng = self.rng
        r, c = self.name_of("r y i row"), self.name_of("c x j col")
        rows, cols = self.size(41, "rows height h m"), self.size(53, "cols width w n")
        self.axes = [(r, rows), (c, cols)]
        dy, dx = self.size(5, "shift_y dr roll_r down"), self.size(7, "shift_x dc roll_c right0")
        source, target = self.array("src in a x", rows, cols), self.result("dst out b y", rows, cols)
        if rng.random() < 0.5:
            first, p = self.declare("sr from_r rr", f"({r} + {dy}) % {rows}", "int")
            second, q = self.declare("sc from_c cc", f"({c} + {dx}) % {cols}", "int")
            self.plain = [
                first,
                second,
                f"{target}[{self.at(*self.axes)}] = {source}«{self.at((p, rows), (q, cols))}»;",
            ]
        else:
            self.sizes = [s for s in self.sizes if s not in (dy, dx)]
            flip = (f"{rows} - 1 - {r}" if rng.random() < 0.6 else r, f"{cols} - 1 - {c}")
            self.plain = [f"{target}[{self.at(*self.axes)}] = {source}«{self.at((flip[0], rows), (flip[1], cols))}»;"]

    def join(self) -> None:
        """Two arrays side by side."""
        rng = self.rng
        rows, a, b = (
            self.size(37, "rows n batch"),
            self.size(13, "na wa left_cols ca d1"),
            self.size(19, "nb wb right_cols cb d2"),
        )
        total = self.size(32, "nc total_cols width dims")
        r, c = self.name_of("r i row"), self.name_of("c j col")
        self.axes = [(r, rows), (c, total)]
        first, second = self.array("a left first x", rows, a), self.array("b right second z", rows, b)
        place = f"{self.result('out joined y', rows, total)}[{self.at(*self.axes)}]"
        one, two = f"{first}«{self.at((r, rows), (c, a))}»", f"{second}«{self.at((r, rows), (f'({c} - {a})', b))}»"
        self.plain = rng.choice((
            [f"{place} = {c} < {a} ? {one} : {two};"],
            [f"if ({c} < {a}) {{", f"{place} = {one};", "} else {", f"{place} = {two};", "}"],
        ))  # fmt: skip

    def patches(self) -> None:
        """The columns of an image's windows, as a convolution by a product wants them."""
        rng = self.rng
        ch, h, w = self.size(3, "channels c C"), self.size(12, "height h H"), self.size(15, "width w W")
        k, oh, ow = self.fixed_size((3,), "K KS FILTER"), self.size(12, "out_h oh"), self.size(15, "out_w ow")
        row, oy, ox = self.name_of("row col_i p q0"), self.name_of("y oy r"), self.name_of("x ox s")
        taps = self.size(27, "patch taps rows_out kk")
        self.axes = [(row, taps), (oy, oh), (ox, ow)]
        source, target = self.array("image x in", ch, h, w), self.result("columns cols out unrolled", taps, oh, ow)
        a, c = self.declare("ci ch0 channel", f"{row} / ({k} * {k})", "int")
        b, ky = self.declare("ky dy", f"{row} / {k} % {k}", "int")
        d, kx = self.declare("kx dx", f"{row} % {k}", "int")
        e, sy = self.declare("sy iy", f"{oy} + {ky} - 1", "int")
        f, sx = self.declare("sx ix", f"{ox} + {kx} - 1", "int")
        del rng
        test = f"{sy} >= 0 && {sy} < {h} && {sx} >= 0 && {sx} < {w}"
        load = f"{source}«{self.at((c, ch), (sy, h), (sx, w))}»"
        self.plain = [a, b, d, e, f, f"{target}[{self.at(*self.axes)}] = {test} ? {load} : {self.zero};"]

    def remap(self) -> None:
        """A place read from two tables, or turned about a centre by whole steps."""
        h, w = self.size(37, "height h rows"), self.size(41, "width w cols")
        y, x = self.name_of("y r i"), self.name_of("x c j")
        self.axes = [(y, h), (x, w)]
        map_y, map_x = (
            self.array("map_y ys dy_map", h, w, type="int", values=h),
            self.array("map_x xs dx_map", h, w, type="int", values=w),
        )
        source, target = self.array("src in image", h, w), self.result("dst out warped", h, w)
        a, at = self.declare(
            "i idx at place",
            self.at((y, h), (x, w)),
            "size_t" if "size_t" in self.cast else "long" if "long" in self.cast else "int",
        )
        load = f"{source}«{self.at((f'{map_y}«{at}»', h), (f'{map_x}«{at}»', w))}»"
        self.plain = [a, f"{target}[{at}] = {load};"]

    def triangle(self) -> None:
        """The part of a square below, above or near its diagonal."""
        rng = self.rng
        n = self.size(53, "n rows size order")
        i, j = self.name_of("i r row"), self.name_of("j c col")
        self.axes = [(i, n), (j, n)]
        source, target = self.array("a src m0 x", n, n), self.result("out b tri y", n, n)
        band = self.size(3, "k band diag bw") if rng.random() < 0.6 else ""
        test = rng.choice((f"{j} <= {i}", f"{j} > {i}"))
        if band:
            near = f"{i} - {j} <= {band} && {j} - {i} <= {band}"
            test = rng.choice((f"{j} - {i} <= {band}", near, f"{j} >= {i} + {band}"))
        load, place = f"{source}«{self.at(*self.axes)}»", f"{target}[{self.at(*self.axes)}]"
        self.plain = [f"{place} = {test} ? {load} : {rng.choice((self.zero, self.factor('fill value')))};"]
