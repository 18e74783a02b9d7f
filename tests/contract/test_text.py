"""Text is kept byte for byte, or refused by the name of its field."""

from __future__ import annotations

import pytest
from graph_samples import attempt, search, started, trajectory
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regraph_db.bounds import KEY_LIMIT
from regraph_db.errors import InputError
from regraph_db.names import normalise
from regraph_db.records import ROOT, Alias, Rollout, RolloutResult, State, Step, Technique, Trajectory
from regraph_db.store import GraphStore

AWKWARD = [
    'it\'s "quoted" `thrice`',
    "two\nlines\r\nand\ta tab",
    "🚀 żółć 漢字 \u200b\u202e e\u0301",
    "'; DROP TABLE steps; --",
    "x'}) DETACH DELETE n //",
    "$param {name} %s \\u0000 \\",
    "\x01\x7f\x1f",
    " ",
]


@pytest.mark.parametrize("text", AWKWARD)
def test_awkward_text_comes_back_byte_for_byte(store: GraphStore, text: str) -> None:
    step = Step(think=text, method=text, detail=text, code=text)
    one = Trajectory(task=text, author=text, function=text, source=text, steps=(step, step), search=text)
    store.put_techniques([Technique(name=text, description=text)])
    store.merge_trajectories([one], [Alias(alias="the alias " + text, technique=text, author=text)])
    assert list(store.trajectories()) == [one]
    name = normalise(text)
    (example,) = store.examples("init", name, like=text)
    assert (example.think, example.before, example.after, example.method) == (text, text, text, text)
    assert [t.after for t in store.transitions("init")] == [name]
    assert store.transitions("init", without_task=text) == []
    store.open_search(search("s " + text), State(id=text, technique=text))
    assert [state.id for state in store.snapshot("s " + text).states] == [text]
    assert store.check() == []


@pytest.mark.timeout(300)
def test_any_text_comes_back(store: GraphStore, kind: str) -> None:
    texts = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1, max_size=60)

    @settings(max_examples=40 if kind == "sqlite" else 10, deadline=None, suppress_health_check=list(HealthCheck))
    @given(texts.filter(lambda t: normalise(t) != ROOT), texts)
    def holds(method: str, code: str) -> None:
        one = Trajectory(task=code, source=code, steps=(Step(method=method, code=code),))
        store.merge_trajectories([one])
        assert list(store.trajectories(task=code))[-1].steps[0].code == code
        assert one.id in {t.id for t in store.trajectories(task=code)}

    holds()


def test_a_megabyte_of_code_comes_back(store: GraphStore) -> None:
    code = "float x = 1.0f; // é\n" * 50_000
    one = Trajectory(
        task="big", source=code, steps=(Step(method="tiling", code=code + "2"), Step(method="tiling", code=code))
    )
    store.merge_trajectories([one])
    assert list(store.trajectories()) == [one]
    started(store)
    store.begin_rollout(Rollout(id="o", search="s", runner="runner of s", path=(), calls=1))
    large = attempt("t", "o").model_copy(update={"code": code})
    store.finish_rollout(RolloutResult(rollout="o", search="s", attempts=(large,)))
    assert store.attempt("t").code == code


def test_a_nul_byte_is_refused_by_its_field(store: GraphStore) -> None:
    good = trajectory("tiling")
    bad = good.model_copy(update={"steps": (good.steps[0].model_copy(update={"code": "a\x00b"}),)})
    with pytest.raises(InputError, match=r"trajectory\.steps\[0\]\.code"):
        store.merge_trajectories([good, bad])
    with pytest.raises(InputError, match=r"technique\.description"):
        store.put_techniques([Technique(name="x", description="\x00")])
    with pytest.raises(InputError, match=r"search\.start_code"):
        store.open_search(search().model_copy(update={"start_code": "\x00"}), State(id="r", technique="init"))
    started(store)
    with pytest.raises(InputError, match=r"search\.summary"):
        store.finish_search("s", best_attempt=None, summary={"words": "\x00"})
    assert store.counts().trajectories == 0


def test_a_name_too_long_for_a_key_is_refused(store: GraphStore) -> None:
    longest = "x" * KEY_LIMIT
    store.merge_trajectories(
        [trajectory(longest, task="é" * KEY_LIMIT)], [Alias(alias="🚀" * KEY_LIMIT, technique="x", author="y")]
    )
    with pytest.raises(InputError, match=r"steps\[0\]\.method"):
        store.merge_trajectories([trajectory(longest + "x")])
    with pytest.raises(InputError, match=r"alias\.technique"):
        store.put_aliases([Alias(alias="short", technique=longest + "x", author="y")])
