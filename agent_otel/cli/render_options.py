"""Options for writing rules: on the command line, in a file, or both."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
import yaml

from agent_otel import alerts
from agent_otel.alerts import Options, Thresholds
from agent_otel.alerts.options import RUNBOOK
from agent_otel.cli import shipped
from agent_otel.cli.console import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_Command = TypeVar("_Command", bound="Callable[..., Any]")
_OPTIONS: Final = tuple(item.name for item in fields(Options))
#: Names that a file of ``--config`` may hold.
_KEYS: Final = ("thresholds", *_OPTIONS)


@dataclass(frozen=True)
class Rendering:
    """The thresholds and options of one export."""

    thresholds: Thresholds
    options: Options

    @property
    def has_links(self) -> bool:
        """True when the user gave the address of the runbooks; they have no public address by default."""
        return self.options.runbook_url != RUNBOOK

    def text(self, form: str) -> str:
        """Return the rules as a file of this format; alerts without a runbook link hold its short form."""
        short = {} if self.has_links else shipped.runbooks()
        return alerts.render(self.thresholds, self.options, form, short)


def rendering_options(command: _Command) -> _Command:
    """Add the options of a rendering to a command, which receives a `Rendering` as ``rendering``."""

    @functools.wraps(command)
    def with_rendering(*, config: Path | None, **given: Any) -> Any:
        chosen = {name: given.pop(name) for name in _GIVEN}
        return command(rendering=_rendering(config, chosen), **given)

    for option in reversed(_PARAMETERS):
        option(with_rendering)
    return with_rendering  # type: ignore[return-value] # click passes its arguments


def pairs(texts: tuple[str, ...], what: str, separator: str = "=") -> dict[str, str]:
    """Return name -> value of texts such as ``name=value``.

    Raises:
        Failure: a text has no name or no separator.
    """
    found = {}
    for text in texts:
        name, separates, value = text.partition(separator)
        if not (name.strip() and separates):
            raise Failure(f"{what}: {text!r} is not name{separator}value")
        found[name.strip()] = value.strip()
    return found


_PARAMETERS: Final = (
    click.option("--set", "set_", multiple=True, metavar="NAME=VALUE", help="A threshold or window; "
                 "`agent-otel alerts thresholds` has them all. May be given again."),
    click.option("--config", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="FILE",
                 help="YAML with these options, `thresholds` among them; the command line goes before it."),
    click.option("--runbook-url", metavar="PATTERN", help="Where runbooks are; {alert} stands for the alert's name. "
                 "Without it alerts have a short form of their runbooks."),
    click.option("--dashboard-url", metavar="URL", help="Where Grafana is, for links in the alerts."),
    click.option("--label", "labels", multiple=True, metavar="NAME=VALUE", help="A label that every alert gets."),
    click.option("--severity", "severities", multiple=True, metavar="ALERT=SEVERITY", help="The severity of an alert, "
                 "such as AgentToolResultTooLarge=critical. May be given again."),
    click.option("--selector", metavar="MATCHERS", help="Matchers for every series, such as 'namespace=\"prod\"'."),
    click.option("--by", multiple=True, metavar="LABEL", help="A label to group by besides job, such as cluster."),
    click.option("--no-keep-firing", is_flag=True, help="For Prometheus before 2.42 and vmalert before 1.94."),
)  # fmt: skip
_GIVEN: Final = ("set_", "runbook_url", "dashboard_url", "labels", "severities", "selector", "by", "no_keep_firing")


def _rendering(config: Path | None, given: Mapping[str, Any]) -> Rendering:
    said = _read(config) if config else {}
    thresholds = {**_mapping(said, "thresholds"), **pairs(given["set_"], "--set")}
    chosen = {name: _read_option(said, name) for name in _OPTIONS if name in said}
    chosen |= {name: given[name] for name in ("runbook_url", "dashboard_url", "selector", "by") if given[name]}
    for name, option in (("labels", "--label"), ("severities", "--severity")):
        if given[name]:
            chosen[name] = {**chosen.get(name, {}), **pairs(given[name], option)}
    if given["no_keep_firing"]:
        chosen["keep_firing_for"] = False
    try:
        rendering = Rendering(Thresholds.parse(thresholds), Options(**chosen))
        alerts.alerts(rendering.thresholds, rendering.options)
    except ValueError as error:
        raise Failure(str(error)) from None
    return rendering


def _read(config: Path) -> dict[str, Any]:
    try:
        said = yaml.safe_load(config.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise Failure(f"{config} cannot be read: {' '.join(str(error).split())}") from None
    if said is None:
        return {}
    if not isinstance(said, dict):
        raise Failure(f"{config} holds no names with values; there may be {', '.join(_KEYS)}")
    unknown = sorted(str(key) for key in said if key not in _KEYS)
    if unknown:
        raise Failure(f"{config}: {', '.join(unknown)} is none of {', '.join(_KEYS)}")
    return said


def _read_option(said: Mapping[str, Any], name: str) -> Any:
    """Return the value of one of the fields of Options, in its type."""
    value = said[name]
    if name in {"labels", "severities", "metadata_labels"}:
        return {str(key): str(text) for key, text in _mapping(said, name).items()}
    if name == "keep_firing_for":
        if not isinstance(value, bool):
            raise Failure(f"{name}: {value!r} is neither true nor false")
        return value
    if name == "by":
        return tuple(map(str, value)) if isinstance(value, list) else (str(value),)
    if not isinstance(value, str):
        raise Failure(f"{name}: {value!r} is no text")
    return value


def _mapping(said: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = said.get(name) or {}
    if not isinstance(value, dict):
        raise Failure(f"{name}: {value!r} is no name: value")
    return value
