"""The page of ``agent-otel explain --html``: its boxes add up, and names in the payload are texts."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from agent_otel.explain.explanation import explain
from agent_otel.explain.formats import opened
from agent_otel.explain.page import Flames, of_paths, of_turns
from tests.unit.cli.running import run
from tests.unit.cli.test_explain import WRITTEN, chat, result, written

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from agent_otel.explain.explanation import Explanation


def explained(path: Path) -> Explanation:
    with opened(str(path)) as source:
        return explain(path.name, source)


def children(flames: Flames, parent: str) -> list[tuple[str, int]]:
    return [
        (label, value)
        for label, value, of in zip(flames.labels, flames.values, flames.parents, strict=True)
        if of == parent
    ]


def test_the_boxes_are_the_turns_in_their_order(tmp_path: Path) -> None:
    path = written(tmp_path, {"messages": chat(4), "last_result": result(3)})
    found = explained(path)
    flames = of_turns(found)
    turns = children(flames, flames.ids[0])
    assert ["turn 1", "turn 2", "turn 3", "turn 4", "outside of the turns"] == [name for name, _ in turns]
    assert path.stat().st_size == flames.values[0] == sum(size for _, size in turns)
    second = flames.ids[flames.labels.index("turn 2")]
    assert ["result", "arguments", "assistant"] == [name for name, _ in children(flames, second)]
    of_result = flames.ids[flames.parents.index(second)]
    sizes = dict(children(flames, of_result))
    # 60,000 bytes, with the escapes of the lines' ends and the message around them, or nearly so.
    assert 60_000 <= sizes["search_orders"] <= WRITTEN + 70
    assert {"search_orders", "write_file"} == set(sizes)


def test_no_box_is_smaller_than_the_boxes_in_it(tmp_path: Path) -> None:
    found = explained(written(tmp_path, {"messages": chat(170), **{f"k{n}": "x" * n for n in range(60)}}))
    for flames in (of_turns(found), of_paths(found)):
        for box, value in zip(flames.ids, flames.values, strict=True):
            assert sum(size for _, size in children(flames, box)) <= value
    names = [name for name, _ in children(of_turns(found), "0")]
    assert ("turns 1-2", "turns 169-170", 86) == (names[0], names[-2], len(names))
    assert "38 more" in of_paths(found).labels


def test_names_of_the_payload_are_texts(tmp_path: Path) -> None:
    name = "</script><script>document.title='broken'</script><b>"
    path = written(tmp_path, [*chat(2), {"role": "user", "content": "?"}, {name: 1}])
    page = tmp_path / "page.html"
    text = path.read_text().replace("search_orders", name)
    path.write_text(text)
    assert (0, "", "") == tuple(run("explain", path, "--html", page))
    drawn = page.read_text(encoding="utf-8")
    assert "<script>document.title" not in drawn
    assert drawn.count("&lt;script&gt;document.title") >= 1
    assert re.search(r"""default-src 'none'; .*form-action 'none'""", drawn)
    assert not re.findall(r"""<(?:script|link|img|iframe)[^>]+(?:src|href)=["']?(?:https?:)?//""", drawn)


def test_without_plotly_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly", None)
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    ran = run("explain", written(tmp_path, chat(2)), "--html", tmp_path / "page.html")
    assert (1, 'Error: the page needs plotly: pip install "agent-otel[html]"\n') == (ran.code, ran.err)
    assert not (tmp_path / "page.html").exists()


def test_a_page_that_cannot_be_written_is_a_message(tmp_path: Path) -> None:
    ran = run("explain", written(tmp_path, chat(2)), "--html", tmp_path / "none" / "page.html")
    assert 1 == ran.code
    assert "No such file or directory" in ran.err
