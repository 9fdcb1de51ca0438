"""The measure of prose: sentences, the parts of a file that count, and changed files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests import prose
from tests.history import git

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

#: An odd sentence -> the same in plain English.
SENTENCES = {
    "Return the places of a word, for which a text is searched.": "Return the positions of a word. Search backwards.",
    "A table whose key for a row is in the footer.": "A table. The footer shows the key that opens a row.",
    "Return these bytes with those of further parts.": "Return the sum with `parts` added.",
    "A claim check's key is a path, so that one is looked for.": "Claim-check keys contain slashes.",
    "Of a stream the caller gets everything up to the first call.": "Stream to the caller until the first tool call.",
    "A module may be an agent, its calls are of its own.": "If a tool is a DSPy module, record its calls separately.",
    "Their payloads are no turns of one another.": "Do not compare their payloads with each other.",
    "Return what the callable's parts take.": "Return the arguments of each part.",
    "Messages that stand there twice are sent once.": "Remove messages that appear twice.",
    "A result of the tool goes on whole.": "The result of the tool was not replaced.",
    "Put ours in the place of the function.": "Replace the function.",
    "More than 320 characters behind it.": "More than 320 characters after it.",
    "Is what the others show all there is?": "Telemetry about the telemetry: which integrations matched.",
}
ODD = "The call is no turn, whose parts stand behind those of the other. "
PLAIN = "Count the bytes of each result. " * 40


def test_sentences(subtests: pytest.Subtests) -> None:
    for odd, plain in SENTENCES.items():
        with subtests.test(odd=odd):
            assert prose.found(odd)
            assert not prose.found(plain)


def test_questions_and_standard_words_do_not_count() -> None:
    assert not prose.found(
        "It is no longer open. What is? What does it cost? What happens? Read standard input. A copy of it."
    )


def test_docstrings_comments_and_pages_count_but_code_does_not() -> None:
    code = '"""It stands."""\n\n\ndef f():\n    """It stands."""\n    return "it stands"  # it stands\n'
    assert 3 == prose.count("a.py", code).constructions
    assert 1 == prose.count("a.md", "It stands. `It stands.`\n```text\nIt stands.\n```\n").constructions
    assert prose.Count(0, 0) == prose.count("a.py", "def of which whose")


def test_the_rate_is_for_1000_words_and_short_files_have_none() -> None:
    assert 20.0 == prose.Count(3, 150).rate
    assert 0.0 == prose.Count(3, 149).rate


def test_a_changed_file_over_the_limit_may_not_become_worse(tmp_path: Path) -> None:
    def write(**pages: str) -> None:
        for name, text in pages.items():
            (tmp_path / f"{name}.md").write_text(text)

    git("init", "--quiet", root=tmp_path)
    write(worse=PLAIN + ODD, better=PLAIN + ODD + ODD, same=PLAIN + ODD, moved=PLAIN + ODD + ODD, gone=ODD, plain=PLAIN)
    git("add", ".", root=tmp_path)
    who = ("-c", "user.name=tests", "-c", "user.email=tests@agents.example")
    git(*who, "commit", "--quiet", "-m", "docs: begin", root=tmp_path)
    base = git("rev-parse", "HEAD", root=tmp_path).strip()
    assert [] == prose.worse_files(tmp_path, base)

    git("mv", "moved.md", "there.md", root=tmp_path)
    git("rm", "--quiet", "gone.md", root=tmp_path)
    added = "It goes on. "
    write(worse=PLAIN + ODD + added, better=PLAIN + ODD, plain=PLAIN + PLAIN, new=PLAIN + added, small=added)
    lines = prose.worse_files(tmp_path, base)
    assert ["new.md", "worse.md"] == [line.partition(":")[0] for line in lines]
    assert "It goes on." in lines[1]

    # Text of a removed file in other files: a docstring with other line breaks, and a comment.
    broken = ODD.replace(" no ", " no\n    ")
    (tmp_path / "folded.py").write_text(f'"""{PLAIN}"""\n\n\ndef f():\n    """{broken}"""\n')
    (tmp_path / "comment.py").write_text(f'"""{PLAIN}"""\n\n#: {ODD}\n')
    assert lines == prose.worse_files(tmp_path, base)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "page.md").write_text(f"Title\n\n{PLAIN}\n{ODD}\nEnd\n")
    (tmp_path / "plain.py").write_text(f'"""{PLAIN}"""\n')
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "page.md").write_text(ODD)
    assert 1 == prose.main([str(tmp_path), "--show"])
    printed = capsys.readouterr().out
    assert f"stands: {ODD.strip()}\n" in printed
    assert ".hidden" not in printed
    assert 0 == prose.main([str(tmp_path / "plain.py")])
