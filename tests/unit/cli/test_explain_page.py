"""The page of ``agent-otel explain --html``: its boxes add up, and names in the payload are texts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agent_otel.explain.explanation import explain
from agent_otel.explain.formats import opened
from agent_otel.explain.page import of_paths, of_turns
from tests.unit.cli.running import run
from tests.unit.cli.test_explain import WRITTEN, chat, result, written

if TYPE_CHECKING:
    from pathlib import Path

    from agent_otel.explain.explanation import Explanation, Node


def explained(path: Path) -> Explanation:
    with opened(str(path)) as source:
        return explain(path.name, source)


def children(node: Node) -> list[tuple[str, int]]:
    return [(child.name, child.bytes) for child in node.children]


def test_the_boxes_are_the_turns_in_their_order(tmp_path: Path) -> None:
    path = written(tmp_path, {"messages": chat(4), "last_result": result(3)})
    root = of_turns(explained(path))
    assert ["turn 1", "turn 2", "turn 3", "turn 4", "outside of the turns"] == [name for name, _ in children(root)]
    assert path.stat().st_size == root.bytes == sum(size for _, size in children(root))
    second = root.children[1]
    assert ["result", "arguments", "assistant"] == [name for name, _ in children(second)]
    sizes = dict(children(second.children[0]))
    # 60,000 bytes, with the escapes of the lines' ends and the message around them, or nearly so.
    assert 60_000 <= sizes["search_orders"] <= WRITTEN + 70
    assert {"search_orders", "write_file"} == set(sizes)


def test_no_box_is_smaller_than_the_boxes_in_it(tmp_path: Path) -> None:
    found = explained(written(tmp_path, {"messages": chat(170), **{f"k{n}": "x" * n for n in range(60)}}))
    for root in (of_turns(found), of_paths(found)):
        waiting = [root]
        while waiting:
            node = waiting.pop()
            assert sum(child.bytes for child in node.children) <= node.bytes
            waiting += node.children
    names = [name for name, _ in children(of_turns(found))]
    assert ("turns 1-3", "turns 169-170", 58) == (names[0], names[-2], len(names))
    assert "50 more" in dict(children(of_paths(found)))


def test_a_page_of_a_large_file_has_less_than_a_megabyte_and_no_script(tmp_path: Path) -> None:
    names = {f"key {number} {'n' * 300}": {f"inner {n}": "x" * 90 for n in range(30)} for number in range(300)}
    page = tmp_path / "page.html"
    assert 0 == run("explain", written(tmp_path, {"messages": chat(200), **names}), "--html", page).code
    drawn = page.read_text(encoding="utf-8")
    assert 50_000 < len(drawn) < 1_000_000
    assert "<svg" in drawn
    assert not re.findall(r"<script|<link|<img|(?:src|href)=", drawn)


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


def test_a_page_that_cannot_be_written_is_a_message(tmp_path: Path) -> None:
    ran = run("explain", written(tmp_path, chat(2)), "--html", tmp_path / "none" / "page.html")
    assert 1 == ran.code
    assert "No such file or directory" in ran.err
