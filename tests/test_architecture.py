"""The import rules, the sizes, and the one place for names, read from the source itself."""

from __future__ import annotations

import ast
import functools
import re
import tokenize
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from agent_otel.integrations.registry import INTEGRATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(__file__).resolve().parent.parent / "agent_otel"
MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
STARTUP = ("agent_otel", "agent_otel.auto", "agent_otel._internal.env")
FRAMEWORKS = ("agents", "anthropic", "dapr", "fastmcp", "langchain_core", "langgraph", "mcp", "openai", "temporalio")

#: Upper limits. A change that adds lines names the code that it replaces; lower these when the package shrinks.
CEILING = {"lines": 52_986, "modules": 235, "tokens": 368_472}
LAYOUT = (
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
)

#: Room -> the rooms that it may import. A room is a folder or a module of the package's root.
ALLOWED: dict[str, tuple[str, ...]] = {
    "semconv": ("_internal",),
    "_internal": (),
    "measure": ("_internal", "messages"),  # the names of ids of calls
    "messages": ("_internal", "core", "semconv"),  # core.types alone: the parts of a request
    "_bootstrap": ("_internal", "core", "integrations", "telemetry", "settings"),
    "settings": ("_internal", "semconv", "caps"),
    "caps": ("_internal",),
    "telemetry": ("_bootstrap", "_internal", "measure", "semconv", "settings"),
    "core": ("_internal", "caps", "measure", "semconv", "settings", "telemetry"),
    # telemetry for preload alone; adapters reach none of it, see below
    "integrations": ("_bootstrap", "_internal", "caps", "core", "messages", "semconv", "settings", "telemetry"),
    "remedies": ("_internal", "caps", "core", "measure", "messages", "semconv", "settings", "telemetry"),
    "alerts": ("semconv", "settings"),
    "api": ("_internal", "core", "integrations"),
    "auto": ("_bootstrap",),
    "doctor": ("_internal", "integrations", "semconv", "settings", "telemetry"),
    "explain": ("_internal", "caps", "core", "measure", "messages", "remedies", "settings"),
    "cli": (
        "_internal",
        "alerts",
        "caps",
        "doctor",
        "explain",
        "integrations",  # its table alone
        "semconv",
        "settings",
    ),
    "testing": (
        "_bootstrap",
        "_internal",
        "caps",
        "core",
        "integrations",
        "measure",
        "messages",
        "semconv",
        "settings",
        "telemetry",
    ),
    "_pyinstaller": ("integrations",),
    "__main__": ("cli",),
    "": ("_bootstrap", "_internal", "api", "caps", "remedies"),
}


