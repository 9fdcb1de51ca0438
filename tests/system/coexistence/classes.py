"""The contract classes of the frameworks that other instrumentations instrument."""

from __future__ import annotations

from tests.contract.frameworks import (
    test_ag2,
    test_agent_framework,
    test_agno,
    test_anthropic,
    test_autogen,
    test_claude_agent_sdk,
    test_crewai,
    test_dspy,
    test_google,
    test_haystack,
    test_langchain,
    test_llama_index,
    test_mcp,
    test_openai_agents,
    test_pipecat,
    test_pydantic_ai,
    test_semantic_kernel,
    test_smolagents,
    test_strands,
)
from tests.contract.model_sdks import test_bedrock, test_chat_sdks, test_litellm, test_mistral, test_ollama, test_openai

#: Frameworks that take openai 3.
LANGGRAPH = test_langchain.TestLangGraph
LANGCHAIN = test_langchain.TestLangChain
OPENAI_AGENTS = test_openai_agents.TestNewest
AGNO = test_agno.TestAgno
SMOLAGENTS = test_smolagents.TestSmolagents
PYDANTIC_AI = test_pydantic_ai.TestPydanticAI
AG2 = test_ag2.TestAg2
AGENT_FRAMEWORK = test_agent_framework.TestAgentFramework
HAYSTACK = test_haystack.TestHaystack
PIPECAT = test_pipecat.TestPipecat
SEMANTIC_KERNEL = test_semantic_kernel.TestSemanticKernel

#: Those that do not, and those without OpenAI's SDK.
AUTOGEN = test_autogen.TestAutoGen
CREWAI = test_crewai.TestCrewAI
DSPY = test_dspy.TestDSPy
LLAMA_INDEX = test_llama_index.TestLlamaIndex
STRANDS = test_strands.TestStrands
ADK = test_google.TestAdk
CLAUDE = test_claude_agent_sdk.TestClaudeAgentSDK
MCP = test_mcp.TestMcp2
MCP_1 = test_mcp.TestMcp1

#: SDKs of model providers, and the loops that two of them have.
OPENAI = test_openai.TestOpenAI
ANTHROPIC = test_anthropic.TestAnthropic
RUNNER = test_anthropic.TestRunner
GOOGLE = test_google.TestGoogle
FUNCTIONS = test_google.TestFunctions
GOOGLE_2 = test_google.TestGoogle2
FUNCTIONS_2 = test_google.TestFunctions2
BEDROCK = test_bedrock.TestBedrock
COHERE = test_chat_sdks.TestCohere
GROQ = test_chat_sdks.TestGroq
TOGETHER = test_chat_sdks.TestTogether
MISTRAL = test_mistral.TestMistral
MISTRAL_1 = test_mistral.TestMistral1
OLLAMA = test_ollama.TestOllama
LITELLM = test_litellm.TestOverOpenAI
