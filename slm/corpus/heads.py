"""Batch × head × sequence × depth: scores, mixtures, rotations, gates, with the index arithmetic written out."""

from __future__ import annotations

from slm.corpus.work import WIDE_CASTS, Axis, Work


class Heads(Work):
    """What the layers of a sequence model do with four-dimensional arrays."""

    name = "heads"

    def make(self) -> None:
        self.cast = self.rng.choice(WIDE_CASTS[2:])
        self.b: Axis = (self.name_of("b n batch_i bi"), self.size(2, "batch B nb N"))
        self.h: Axis = (self.name_of("h head hd hi"), self.size(3, "heads H nh num_heads"))
        self.t: Axis = (self.name_of("t i s q pos"), self.size(17, "seq T seq_len S L len_q"))
        self.d: Axis = (self.name_of("d k c e"), self.size(10, "dim D head_dim depth hd_size"))
        self.rng.choice(
            (self.scores, self.scores, self.mix, self.mix, self.rotate, self.swap, self.gate, self.step, self.grouped)
        )()

    def order(self) -> list[Axis]:
        """How an array lies: heads before the sequence or after it."""
        return [self.b, self.h, self.t, self.d] if self.heads_first else [self.b, self.t, self.h, self.d]

    @property
    def heads_first(self) -> bool:
        if not hasattr(self, "_first"):
            self._first = self.rng.random() < 0.6
        return self._first

    def tensor(self, words: str, *, out: bool = False) -> str:
        return self.array(words, *(b for _, b in self.order()), kind="output" if out else "input")

    def where(self, t: str, d: str) -> str:
        values = {self.t[1]: t, self.d[1]: d}
        return self.at(*((values.get(bound, v), bound) for v, bound in self.order()))

    def other(self) -> str:
        return self.name_of("j m p u key_i")

    def scores(self) -> None:
        """Scaled products of queries and keys, a later key perhaps left out."""
        rng = self.rng
        q, k, j = self.tensor("q query Q"), self.tensor("k0 key K"), self.other()
        (t, seq), (d, dim) = self.t, self.d
        target = self.result("scores att logits out", self.b[1], self.h[1], seq, seq)
        self.axes = [self.b, self.h, self.t, (j, seq)]
        acc = self.name_of("sum dot acc s0")
        scale = (
            self.factor("scale inv_sqrt_d norm")
            if rng.random() < 0.6
            else f"{self.number(1.0)} / @sqrt(({self.kind}){dim})"
        )
        self.sums, self.around = [(acc, "sum")], [self.d]
        self.inner = [f"{acc} += {q}«{self.where(t, d)}» * {k}«{self.where(j, d)}»;"]
        place = f"{target}[{self.at(*self.axes)}]"
        value = f"{acc} * {scale}" if "/" not in scale else f"{acc} * ({scale})"
        low = self.number(-1e9)
        roll = rng.random()
        if roll < 0.4:
            self.after = [f"{place} = {j} <= {t} ? {value} : {low};"]
        elif roll < 0.6:
            slope = self.array("slope slopes alibi", self.h[1])
            self.after = [f"{place} = {value} + {slope}«{self.h[0]}» * ({self.kind})({j} - {t});"]
        else:
            self.after = [f"{place} = {value};"]
        if roll < 0.2:
            self.before = [f"if ({j} > {t}) {{", f"{place} = {low};", "@skip", "}"]
            self.after = [f"{place} = {value};"]
            self.plain = self.threaded()
            self.sums, self.around = [], []

    def mix(self) -> None:
        """A mixture of values by weights, of all places or of the earlier ones."""
        rng = self.rng
        v, j = self.tensor("v value V"), self.other()
        (t, seq), (d, _) = self.t, self.d
        w = self.array("p att weights prob", self.b[1], self.h[1], seq, seq)
        target = self.tensor("out y o context", out=True)
        self.axes = self.order()
        acc = self.name_of("sum acc total")
        self.sums, self.around = [(acc, "sum")], [(j, seq)]
        weight = f"{w}«{self.at(self.b, self.h, self.t, (j, seq))}»"
        update = f"{acc} += {weight} * {v}«{self.where(j, d)}»;"
        if rng.random() < 0.35:
            self.inner = [f"if ({j} <= {t}) {{", update, "}"]
        elif rng.random() < 0.3:
            width = self.size(5, "window reach span_w")
            self.inner = [f"if ({j} > {t} - {width} && {j} <= {t}) {{", update, "}"]
        else:
            self.inner = [update]
        self.after = [f"{target}[{self.where(t, d)}] = {acc};"]

    def rotate(self) -> None:
        """Pairs of a head's entries turned by tables of cosines and sines: neighbours, or halves."""
        rng = self.rng
        (t, seq), (_, dim) = self.t, self.d
        half = self.size(5, "half half_dim pairs hd2")
        i = self.name_of("i p r0 c0")
        x, y = self.tensor("x q src in"), self.tensor("out y dst", out=True)
        cos, sin = self.array("cos_t cosine c_tab", seq, half), self.array("sin_t sine s_tab", seq, half)
        pair = (i, half)
        self.axes = [(v, b) if b != dim else pair for v, b in self.order()]
        first, second = (f"2 * {i}", f"2 * {i} + 1") if rng.random() < 0.5 else (i, f"{i} + {half}")
        base_line, base = self.declare(
            "base row0 at", self.where(t, "0").removesuffix(" + 0"), self.rng.choice(("size_t", "long"))
        )
        low, a = self.declare("a x0 u", f"{x}«{base} + {first}»")
        high, b = self.declare("b0 x1 w", f"{x}«{base} + {second}»")
        place = self.at(self.t, pair)
        one, c = self.declare("c1 co cs", f"{cos}«{place}»")
        two, s = self.declare("s1 si sn", f"{sin}«{place}»")
        self.plain = [
            base_line, one, two, low, high,
            f"{y}[{base} + {first}] = {a} * {c} - {b} * {s};",
            f"{y}[{base} + {second}] = {a} * {s} + {b} * {c};",
        ]  # fmt: skip

    def swap(self) -> None:
        """From the joint projection to separate heads, or back."""
        rng = self.rng
        source = self.tensor("x qkv in src")
        bounds = [self.b, self.t, self.h, self.d] if self.heads_first else [self.b, self.h, self.t, self.d]
        target = self.result("out y dst split", *(b for _, b in bounds))
        self.axes = self.order() if rng.random() < 0.5 else bounds
        load = f"{source}«{self.where(self.t[0], self.d[0])}»"
        if rng.random() < 0.5:
            bias = self.array("bias b1 offset", self.h[1], self.d[1])
            load += f" + {bias}«{self.at(self.h, self.d)}»"
        self.plain = [f"{target}[{self.at(*bounds)}] = {load};"]

    def gate(self) -> None:
        """Two inputs, one through a function, with a scale of each head."""
        rng, one = self.rng, self.number(1.0)
        x, g, y = self.tensor("x up a"), self.tensor("g gate z"), self.tensor("out y", out=True)
        scale = self.array("scale gain w", self.h[1])
        line, at = self.declare("idx at i0 offset", self.where(self.t[0], self.d[0]), rng.choice(("size_t", "long")))
        second, v = self.declare("v gv z0", f"{g}«{at}»")
        value = rng.choice(
            (f"{v} / ({one} + @exp(-{v}))", f"@max({v}, {self.zero})", f"@tanh({v})", f"{one} / ({one} + @exp(-{v}))")
        )
        self.axes = self.order()
        self.plain = [line, second, f"{y}[{at}] = {x}«{at}» * ({value}) * {scale}«{self.h[0]}»;"]

    def step(self) -> None:
        """One new query against all kept keys, with its softmax in two passes a head."""
        (b, batch), (h, heads), (_, seq), (d, dim) = self.b, self.h, self.t, self.d
        j, rng = self.other(), self.rng
        q = self.array("q query", batch, heads, dim)
        k = self.array("k_cache keys kc", batch, heads, seq, dim)
        y = self.result("out scores att", batch, heads, seq)
        high, total, s = self.name_of("mx peak top"), self.name_of("sum den"), self.name_of("s0 dot score")
        row = f"{y}[{self.at(self.b, self.h, (j, seq))}]"
        scale = self.factor("scale inv")
        self.axes = [self.b, self.h]
        self.plain = [
            f"{self.kind} {high} = {self.starts('max')};",
            self.loop(j, seq),
            f"{self.kind} {s} = {self.zero};",
            "@unroll",
            self.loop(d, dim),
            f"{s} += {q}«{self.at(self.b, self.h, self.d)}» * {k}«{self.at(self.b, self.h, (j, seq), self.d)}»;",
            "}",
            f"{row} = {s} * {scale};",
            f"{high} = @max({high}, {row});",
            "}",
            f"{self.kind} {total} = {self.zero};",
            self.loop(j, seq),
            f"{row} = @exp({row} - {high});",
            f"{total} += {row};",
            "}",
            self.loop(j, seq),
            rng.choice((f"{row} /= {total};", f"{row} = {row} / {total};")),
            "}",
        ]
        del b, h

    def grouped(self) -> None:
        """Keys shared by groups of heads."""
        (b, batch), (h, heads), (t, seq), (d, dim) = self.b, self.h, self.t, self.d
        shared = self.size(3, "kv_heads groups nkv")
        q, k = self.array("q query", batch, heads, seq, dim), self.array("k0 key", batch, shared, seq, dim)
        j, acc, g = self.other(), self.name_of("sum acc dot"), self.name_of("g kvh hk")
        y = self.result("scores out", batch, heads, seq, seq)
        self.axes = [self.b, self.h, self.t, (j, seq)]
        self.before = [f"{self.quiet}int {g} = {h} * {shared} / {heads};"]
        self.sums, self.around = [(acc, "sum")], [self.d]
        left, right = self.at(self.b, self.h, self.t, self.d), self.at(self.b, (g, shared), (j, seq), self.d)
        self.inner = [f"{acc} += {q}«{left}» * {k}«{right}»;"]
        self.after = [f"{y}[{self.at(*self.axes)}] = {acc} * {self.factor('scale norm')};"]
        del b, t, d
