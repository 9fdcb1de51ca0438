"""The site of the documentation: the Markdown pages of this repository as they are, built by `scripts/site`.

The source folder is the root of the repository, so that a link that leads somewhere there does on the site, too.
Sphinx with the theme Furo builds it: both have stable releases, and a link to nowhere is an error. MkDocs Material is
in maintenance, and its authors' successor, Zensical, has not released a stable configuration yet.
"""

project = "agent_otel"
author = "the authors of agent_otel"
copyright = f"2026, {author}"  # noqa: A001 - Sphinx reads this name
extensions = ["myst_parser", "sphinx_copybutton"]
root_doc = "docs/index"
include_patterns = [
    "*.md",
    "alerts/**.md",
    "dashboards/README.md",
    "docs/**.md",
]
exclude_patterns = [".*", "agent_otel", "build", "dist", "tests"]
# No lexer for TraceQL and Mermaid; the one for PromQL does not know names of recording rules.
suppress_warnings = ["misc.highlighting_failure"]
html_theme = "furo"
html_title = project
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
myst_heading_anchors = 4  # as GitHub makes them
copybutton_prompt_text = "$ "  # the button copies the commands alone
