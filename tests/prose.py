"""Count constructions that make text hard to read: the module of ``scripts/prose``."""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.history import BASE, ROOT, git, has_base

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Constructions for each 1,000 words.
LIMIT = 3.0
#: A rate of fewer words says nothing.
FEWEST_WORDS = 150
#: Characters on each side of a construction that tell whether a file had it before.
CONTEXT = 20
#: Ten constructions that readers of our pages had to read twice. OpenTelemetry, httpx and structlog have about one.
PATTERNS = {
    "is no, are no": r"\b(?:is|are|was|were) no\b(?! longer)",
    "fronted Of, Behind, Beside": r"(?-i:(?:^|[.;:] )(?:Of|Behind|Beside) )",
    "what ... as a noun": r"\bwhat (?!is\?|does|happens\b)(?:\w+ ){1,6}",
    "of which, whose": r"\b(?:of|in|by|from|with|on|behind|for|to|under|up to) which\b|\bwhose\b",
    "stands": r"\bstand(?:s|ing)?\b(?!ard)|\bstood\b",
    "goes on": r"\bgo(?:es)? on\b",
    "in the place of": r"\bin the place of\b",
    "behind": r"\bbehind\b",
    "that one, of its own": r"\bthat one\b|\bone of its own\b|\bof its own\b|\bof their own\b",
    "those of, the other": r"\bthe others?\b|\bthose (?:of|that)\b|\bthat of\b",
}
RULES = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in PATTERNS.items()}
CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)


class Count(NamedTuple):
    """Constructions and words of a file."""

    constructions: int
    words: int

    @property
    def rate(self) -> float:
        """Constructions for each 1,000 words; 0 for a file with too few words."""
        return 1000 * self.constructions / self.words if self.words >= FEWEST_WORDS else 0.0


def texts(name: str, source: str) -> Iterator[str]:
    """Yield the text of a Markdown page without code, or the docstrings and comments of Python code."""
    if name.endswith(".md"):
        yield CODE.sub("", source)
        return
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def found(text: str) -> list[tuple[str, str]]:
    """Return the constructions of a text: the name of the pattern, and the line of the text."""
    matches = [(name, match.start()) for name, rule in RULES.items() for match in rule.finditer(text)]
    return [(name, text[:start].rpartition("\n")[2] + text[start:].partition("\n")[0]) for name, start in matches]


def count(name: str, source: str) -> Count:
    """Count the constructions and the words of a file."""
    parts = list(texts(name, source))
    return Count(sum(len(found(part)) for part in parts), sum(len(part.split()) for part in parts))


def files(path: Path) -> list[Path]:
    """Return the pages and modules of a path, without hidden folders."""
    if path.is_file():
        return [path]
    every = sorted(file for suffix in ("md", "py") for file in path.rglob(f"*.{suffix}"))
    return [file for file in every if not any(part.startswith(".") for part in file.relative_to(path).parts)]


def contexts(text: str) -> list[str]:
    """Return each construction with the words around it."""
    words = _words(text)
    matches = [match for rule in RULES.values() for match in rule.finditer(words)]
    return [words[max(0, match.start() - CONTEXT) : match.end() + CONTEXT] for match in matches]


def worse_files(root: Path = ROOT, base: str = BASE) -> list[str]:
    """Return a line for each changed page or module that is over the limit and has become worse.

    Text that has moved here from another file does not make a file worse.
    """
    before = dict.fromkeys(git("ls-files", "--others", "--exclude-standard", root=root).splitlines())
    changed = git("diff", "--name-status", "--find-renames", "--diff-filter=AMR", base, root=root)
    for line in changed.splitlines():
        status, *names = line.split("\t")
        before[names[-1]] = None if status == "A" else names[0]
    old_text = None
    lines = []
    for name, old_name in sorted(before.items()):
        if not name.endswith((".md", ".py")) or name.startswith("docs/evidence/"):  # generated from data
            continue
        source = (root / name).read_text(encoding="utf-8")
        now = count(name, source).rate
        if now <= LIMIT:
            continue
        old = count(name, git("show", f"{base}:{old_name}", root=root)).rate if old_name else 0.0
        if now > old:
            old_text = _old_text(root, base) if old_text is None else old_text
            parts = [source] if name.endswith(".md") else texts(name, source)
            new = [context for part in parts for context in contexts(part) if context not in old_text]
            if new:
                lines.append(f"{name}: {now:.1f} constructions for each 1,000 words, {old:.1f} before: {new}")
    return lines


def _old_text(root: Path, base: str) -> str:
    """Return the text that all changed and removed files had, with single blanks."""
    names = git("diff", "--name-only", "--no-renames", "--diff-filter=DM", base, root=root).splitlines()
    objects = "".join(f"{base}:{name}\n" for name in names if name.endswith((".md", ".py")))
    return _words(git("cat-file", "--batch", root=root, stdin=objects))


def _words(text: str) -> str:
    """Return the words of text or code with single blanks, without the signs of comments."""
    return " ".join(re.sub(r"#:?", " ", text).split())


def _check_changed() -> int:
    if not has_base():
        print("scripts/prose: skipped, this checkout has no history back to the commit to compare with")
        return 0
    lines = worse_files()
    for line in lines:
        print(f"scripts/prose: {line}; scripts/prose {line.partition(':')[0]} --show", file=sys.stderr)
    return int(bool(lines))


def main(arguments: list[str]) -> int:
    """Print the rates of files; return 1 if the total is over the limit."""
    if "--changed" in arguments:
        return _check_changed()
    paths = [path for argument in arguments if not argument.startswith("--") for path in files(Path(argument))]
    sources = {path: path.read_text(encoding="utf-8") for path in paths}
    counts = {path: count(path.name, source) for path, source in sources.items()}
    for path, counted in sorted(counts.items(), key=lambda item: -item[1].rate):
        if counted.constructions:
            print(f"{counted.rate:6.1f}  {counted.constructions:4d} of {counted.words:6d} words  {path}")
        if "--show" in arguments:
            for part in texts(path.name, sources[path]):
                print("".join(f"        {name}: {line.strip()}\n" for name, line in found(part)), end="")
    total = Count(sum(each.constructions for each in counts.values()), sum(each.words for each in counts.values()))
    print(f"{total.rate:6.1f}  {total.constructions:4d} of {total.words:6d} words")
    return int(total.rate > LIMIT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
