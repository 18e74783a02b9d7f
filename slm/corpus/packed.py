"""Integers and packed bytes: quantised values and their products, pixels, bit fields, hashes."""

from __future__ import annotations

from slm.corpus.work import Work

BYTES = ("uint8_t", "uint8_t", "unsigned char")


class Packed(Work):
    """Arithmetic on bytes, nibbles and words, with the float scales that give them a meaning."""

    name = "packed"
    kinds = ("float",)

    def make(self) -> None:
        forms = (
            self.quantise, self.quantise, self.dequantise, self.nibbles, self.nibbles, self.contract, self.contract,
            self.pixels, self.pixels, self.blend, self.planes, self.bits, self.hash, self.hash, self.lookup,
            self.adjust,
        )  # fmt: skip
        self.rng.choice(forms)()

    def line(self, value: int = 1003) -> tuple[str, str]:
        n, i = self.size(value, "n count N length total pixels"), self.name_of("i idx t p")
        self.axes = [(i, n)]
        return i, n

    def to(self, type: str, value: str) -> str:
        return f"static_cast<{type}>({value})" if self.rng.random() < 0.5 else f"({type})({value})"

    def grid(self) -> tuple[str, str, str, str]:
        r, c = self.name_of("r row i y"), self.name_of("c col j x")
        rows, cols = self.size(37, "rows height m h"), self.size(64, "cols width n w")
        self.axes = [(r, rows), (c, cols)]
        return r, rows, c, cols

    def quantise(self) -> None:
        rng = self.rng
        sizes: tuple[str, ...]
        if rng.random() < 0.5:
            r, rows, c, cols = self.grid()
            x, scale = self.array("x in src a", rows, cols), self.array("scale scales inv_scale s", rows)
            load, factor, sizes = f"{x}«{self.at((r, rows), (c, cols))}»", f"{scale}«{r}»", (rows, cols)
        else:
            i, n = self.line()
            load, factor, sizes = f"{self.array('x in src', n)}«{i}»", self.factor("scale inv_scale s0"), (n,)
        signed = rng.random() < 0.6
        type, low, high = ("int8_t", -128, 127) if signed else ("uint8_t", 0, 255)
        if rng.random() < 0.2 and signed:
            type, low, high = "int", -127, 127
        y = self.result("q out quantised y", *sizes, type=type)
        first, v = self.declare("v scaled f t0", f"{load} * {factor} * 37.0f")
        place = f"{y}[{self.at(*self.axes)}]"
        roll = rng.random()
        rounded = rng.choice(("@rint({})", "@nearbyint({})", "@round({})"))
        if roll < 0.4:
            second, w = self.declare("w clipped r0", rounded.format(v))
            self.plain = [
                first,
                second,
                f"{place} = {self.to(type, f'{w} < {low}.0f ? {low}.0f : ({w} > {high}.0f ? {high}.0f : {w})')};",
            ]
        elif roll < 0.7:
            q = self.name_of("q0 level code k0")
            self.plain = [
                first,
                f"int {q} = {self.to('int', rounded.format(v))};",
                f"{q} = {q} < {low} ? {low} : {q};",
                f"{q} = {q} > {high} ? {high} : {q};",
                f"{place} = {self.to(type, q)};",
            ]
        else:
            self.plain = [first, f"{place} = {self.to(type, f'@min(@max({rounded.format(v)}, {low}.0f), {high}.0f)')};"]

    def dequantise(self) -> None:
        rng = self.rng
        r, rows, c, cols = self.grid()
        group = self.fixed_size((16, 32), "GROUP G BLOCK_Q") if rng.random() < 0.6 else ""
        type = rng.choice(("int8_t", "uint8_t", "int"))
        q = self.array("q w weights codes", rows, cols, type=type)
        if group:
            scale, zero = (
                self.array("scale scales s", rows, f"({cols}//{group})"),
                self.array("zero zeros zp", rows, f"({cols}//{group})", type=rng.choice(("int", "float"))),
            )
            line, g = self.declare(
                "g group_i b0",
                f"{self.at((r, rows), ('0', f'({cols} / {group})')).removesuffix(' + 0')} + {c} / {group}",
                "size_t" if "size_t" in self.cast else "long" if "long" in self.cast else "int",
            )
            lines = [line]
        else:
            per = rng.choice(((r, rows), (c, cols)))
            scale, zero = self.array("scale scales s", per[1]), self.array("zero zeros zp", per[1], type="int")
            g, lines = per[0], []
        y = self.result("out y w_out x", rows, cols)
        value = f"({q}«{self.at(*self.axes)}» - {zero}«{g}») * {scale}«{g}»"
        if rng.random() < 0.5:
            line, v = self.declare("v d level", f"{q}«{self.at(*self.axes)}» - {zero}«{g}»", "float")
            lines, value = [*lines, line], f"{v} * {scale}«{g}»"
        self.plain = [*lines, f"{y}[{self.at(*self.axes)}] = {value};"]

    def nibbles(self) -> None:
        """Four-bit codes, two in a byte or eight in a word."""
        rng = self.rng
        r, rows, c, cols = self.grid()
        wide = rng.random() < 0.4
        per, type = (8, "uint32_t") if wide else (2, "uint8_t")
        q = self.array("packed q codes words", rows, f"({cols}//{per})", type=type)
        scale = self.array("scale scales s", rows)
        first, word = self.declare(
            "word byte b0 pack",
            f"{q}«{self.at((r, rows), (f'{c} / {per}', f'({cols} / {per})'))}»",
            rng.choice(("int", "unsigned int")) if not wide else "uint32_t",
        )
        shift = f"({c} % {per}) * 4" if wide or rng.random() < 0.4 else f"({c} & 1) * 4"
        value = f"({word} >> ({shift})) & {rng.choice(('15', '0xF', '0xf', '0x0F'))}"
        if not wide and rng.random() < 0.4:
            value = f"{c} % 2 == 0 ? {word} & 15 : {word} >> 4"
        second, code = self.declare("code nib v level", self.to("int", value), "int")
        result = (
            f"{rng.choice(('(float)({0})', 'static_cast<float>({0})', '({0})')).format(f'{code} - 8')} * {scale}«{r}»"
        )
        if rng.random() < 0.5:
            y = self.result("out y w_out", rows, cols)
            self.plain = [first, second, f"{y}[{self.at(*self.axes)}] = {result};"]
            return
        x = self.array("x act vec", cols)
        acc = self.name_of("sum acc dot")
        self.axes, self.around, self.sums = [(r, rows)], [(c, cols)], [(acc, "sum")]
        self.inner = [first, second, f"{acc} += {result} * {x}«{c}»;"]
        self.after = [f"{self.result('out y', rows)}[{r}] = {acc};"]

    def contract(self) -> None:
        """Products of byte matrices, summed in integers, scaled at the end."""
        rng = self.rng
        self.kind = "int"
        vector = rng.random() < 0.35
        m, n, k = (
            self.size(37, "m rows M tokens"),
            "" if vector else self.size(45, "n cols N outs"),
            self.size(29, "k depth K inner"),
        )
        i, j, p = self.name_of("i r row"), self.name_of("j c col"), self.name_of("p t l kk")
        self.axes = [(i, m), *([] if vector else [(j, n)])]
        type = rng.choice(("int8_t", "int8_t", "uint8_t"))
        a = self.array("a x qa", m, k, type=type)
        flip = rng.random() < 0.5
        b = self.array("b w qb", *([k] if vector else [n, k] if flip else [k, n]), type=type)
        acc = self.name_of("sum acc dot total")
        left = f"{a}«{self.at((i, m), (p, k))}»"
        right = f"{b}«{p if vector else self.at((j, n), (p, k)) if flip else self.at((p, k), (j, n))}»"
        cast = rng.choice(("{}", "(int){}", "static_cast<int>({})"))
        self.sums, self.around = [(acc, "sum")], [(p, k)]
        zero = self.size(3, "zero_a zp za") if rng.random() < 0.3 else ""
        left_value = f"({cast.format(left)} - {zero})" if zero else cast.format(left)
        self.inner = [f"{acc} += {left_value} * {cast.format(right)};"]
        y = self.result("out y c_out", *([m] if vector else [m, n]), type="float")
        row_scale = self.array("sa scale_a row_scale", m, type="float")
        value = f"{rng.choice(('(float){}', 'static_cast<float>({})')).format(acc)} * {row_scale}«{i}»"
        if not vector and rng.random() < 0.6:
            value += f" * {self.array('sb scale_b col_scale', n, type='float')}«{j}»"
        self.after = [f"{y}[{self.at(*self.axes)}] = {value};"]

    def pixels(self) -> None:
        """Interleaved bytes into one value, or one into three."""
        rng = self.rng
        i, n = self.line()
        self.kind = "int"
        width = rng.choice((3, 3, 4))
        source = self.array("rgb image pixels src", str(width), n, type=rng.choice(BYTES))
        names = [self.name_of(w) for w in ("r red c0", "g green c1", "b blue c2")]
        weights = rng.choice(((77, 150, 29), (54, 183, 19), (66, 129, 25), (85, 85, 86)))
        order = names if rng.random() < 0.8 else names[::-1]
        lines = [f"{self.quiet}int {v} = {source}«{width} * {i}{f' + {k}' if k else ''}»;" for k, v in enumerate(order)]
        type = rng.choice(BYTES)
        if rng.random() < 0.55:
            y = self.result("gray luma out y", n, type=type)
            value = " + ".join(f"{w} * {v}" for w, v in zip(weights, names, strict=True))
            self.plain = [*lines, f"{y}[{i}] = {self.to(type, f'({value} + 128) >> 8')};"]
        else:
            y = self.result("out dst planar sepia", "3", n, type=type)
            gain = rng.randint(90, 250)
            outs = [
                f"@min({names[k]} * {gain} / 128 + {names[(k + 1) % 3]} / {rng.randint(2, 9)}, 255)" for k in range(3)
            ]
            places = (
                [f"{k} * {n} + {i}" if k else i for k in range(3)]
                if rng.random() < 0.5
                else [f"3 * {i}{f' + {k}' if k else ''}" for k in range(3)]
            )
            self.plain = [*lines, *(f"{y}[{p}] = {self.to(type, v)};" for p, v in zip(places, outs, strict=True))]

    def blend(self) -> None:
        rng = self.rng
        i, n = self.line()
        a, b, y = (
            self.array("fg a top", n, type="uint8_t"),
            self.array("bg b under", n, type="uint8_t"),
            self.result("out dst mixed", n, type="uint8_t"),
        )
        self.kind = "int"
        alpha = (
            f"{self.array('alpha mask cover', n, type='uint8_t')}«{i}»"
            if rng.random() < 0.6
            else str(rng.randint(20, 230))
        )
        form = rng.random()
        if form < 0.5:
            line, v = self.declare("v mix t0", f"{a}«{i}» * {alpha} + {b}«{i}» * (255 - {alpha}) + 127", "int")
            self.plain = [line, f"{y}[{i}] = {self.to('uint8_t', f'{v} / 255')};"]
        elif form < 0.75:
            line, v = self.declare("v sum0 s", f"{a}«{i}» + {b}«{i}»", "int")
            self.plain = [line, f"{y}[{i}] = {self.to('uint8_t', f'{v} > 255 ? 255 : {v}')};"]
        else:
            line, v = self.declare("d diff", f"{a}«{i}» - {b}«{i}»", "int")
            limit = rng.randint(5, 90)
            self.plain = [line, f"{y}[{i}] = ({v} < 0 ? -{v} : {v}) > {limit} ? 255 : 0;"]
        if not any(alpha in line for line in self.plain):
            self.inputs = [x for x in self.inputs if x.name not in alpha]

    def planes(self) -> None:
        """Bytes of interleaved images into normalised planes."""
        rng = self.rng
        ch, h, w = self.size(3, "channels c C"), self.size(19, "height h H"), self.size(31, "width w W")
        c, y, x = self.name_of("ch k p"), self.name_of("y r i"), self.name_of("x col j")
        self.axes = [(c, ch), (y, h), (x, w)]
        source = self.array("image src bytes", h, w, ch, type="uint8_t")
        mean, std = self.array("mean mu", ch), self.array("std inv_std sd", ch)
        out = self.result("out planes_out dst", ch, h, w)
        load = f"{source}«{self.at((y, h), (x, w), (c, ch))}»"
        value = f"({load} * (1.0f / 255.0f) - {mean}«{c}») {rng.choice('*/')} {std}«{c}»"
        self.plain = [f"{out}[{self.at(*self.axes)}] = {value};"]

    def bits(self) -> None:
        """Bits of words: counted, tested, spread, compared."""
        rng = self.rng
        self.kind = "int"
        roll = rng.random()
        if roll < 0.35:
            r, c = self.name_of("r row i"), self.name_of("w k word_i")
            rows, words = self.size(203, "rows n containers"), self.size(13, "words width nw")
            self.axes, self.around, acc = [(r, rows)], [(c, words)], self.name_of("count bits_n sum")
            a = self.array("a bitmap mask", rows, words, type="uint32_t")
            b = self.array("b other query", words, type="uint32_t")
            op = rng.choice("&^|")
            self.sums = [(acc, "sum")]
            self.inner = [f"{acc} += @popcount({a}«{self.at((r, rows), (c, words))}» {op} {b}«{c}»);"]
            self.after = [f"{self.result('out hits dist', rows, type='int')}[{r}] = {acc};"]
            return
        i, n = self.line()
        if roll < 0.65:
            mask = self.array("mask bits flags", f"({n} + 31)//32", type="uint32_t")
            x = self.array("x src values", n, type="float")
            y = self.result("out y", n, type="float")
            line, bit = self.declare("bit on keep", f"({mask}«{i} / 32» >> ({i} % 32)) & 1u", "uint32_t")
            self.plain = [line, f"{y}[{i}] = {bit} != 0 ? {x}«{i}» : {rng.choice(('0.0f', f'0.5f * {x}«{i}»'))};"]
            return
        a, b = self.array("x a xs", n, type="uint16_t"), self.array("y0 b ys", n, type="uint16_t")
        y = self.result("codes out keys", n, type="uint32_t")
        v = self.name_of("v t x0")
        w = self.name_of("w u y1")
        spread = [(8, "0x00ff00ffu"), (4, "0x0f0f0f0fu"), (2, "0x33333333u"), (1, "0x55555555u")]
        lines = [f"uint32_t {v} = {a}«{i}»;", f"uint32_t {w} = {b}«{i}»;"]
        for name in (v, w):
            lines += [f"{name} = ({name} | ({name} << {s})) & {m};" for s, m in spread]
        self.plain = [*lines, f"{y}[{i}] = {v} | ({w} << 1);"]

    def hash(self) -> None:
        """A mixer of bits above the function: random numbers from counters, buckets, dropout."""
        rng = self.rng
        i, n = self.line()
        name, v = self.names.take("function"), "v"
        rounds = []
        for shift, factor in zip(
            rng.sample((11, 13, 15, 16, 17), 3),
            rng.sample(("0x9e3779b1u", "0x27d4eb2du", "0x165667b1u", "2246822519u", "0xcc9e2d51u"), 3),
            strict=True,
        ):
            rounds += [f"{v} ^= {v} >> {shift};", f"{v} *= {factor};"]
        self.helpers.append(
            [
                f"@device uint32_t {name}(uint32_t {v}) {{",
                *rounds[: rng.choice((4, 6))],
                f"return {v} ^ ({v} >> {rng.choice((13, 15, 16))});",
                "}",
            ]
        )
        seed = rng.choice((f"{self.size(17, 'seed key offset')}", str(rng.randint(1, 9999))))
        line, h = self.declare(
            "h bits0 r0 state",
            f"{name}({rng.choice(('(uint32_t){0}', 'static_cast<uint32_t>({0})')).format(i)} + {seed}u)"
            if seed.isdigit()
            else f"{name}((uint32_t){i} * 2654435761u + (uint32_t){seed})",
            "uint32_t",
        )
        roll = rng.random()
        if roll < 0.4:
            y = self.result("out u values", n)
            self.plain = [
                line,
                f"{y}[{i}] = {self.to('float', f'{h} >> 8')} * (1.0f / 16777216.0f);",
            ]
        elif roll < 0.75:
            x, y, keep = self.array("x in src", n), self.result("out y dropped", n), self.factor("keep p rate")
            second, u = self.declare("u p0 draw", f"({h} >> 8) * (1.0f / 16777216.0f)")
            self.plain = [line, second, f"{y}[{i}] = {u} < {keep} * 0.5f ? {x}«{i}» / {keep} : 0.0f;"]
        else:
            keys, y = self.array("key keys ids", n, type="uint32_t"), self.result("bucket slots out", n, type="int")
            buckets = self.size(61, "buckets m slots_n")
            self.plain = [
                f"{self.quiet}uint32_t {h} = {name}({keys}«{i}»);",
                f"{y}[{i}] = {self.to('int', f'{h} % (uint32_t){buckets}')};",
            ]
            self.sizes = [s for s in self.sizes if s != seed]

    def lookup(self) -> None:
        """A table of 256 entries, with a gain."""
        rng = self.rng
        i, n = self.line()
        x, table = self.array("x image codes", n, type="uint8_t"), self.array("lut table map0", "256")
        y = self.result("out y", n)
        value = f"{table}«{x}«{i}»»"
        self.plain = [f"{y}[{i}] = {value}{rng.choice(('', f' * {self.factor()}'))};"]

    def adjust(self) -> None:
        """Contrast and brightness, gamma by steps, thresholds of two kinds."""
        rng = self.rng
        r, rows, c, cols = self.grid()
        self.kind = "int"
        x, y = (
            self.array("image src in", rows, cols, type="uint8_t"),
            self.result("out dst", rows, cols, type="uint8_t"),
        )
        gain, shift = self.size(5, "gain contrast a0"), self.size(9, "shift brightness b0")
        line, v = self.declare("v p t0", f"{x}«{self.at(*self.axes)}»", "int")
        second, w = self.declare("w u q0", f"(({v} - 128) * {gain} >> 2) + 128 + {shift}", "int")
        value = rng.choice((f"@min(@max({w}, 0), 255)", f"{w} < 0 ? 0 : ({w} > 255 ? 255 : {w})"))
        self.plain = [line, second, f"{y}[{self.at(*self.axes)}] = {self.to('uint8_t', value)};"]
        del r, c