def _imports(path: Path) -> set[str]:
    """Return every module that a file imports, type-only imports included; relative imports are not used."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import in {path}"
            module = node.module or ""
            for alias in node.names:
                inner = f"{module}.{alias.name}"
                found.add(inner if inner in MODULES else module)
    return found


def _room(module: str) -> str:
    return module.removeprefix("agent_otel").removeprefix(".").partition(".")[0]


@functools.cache
def _graph() -> dict[str, set[str]]:
    """Return the modules of the package that each of them imports; read once, and not when tests are collected."""
    return {module: _imports(path) & MODULES.keys() - {module} for module, path in MODULES.items()}


def _circles() -> list[list[str]]:
    """Return the groups of modules that import each other (Tarjan's strongly connected components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    circles: list[list[str]] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for imported in _graph()[module]:
            if imported not in index:
                visit(imported)
            if imported in stack:
                low[module] = min(low[module], low[imported])
        if low[module] == index[module]:
            circle = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(circle) > 1:
                circles.append(sorted(circle))

    for module in _graph():
        if module not in index:
            visit(module)
    return circles


def _tokens(path: Path) -> int:
    """Count the tokens of a module, without comments, docstrings and layout."""
    docstrings = {
        (node.body[0].lineno, node.body[0].col_offset)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and ast.get_docstring(node, clean=False) is not None
    }
    with path.open("rb") as file:
        return sum(
            token.type not in LAYOUT and token.start not in docstrings for token in tokenize.tokenize(file.readline)
        )


def test_the_package_does_not_grow() -> None:
    size = {
        "lines": sum(len(path.read_text().splitlines()) for path in MODULES.values()),
        "modules": len(MODULES),
        "tokens": sum(map(_tokens, MODULES.values())),
    }
    assert {} == {what: number for what, number in size.items() if number > CEILING[what]}


ADAPTER = re.compile(r"agent_otel\.integrations\.(frameworks|model_sdks|runtimes)\.")
MOST_MODULES = 14
SMALL = 150
FEW = 3
#: Folders that have more modules, with their number. These lists get shorter, never longer.
LARGE_FOLDERS = {
    "agent_otel.core": 18,
    "agent_otel.integrations.frameworks": 23,
    "agent_otel.integrations.model_sdks": 15,
}
#: Small modules that one module imports, their neighbour.
ALONE: set[str] = set()
#: Modules of readers that adapters of several distributions share, without an entry.
SHARED = {
    "agent_otel.integrations.model_sdks.langchain",
    "agent_otel.integrations.model_sdks.stainless",
}
#: Fields of shared types that fewer than three adapters set.
RARE_FIELDS = {
    "Exchange.changed",
    "McpCall.server",
    "McpCall.session",
    "McpCall.transport",
    "ModelReader.adds_usage",
    "ModelReader.answer_only",  # of five adapters, by `request_bodies.reading`
    "ModelReader.hosted",
    "ModelReader.opens_with_usage",
    "ModelRequest.answers",
    "ModelRequest.doubled",
    "ModelRequest.ends_at_limit",
    "Payload.is_appended",
    "RequestPart.message_id",
    "RequestPart.wrapped",
    "RunReader.goes_on",
    "RunReader.is_cancelled_at_end",
    "RunReader.watch",
    "StepReader.failed",
    "StepReader.opened_by_handler",
    "ToolCall.announced",
    "ToolCall.host",
    "ToolCall.is_quoted",
    "ToolCall.mcp",
    "ToolCall.type",
    "ToolReader.answer",
    "ToolReader.is_alone",
    "ToolReader.is_awaited",
    "ToolReader.is_relayed",
    "ToolReader.opened_by",
}


def _folder(module: str) -> str:
    return module.rpartition(".")[0]


def _modules() -> list[str]:
    """Return the modules that are no packages."""
    return [module for module, path in MODULES.items() if path.name != "__init__.py"]


def test_a_distribution_has_one_adapter() -> None:
    adapters = {entry.distribution: f"agent_otel.integrations.{entry.adapter}" for entry in INTEGRATIONS}
    assert SHARED == {module for module in _modules() if ADAPTER.match(module)} - {*adapters.values()}
    assert len(adapters) == len(INTEGRATIONS)


def test_a_folder_has_few_modules() -> None:
    sizes = Counter(map(_folder, _modules()))
    assert {folder: size for folder, size in sizes.items() if size > MOST_MODULES} == LARGE_FOLDERS


def test_a_small_module_has_more_than_one_user() -> None:
    users: dict[str, list[str]] = {}
    for module, imported in _graph().items():
        for other in imported:
            users.setdefault(other, []).append(module)
    found = {
        module
        for module in _modules()
        if len(MODULES[module].read_text().splitlines()) < SMALL
        and [_folder(user) for user in users.get(module, ())] == [_folder(module)]
    }
    assert found == ALONE


def _fields() -> dict[str, list[str]]:
    """Return the fields of the types that adapters make."""
    classes = ast.parse(MODULES["agent_otel.core.types"].read_text()).body
    made = {
        node.name: [
            each.target.id
            for each in node.body
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
        ]
        for node in classes
        if isinstance(node, ast.ClassDef)
    }
    adapters = "\n".join(MODULES[module].read_text() for module in _modules() if ADAPTER.match(module))
    return {name: fields for name, fields in made.items() if fields and re.search(rf"\b{name}\(", adapters)}


def _set_in(path: Path, types: dict[str, list[str]]) -> set[str]:
    """Return the fields that a module sets, by position or by name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        keywords = {keyword.arg for keyword in node.keywords}
        if isinstance(node.func, ast.Name) and node.func.id in types:
            fields = types[node.func.id]
            found |= {f"{node.func.id}.{field}" for field in (*fields[: len(node.args)], *(keywords & {*fields}))}
        elif isinstance(node.func, ast.Attribute) and node.func.attr == "_replace":
            found |= {f"{name}.{field}" for name, fields in types.items() for field in fields if field in keywords}
    return found


def test_a_field_of_a_shared_type_has_three_adapters() -> None:
    types = _fields()
    users = Counter(
        field
        for module in _modules()
        if ADAPTER.match(module) or _room(module) == "messages"
        for field in _set_in(MODULES[module], types)
    )
    every = {f"{name}.{field}" for name, fields in types.items() for field in fields}
    assert {field for field in every if users[field] < FEW} == RARE_FIELDS


def test_no_module_imports_itself_through_others() -> None:
    assert [] == _circles()


def test_rooms_import_only_the_rooms_that_the_table_allows() -> None:
    forbidden = {
        f"{module} imports {other}"
        for module, others in _graph().items()
        for other in others
        if _room(other) not in (*ALLOWED[_room(module)], _room(module))
    }
    assert set() == forbidden


def test_adapters_reach_neither_telemetry_nor_measure_nor_remedies() -> None:
    adapters = [
        module
        for module in _graph()
        if re.match(r"agent_otel\.integrations\.(frameworks|model_sdks|runtimes)\.", module)
    ]
    assert len(adapters) > 30
    assert set() == {
        f"{module} imports {other}"
        for module in adapters
        for other in _graph()[module]
        if _room(other) in ("telemetry", "measure", "remedies")
    }


def test_messages_are_read_without_the_core() -> None:
    rooms = {other for module, others in _graph().items() if _room(module) == "messages" for other in others}
    assert {"agent_otel.core.types"} == {other for other in rooms if _room(other) == "core"}


def test_a_wire_format_has_one_home() -> None:
    """No other room reads the ids of Anthropic's results by itself."""
    assert ["agent_otel.messages.fields"] == [
        module for module, path in MODULES.items() if "tool_use_id" in path.read_text()
    ]


def test_no_framework_is_imported() -> None:
    roots = {(module, name.split(".")[0]) for module, path in MODULES.items() for name in _imports(path)}
    assert set() == {(module, root) for module, root in roots if root in FRAMEWORKS}


def test_what_runs_at_interpreter_start_uses_the_standard_library_only() -> None:
    bootstrap = [
        name for name in MODULES if name.startswith("agent_otel._bootstrap") and "otel_" not in name.split(".")[-1]
    ]
    third_party = {"opentelemetry", "wrapt", "prometheus_client", "typing_extensions"}
    loaded = {name.split(".")[0] for module in (*STARTUP, *bootstrap) for name in _imports(MODULES[module])}
    assert set() == loaded & third_party


def test_telemetry_names_are_written_in_one_package_only() -> None:
    telemetry_name = re.compile(r"(agent_otel\.(tool|model|workflow|execution|internal)|tool\.(result|args)|gen_ai)\.")
    written = {
        (module, text)
        for module, path in MODULES.items()
        if module != "agent_otel.semconv"
        for text in _strings(ast.parse(path.read_text()))
        if telemetry_name.match(text)
    }
    assert set() == written


def _strings(tree: ast.AST) -> Iterator[str]:
    """Yield the string constants of a module that are not docstrings."""
    documented = {id(node) for _, node in _docstrings(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            yield node.value


def _docstrings(tree: ast.AST) -> Iterator[tuple[ast.AST, ast.Constant]]:
    """Yield each documented node with its docstring."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
            and isinstance(node.body[0].value, ast.Constant)
            and isinstance(node.body[0].value.value, str)
        ):
            yield node, node.body[0].value


def test_nothing_catches_more_than_exception() -> None:
    """Cancellation, KeyboardInterrupt and SystemExit pass; SystemExit is caught where an interpreter starts only."""
    caught = {
        (module, ast.unparse(node.type) if node.type else "everything")
        for module, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or re.search("BaseException|SystemExit|KeyboardInterrupt", ast.unparse(node.type)))
    }
    assert {("agent_otel._bootstrap.startup", "(Exception, SystemExit)")} == caught
