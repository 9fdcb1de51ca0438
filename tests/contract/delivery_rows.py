"""The rows of ``docs/evidence/delivery.md``: each agent loop of the suite in its newest version."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from tests.contract import script
from tests.contract.frameworks import (
    test_ag2,
    test_agent_framework,
    test_agentscope,
    test_agno,
    test_anthropic,
    test_autogen,
    test_browser_use,
    test_camel,
    test_claude_agent_sdk,
    test_crewai,
    test_dspy,
    test_google,
    test_handwritten,
    test_haystack,
    test_langchain,
    test_livekit_agents,
    test_llama_index,
    test_mcp,
    test_mistral_runs,
    test_openai_agents,
    test_openai_runner,
    test_pipecat,
    test_pydantic_ai,
    test_semantic_kernel,
    test_smolagents,
    test_strands,
)
from tests.contract.model_sdks import (
    test_bedrock,
    test_chat_sdks,
    test_httpx,
    test_litellm,
    test_mistral,
    test_ollama,
    test_openai,
)

if TYPE_CHECKING:
    from agent_otel.testing.servers.openai import Json, OpenAIServer, Reply
    from agent_otel.testing.servers.scripted import ScriptedServer
    from tests.contract.suite import Contract


class DeepAgents(test_langchain.TestLangGraph):
    """deepagents is LangGraph's agent with middleware, so that only its delivery is of interest."""

    agent = "deepagents"
    environment = "deepagents"
    own: ClassVar = {}


class CrewAIInText(test_crewai.TestCrewAIInText):
    """What does not fit the model's context window goes to it in pieces first, to be summarised.

    The first of the pieces counts, as the first sight of a result does; what goes on from there are the summaries.
    """

    @staticmethod
    def decide(request: Json) -> Reply:
        """Summarise when asked to, and be content with the summary."""
        said = "".join(script.text_of(message) for message in request["messages"] if message["role"] == "user")
        if "<summary>" in said:
            return "<summary>Letters were found.</summary>"
        return script.decide_in_text(request) if script.BEGIN in said else "Thought: I know.\nFinal Answer: done"

    @classmethod
    def results(cls, server: OpenAIServer | ScriptedServer) -> dict[str, str]:
        """Return the observations, or the first piece of the last call's."""
        found: dict[str, str] = {}
        asked = ""
        for request in server.requests:
            said = "".join(map(script.text_of, request["messages"]))
            if "<summary>" in said:
                found.update((asked, piece) for piece in re.findall("Observation: (x+)", said))
            elif script.BEGIN in said:
                ((asked, _, _),) = script.calls_of(request["messages"])
                found.update(script.observations(request))
        return found


class Row(NamedTuple):
    """What is run: the loop of a class of the contract suite, or without one the durable agent of Dapr Agents.

    ``distributions`` are those whose versions the page tells. ``program`` is where the version of a program stands
    that is started besides, as ``module:attribute``.
    """

    title: str
    contract: type[Contract] | None
    distributions: tuple[str, ...]
    program: str = ""

    @property
    def environment(self) -> str:
        """The row of ``environments.toml`` that it runs in."""
        return self.contract.environment if self.contract else "dapr-agents"


