"""The markers as the projects write them: the number of the marker, the reason, the text.

Written from what the projects' own packages do, not from ``agent_otel.measure.truncation.notices``.
"""

from __future__ import annotations

from typing import Final

RENDERED: Final[list[tuple[int, str, str]]] = [
    (
        1,
        "offloaded",
        "<persisted-output>\nOutput too large (293.1KB). Full output saved to: /var/tmp/tool/1.txt",
    ),
    (
        1,
        "offloaded",
        "Error: result (400,000 characters across 1 line) exceeds maximum allowed tokens. Output has been saved to /r",
    ),
    (2, "marker", "[OUTPUT TRUNCATED - exceeded 25000 token limit]"),
    (3, "marker", "... [12345 characters truncated] ..."),
    (4, "marker", "... [1,204 lines truncated] ..."),
    (5, "cleared", "[Old tool result content cleared]"),
    (6, "marker", "[output truncated at 30000 bytes]"),
    (7, "marker", "... [output truncated - 182KB removed]"),
    (8, "marker", "<truncated-output>"),
    (
        9,
        "offloaded",
        "Output too large. Showing first 8,000 and last 32,000 characters. For full output see: /tmp/gemini/out.txt",
    ),
    (10, "marker", "... [4096 characters omitted] ..."),
    (10, "marker", "... [88 lines omitted] ..."),
    (11, "marker", "[GEMINI_CLI_WARNING: Output truncated. The buffer is limited to 16MB.]"),
    (12, "marker", "... [Content truncated due to size limit] ..."),
    (13, "marker", "<tool_output_masked>\nls -R /\n</tool_output_masked>"),
    (14, "marker", "... [TRUNCATED 5120 chars]"),
    (14, "marker", "... [truncated]"),
    (15, "marker", "Warning: truncated output (original token count: 23456)\nTotal output lines: 1234"),
    (16, "marker", "…8123 tokens truncated…"),
    (16, "marker", "…32000 chars truncated…"),
    (17, "marker", "[... omitted 120 of 376 lines ...]"),
    (18, "marker", '<truncated omitted_approx_tokens="512" />'),
    (18, "marker", "[response body truncated after 65536 bytes]"),
    (19, "marker", "...120394 bytes truncated..."),
    (
        19,
        "offloaded",
        (
            "...120394 bytes truncated...\n\nThe tool call succeeded but the output was truncated. "
            "Full output saved to: /root/.local/share/opencode/tool-output/tool_1"
        ),
    ),
    (20, "marker", "[Tool output truncated for compaction: omitted 40960 chars]"),
    (21, "marker", "... [12 remaining cells truncated, total 40 cells. Use offset to read more]"),
    (22, "marker", "..._This content has been truncated to stay below 20000 characters_..."),
    (23, "marker", "<response clipped><NOTE>Due to the max output limit, only part is shown.</NOTE>"),
    (24, "marker", "[... Observation truncated due to length ...]"),
    (25, "marker", "... [output truncated]"),
    (26, "marker", "... [truncated: 30412 chars removed] ..."),
    (27, "marker", "[... 40000 chars elided ...]"),
    (27, "marker", "[... 12 messages elided ...]"),
    (28, "offloaded", "[Offloaded: 2 blocks, ~12,400 tokens]"),
    (29, "marker", "... [Response truncated due to size limit]"),
    (29, "marker", "[content truncated]"),
    (30, "marker", "... Output truncated at 100 lines"),
    (30, "marker", "... Output truncated at 65536 bytes"),
    (31, "cleared", "[cleared]"),
    (
        32,
        "offloaded",
        (
            "Tool result too large, the result of this tool call toolu_01A09q90qw90lq917835lq9 was saved in the "
            "filesystem at this path: /large_tool_results/toolu_01A09q90qw90lq917835lq9"
        ),
    ),
    (33, "marker", "[Output was truncated due to size limits. Use offset and limit to read the rest.]"),
    (34, "marker", "...(argument truncated)"),
    (34, "marker", "...(truncated)"),
    (35, "marker", "... [results truncated, try being more specific with your parameters]"),
    (36, "marker", "... Output truncated at 100000 bytes."),
    (37, "marker", "[Response truncated due to size limit]"),
    (
        38,
        "marker",
        "<error>Content truncated. Call the fetch tool with a start_index of 5000 to get more content.</error>",
    ),
    (39, "marker", "[Content truncated]"),
    (
        40,
        "offloaded",
        (
            '<result id="res_1a2b" tool="search" lines=900 size=64000>\n'
            'Full result stored; read with read_result("res_1a2b", start_line=1)\n</result>'
        ),
    ),
    (41, "marker", "[... 14000 characters truncated ...]"),
    (42, "marker", "... [clipped, 3800 more characters]"),
    (42, "marker", "[... 870 lines omitted ...]"),
    (42, "marker", "Full result was NOT stored."),
    (43, "offloaded", "[Output truncated: 5120 lines total. Full output saved to: /tmp/agno/out.log]"),
    (44, "marker", "... [truncated]"),
    (44, "marker", "[Content truncated...]"),
    (45, "offloaded", "[Preview truncated; read the artifact for more.]"),
    (46, "marker", "...[truncated 48KB]..."),
    (
        47,
        "marker",
        "[TRUNCATED] Tool 'search' output truncated (9001 > 9000 tokens). Tool executed successfully.",
    ),
    (48, "marker", "... (truncated, 81920 total chars)"),
    (49, "marker", "[... 81920 characters truncated ...]"),
    (49, "marker", "... [truncated 81920 chars]"),
    (50, "marker", "[truncated: showing first 8192 of 65000 chars]"),
    (51, "marker", "...[truncated]"),
    (51, "marker", "…[truncated]"),
    (52, "marker", "... [truncated, 100000 chars]"),
    (52, "marker", "[tool output omitted]"),
    (53, "marker", "... [Content truncated at 60k characters]"),
    (53, "marker", "...[truncated 1200 chars]"),
    (54, "marker", "... (10000 characters omitted) ..."),
    (55, "offloaded", "... (400 lines truncated, full output saved to /tmp/gptme/out.txt) ..."),
    (55, "marker", "[... 5000 bytes omitted (12000 total) ...]"),
    (56, "marker", "<elided_chars> 12000 characters elided </elided_chars>"),
    (56, "marker", '{"output_head": "a", "output_tail": "b", "elided_chars": 12000}'),
    (57, "marker", '{"_truncated": true, "originalCharCount": 250000, "head": "a", "tail": "b"}'),
    (57, "marker", "[... output truncated to 64 KB ...]"),
    (58, "marker", "Output truncated. Showing the last 2800 characters."),
    (59, "marker", "... (output truncated: showing the first 4000 of 9000 tokens)"),
    (60, "marker", "... [truncated, 100000 chars]"),
    (61, "offloaded", "(Tool output truncated because it is too large. Full output saved to: /tmp/nanobot/out.txt)"),
    (62, "marker", '{"rows": [1, 2], "truncated": true}'),
    (62, "marker", '{"rows":[1,2],"result_is_likely_truncated":true}'),
]
