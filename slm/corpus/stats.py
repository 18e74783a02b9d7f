"""Rows as networks and surveys have them: statistics in several passes, then a use of them."""

from __future__ import annotations

from typing import ClassVar

from slm.corpus.family import Argument
from slm.corpus.rowwise import Rows


class Stats(Rows):
    """Norms with saved moments, masked and weighted statistics, losses, gradients of softmax, comparisons of rows."""

    name = "stats"
    forms: ClassVar[tuple[str, ...]] = (
        "layer", "layer", "planes", "masked", "loss", "weighted", "spread", "gradient", "compare", "entropy", "scaled",
        "ragged",
    )  # fmt: skip

    def keep(self, words: str, value: str, type: str = "") -> None:
        """A further value of every row, written where a program saves it."""
        name = self.names.prefer(words.split())
        self.more.append(Argument("output", type or self.kind, name, self.rows))
        self.saved.append(f"{name}[{self.row}] = {value};")

    def of_row(self, words: str, type: str, values: str = "") -> str:
        name = self.names.prefer(words.split())
        self.inputs.append(Argument("input", type, name, self.rows, values))
        return f"{name}«{self.row}»"

    def word_of(self, words: str) -> str:
        return self.names.prefer(words.split())

    def number(self, value: float) -> str:
        return f"{value}f" if self.kind == "float" else f"{value}"

    def moments(self, load: str) -> tuple[str, str]:
        """Mean and reciprocal deviation, in two passes or one."""
        rng = self.rng
        mean, spread = self.word_of("mean mu avg m0"), self.word_of("var variance rstd inv_std sq")
        eps, one = self.tiny(), self.number(1.0)
        self.stages.append((mean, "sum", [f"{mean} += {load};"], f"{mean} / {self.columns}"))
        if rng.random() < 0.7:
            d = self.word_of("d diff delta centred")
            update = [f"{rng.choice(('', 'const '))}{self.kind} {d} = {load} - {mean};", f"{spread} += {d} * {d};"]
            post = f"{one} / @sqrt({spread} / {self.columns} + {eps})"
        else:
            update = [f"{spread} += {load} * {load};"]
            post = f"{one} / @sqrt(@max({spread} / {self.columns} - {mean} * {mean}, {self.zero}) + {eps})"
        self.stages.append((spread, "sum", update, post))
        return mean, spread

    def layer(self) -> None:
        rng = self.rng
        self.per_element = True
        load = self.matrix()
        if rng.random() < 0.25:
            load = f"({load} + {self.matrix()})"
        mean, spread = self.moments(load)
        if rng.random() < 0.6:
            self.keep("mean_out saved_mean means mu_out", mean)
            self.keep("rstd saved_rstd inv_out scales", spread)
        value = f"({load} - {mean}) * {spread}"
        if rng.random() < 0.7:
            value += f" * {self.vector()}"
            value += f" + {self.vector()}" if rng.random() < 0.7 else ""
        self.tail = [f"{self.target()} = {value};"]

    def planes(self) -> None:
        """Every plane of a batch of images: the weights belong to its channel."""
        self.per_element = True
        load = self.matrix()
        channels, c = self.word_of("channels C nc groups"), self.word_of("c ch channel g")
        self.dims[channels] = 5
        self.more.append(Argument("size", "int", channels, channels))
        self.size_type = "int"
        self.heads.append(f"const int {c} = {self.row} % {channels};")
        names = [self.names.take("input") for _ in range(2)]
        self.inputs += [Argument("input", self.kind, n, channels) for n in names]
        mean, spread = self.moments(load)
        self.tail = [f"{self.target()} = ({load} - {mean}) * {spread} * {names[0]}«{c}» + {names[1]}«{c}»;"]

    def masked(self) -> None:
        """Softmax over the places that a mask allows, with a scale."""
        rng = self.rng
        self.per_element = True
        load = f"{self.matrix()} * {self.scalar()}"
        mask = self.names.prefer(("mask", "keep", "valid", "attend"))
        self.inputs.append(Argument("input", "int", mask, self.columns))
        test = f"{mask}«{self.column}» % 4 != 0"
        high, total = self.word_of("mx peak row_max m"), self.word_of("sum den total z")
        self.stages.append((high, "max", [f"if ({test}) {{", f"{high} = @max({high}, {load});", "}"], ""))
        self.stages.append((total, "sum", [f"if ({test}) {{", f"{total} += @exp({load} - {high});", "}"], ""))
        one = self.number(1.0)
        value = f"@exp({load} - {high}) / @max({total}, {self.number(1e-20)})"
        self.tail = [f"{self.target()} = {test} ? {value} : {self.zero};"]
        if rng.random() < 0.3:
            self.keep("lse log_sum norms", f"@log({total} + {one})")

    def loss(self) -> None:
        """Cross-entropy of a row's label."""
        rng = self.rng
        self.per_element = False
        load = self.matrix()
        label = self.of_row("label target labels y_true cls", "int", self.columns)
        high, total = self.word_of("mx peak row_max m"), self.word_of("sum den total z")
        self.stages.append((high, "max", [f"{high} = @max({high}, {load});"], ""))
        self.stages.append((total, "sum", [f"{total} += @exp({load} - {high});"], ""))
        chosen = self.word_of("picked chosen x_t logit")
        at = load.replace(f"{self.column}»", f"{label}»")
        self.tail = [
            f"{rng.choice(('const ', ''))}{self.kind} {chosen} = {at};",
            f"{self.out}[{self.row}] = @log({total}) + {high} - {chosen};",
        ]
        if rng.random() < 0.4:
            self.keep("prob confidence p_out", f"{self.number(1.0)} / {total}")

    def weighted(self) -> None:
        """Weighted mean and variance."""
        self.per_element = False
        load, weight = self.matrix(), self.vector()
        total, mean, var = (
            self.word_of("wsum w_total mass n_eff"),
            self.word_of("mean mu avg"),
            self.word_of("var spread m2"),
        )
        self.stages.append((total, "sum", [f"{total} += {weight};"], ""))
        self.stages.append((mean, "sum", [f"{mean} += {weight} * {load};"], f"{mean} / {total}"))
        d = self.word_of("d diff delta")
        self.stages.append(
            (
                var,
                "sum",
                [f"const {self.kind} {d} = {load} - {mean};", f"{var} += {weight} * {d} * {d};"],
                f"{var} / {total}",
            )
        )
        self.keep("means mean_out centre", mean)
        self.tail = [f"{self.out}[{self.row}] = {self.rng.choice((var, f'@sqrt({var})'))};"]

    def spread(self) -> None:
        """Values moved into the range of their row."""
        rng = self.rng
        self.per_element = True
        load = self.matrix()
        low, high = self.word_of("lo mn row_min"), self.word_of("hi mx row_max")
        self.stages.append((low, "min", [f"{low} = @min({low}, {load});"], ""))
        self.stages.append((high, "max", [f"{high} = @max({high}, {load});"], ""))
        if rng.random() < 0.5:
            self.keep("mins low_out zero_points", low)
            self.keep("ranges scale_out widths", f"{high} - {low}")
        self.tail = [f"{self.target()} = ({load} - {low}) / ({high} - {low} + {self.tiny()});"]

    def gradient(self) -> None:
        """Backward passes: of softmax, of a norm."""
        rng = self.rng
        self.per_element = True
        y, dy = self.matrix(), self.matrix()
        dot = self.word_of("dot sum acc inner_sum")
        self.stages.append((dot, "sum", [f"{dot} += {y} * {dy};"], ""))
        if rng.random() < 0.5:
            self.tail = [f"{self.target()} = {y} * ({dy} - {dot});"]
            return
        scale, other = self.of_row("rstd inv scales", self.kind), self.word_of("mean_dy total_dy sum_dy")
        self.stages.append((other, "sum", [f"{other} += {dy};"], f"{other} / {self.columns}"))
        self.tail = [f"{self.target()} = {scale} * ({dy} - {other} - {y} * {dot} / {self.columns});"]

    def compare(self) -> None:
        """Two matrices row by row: cosine, distance, correlation, divergence."""
        rng = self.rng
        self.per_element = False
        a, b = self.matrix(), self.matrix()
        roll = rng.random()
        if roll < 0.4:
            names = [self.word_of(w) for w in ("dot ab sum", "aa na sq_a", "bb nb sq_b")]
            for n, (p, q) in zip(names, ((a, b), (a, a), (b, b)), strict=True):
                self.stages.append((n, "sum", [f"{n} += {p} * {q};"], ""))
            dot, na, nb = names
            self.tail = [f"{self.out}[{self.row}] = {dot} / (@sqrt({na}) * @sqrt({nb}) + {self.tiny()});"]
        elif roll < 0.7:
            acc, d = self.word_of("sum acc dist"), self.word_of("d diff e")
            self.stages.append((acc, "sum", [f"const {self.kind} {d} = {a} - {b};", f"{acc} += {d} * {d};"], ""))
            worst = self.word_of("worst peak max_err")
            if rng.random() < 0.5:
                self.stages.append((worst, "max", [f"{worst} = @max({worst}, @abs({a} - {b}));"], ""))
                self.keep("max_error worst_out linf", worst)
            self.tail = [f"{self.out}[{self.row}] = {rng.choice((f'@sqrt({acc})', f'{acc} / {self.columns}'))};"]
        else:
            acc = self.word_of("kl sum acc")
            self.stages.append((acc, "sum", [f"{acc} += {a} * (@log({a}) - @log({b}));"], ""))
            self.tail = [f"{self.out}[{self.row}] = {acc};"]

    def entropy(self) -> None:
        self.per_element = False
        load = self.matrix()
        total, h, p = self.word_of("total mass sum"), self.word_of("entropy h acc"), self.word_of("p share q")
        self.stages.append((total, "sum", [f"{total} += {load};"], ""))
        self.stages.append((h, "sum", [f"const {self.kind} {p} = {load} / {total};", f"{h} -= {p} * @log({p});"], ""))
        self.tail = [f"{self.out}[{self.row}] = {h};"]

    def scaled(self) -> None:
        """Rows brought to length one, or to a largest length."""
        rng = self.rng
        self.per_element = True
        load, acc = self.matrix(), self.word_of("norm len sum scale0 length")
        form = rng.choice(("l2", "l1", "clip", "max"))
        update = {"l1": f"{acc} += @abs({load});", "max": f"{acc} = @max({acc}, @abs({load}));"}.get(
            form, f"{acc} += {load} * {load};"
        )
        one = self.number(1.0)
        post = {
            "l2": f"{one} / @sqrt({acc} + {self.tiny()})",
            "l1": f"{one} / ({acc} + {self.tiny()})",
            "max": f"{one} / @max({acc}, {self.number(1e-6)})",
        }.get(form) or f"@min({one}, {self.scalar()} / (@sqrt({acc}) + {self.number(1e-6)}))"
        self.stages.append((acc, "max" if form == "max" else "sum", [update], post))
        if rng.random() < 0.5:
            self.keep("norms scale_out factors", acc)
        self.tail = [f"{self.target()} = {load} * {acc}{' * ' + self.vector() if rng.random() < 0.5 else ''};"]

    def ragged(self) -> None:
        """Only the first columns of every row count."""
        self.per_element = False
        load = self.matrix()
        length = self.of_row("length lengths valid seq_len", "int", self.columns)
        self.bound = self.word_of("end n_valid last len0")
        self.size_type = "int"
        self.heads.append(f"const int {self.bound} = {length} + 1;")
        acc = self.word_of("sum acc total")
        self.stages.append((acc, "sum", [f"{acc} += {load};"], f"{acc} / {self.bound}"))
        peak = self.word_of("peak top best")
        if self.rng.random() < 0.5:
            self.stages.append((peak, "max", [f"{peak} = @max({peak}, {load});"], ""))
            self.keep("peaks tops largest", peak)
        self.tail = [f"{self.out}[{self.row}] = {acc};"]