ROWS = (
    Row("LangGraph, LangChain's `create_agent`", test_langchain.TestLangGraph, ("langgraph", "langchain")),
    Row("deepagents", DeepAgents, ("deepagents",)),
    Row("OpenAI Agents SDK", test_openai_agents.TestNewest, ("openai-agents",)),
    Row("Pydantic AI", test_pydantic_ai.TestPydanticAI, ("pydantic-ai-slim",)),
    Row("Strands Agents", test_strands.TestStrands, ("strands-agents",)),
    Row("CrewAI, the model calls tools", test_crewai.TestCrewAI, ("crewai",)),
    Row("CrewAI, the model writes what to do", CrewAIInText, ("crewai",)),
    Row("smolagents, `ToolCallingAgent`", test_smolagents.TestSmolagents, ("smolagents",)),
    Row(
        "smolagents, `CodeAgent` that prints the result",
        test_smolagents.TestSmolagentsCode,
        ("smolagents",),
        # With the line end that print adds it is one character too long: 49,999 are left, and a notice of 72.
    ),
    Row("smolagents, `CodeAgent` whose last value it is", test_smolagents.TestSmolagentsValue, ("smolagents",)),
    Row("Microsoft Agent Framework", test_agent_framework.TestAgentFramework, ("agent-framework-core",)),
    Row("Semantic Kernel", test_semantic_kernel.TestSemanticKernel, ("semantic-kernel",)),
    Row("AgentScope", test_agentscope.TestAgentScope, ("agentscope",)),
    Row("CAMEL", test_camel.TestCamel, ("camel-ai",)),
    Row("Browser Use", test_browser_use.TestBrowserUse, ("browser-use",)),
    Row("LiveKit Agents", test_livekit_agents.TestLiveKitAgents, ("livekit-agents",)),
    Row("Pipecat", test_pipecat.TestPipecat, ("pipecat-ai",)),
    Row("AutoGen", test_autogen.TestAutoGen, ("autogen-agentchat",)),
    Row("AG2", test_ag2.TestAg2, ("ag2",)),
    Row("Agno", test_agno.TestAgno, ("agno",)),
    Row("LlamaIndex", test_llama_index.TestLlamaIndex, ("llama-index-core",)),
    Row("DSPy's `ReAct`", test_dspy.TestDSPy, ("dspy",)),
    Row("Haystack", test_haystack.TestHaystack, ("haystack-ai",)),
    Row("Google's Agent Development Kit", test_google.TestAdk, ("google-adk",)),
    Row("google-genai, automatic function calling", test_google.TestFunctions, ("google-genai",)),
    Row("OpenAI's tool runner", test_openai_runner.TestOpenAIRunner, ("openai",)),
    Row("Anthropic's tool runner", test_anthropic.TestRunner, ("anthropic",)),
    Row("Mistral's conversations, `run_async`", test_mistral_runs.TestMistralRuns, ("mistralai",)),
    Row(
        "Claude Agent SDK",
        test_claude_agent_sdk.TestClaudeAgentSDK,
        ("claude-agent-sdk",),
        "claude_agent_sdk._cli_version:__cli_version__",
    ),
    Row("Dapr Agents", None, ("dapr-agents",)),
    Row("own loop over LangChain's model and tools", test_langchain.TestLangChain, ("langchain-core",)),
    Row("own loop over OpenAI's client", test_openai.TestOpenAI, ("openai",)),
    Row("own loop over Anthropic's client", test_anthropic.TestAnthropic, ("anthropic",)),
    Row("own loop over Google's client", test_google.TestGoogle, ("google-genai",)),
    Row("own loop over Bedrock's Converse API", test_bedrock.TestBedrock, ("boto3",)),
    Row("own loop over LiteLLM", test_litellm.TestOverOpenAI, ("litellm",)),
    Row("own loop over Mistral's client", test_mistral.TestMistral, ("mistralai",)),
    Row("own loop over Groq's client", test_chat_sdks.TestGroq, ("groq",)),
    Row("own loop over Together's client", test_chat_sdks.TestTogether, ("together",)),
    Row("own loop over Fireworks' client", test_chat_sdks.TestFireworks, ("fireworks-ai",)),
    Row("own loop over Fireworks' client, messages", test_chat_sdks.TestFireworksMessages, ("fireworks-ai",)),
    Row("own loop over Hugging Face's client", test_chat_sdks.TestHuggingFace, ("huggingface_hub",)),
    Row("own loop over Azure AI Inference's client", test_chat_sdks.TestAzure, ("azure-ai-inference",)),
    Row("own loop over xAI's client", test_chat_sdks.TestXai, ("xai-sdk",)),
    Row("own loop over Cohere's client", test_chat_sdks.TestCohere, ("cohere",)),
    Row("own loop over Ollama's client", test_ollama.TestOllama, ("ollama",)),
    Row("own loop over httpx, with `AGENT_OTEL_HTTPX`", test_httpx.TestHttpx, ("httpx",)),
    Row("own loop over plain HTTP", test_handwritten.TestHandwritten, ()),
    Row("MCP's client", test_mcp.TestMcp2, ("mcp",)),
    Row("FastMCP's client", test_mcp.TestFastMcp, ("fastmcp",)),
)
