"""The rows of the table of integrations that send requests to models. Strings only; read at interpreter start."""

from __future__ import annotations

from agent_otel.integrations.registry.entries import Candidate, Integration, Wrap

_MODELS = "agent_otel.integrations.model_sdks."
_ANTHROPIC_TESTED = "0.125 and 2.11"
_GOOGLE_GENAI_TESTED = "1.20, 2.34 and 3.4"

PROVIDERS = (
    Integration(
        "openai",
        "openai",
        "1.40",
        _MODELS + "openai",
        Candidate(
            "openai._base_client",
            Wrap("SyncAPIClient.request", "request"),
            Wrap("AsyncAPIClient.request", "request"),
        ),
        tested="2.54 and 3.52",
    ),
    Integration(
        "mistralai",
        "mistralai",
        "1.0",
        _MODELS + "mistral",
        Candidate(  # 2.0 and later
            "mistralai.client.basesdk",
            Wrap("BaseSDK._build_request", "request"),
            Wrap("BaseSDK._build_request_async", "request"),
        ),
        Candidate(
            "mistralai.basesdk",
            Wrap("BaseSDK._build_request", "request"),
            Wrap("BaseSDK._build_request_async", "request"),
        ),
        tested="1.12 and 3.7",
    ),
    Integration(
        "ollama",
        "ollama",
        "0.4",
        _MODELS + "ollama",
        Candidate("ollama._client", Wrap("Client._request", "request"), Wrap("AsyncClient._request", "request")),
        tested="0.6.3",
    ),
    Integration(
        "litellm",
        "litellm",
        "1.70",
        _MODELS + "litellm",
        Candidate("litellm.litellm_core_utils.litellm_logging", Wrap("Logging.pre_call", "announced")),
        tested="1.106",
    ),
    # The calls that contain the requests of the row above.
    Integration(
        "litellm-calls",
        "litellm",
        "1.70",
        _MODELS + "litellm",
        Candidate(
            "litellm",
            Wrap("completion", "entered"),
            Wrap("acompletion", "entered"),
            Wrap("responses", "entered"),
            Wrap("aresponses", "entered"),
        ),
        tested="1.106",
    ),
    Integration(
        "langchain-models",
        "langchain-core",
        "0.3",
        _MODELS + "langchain",
        Candidate(  # 1.x has a generator of events besides
            "langchain_core.language_models.chat_models",
            Wrap("BaseChatModel._iter_v2_events", "events"),
            Wrap("BaseChatModel._aiter_v2_events", "events"),
            Wrap("BaseChatModel._convert_cached_generations", "answered"),
            Wrap("BaseChatModel._generate_with_cache", "generated"),
            Wrap("BaseChatModel._agenerate_with_cache", "generated"),
            Wrap("BaseChatModel.stream", "streamed"),
            Wrap("BaseChatModel.astream", "streamed"),
        ),
        Candidate(  # the last of 0.3
            "langchain_core.language_models.chat_models",
            Wrap("BaseChatModel._convert_cached_generations", "answered"),
            Wrap("BaseChatModel._generate_with_cache", "generated"),
            Wrap("BaseChatModel._agenerate_with_cache", "generated"),
            Wrap("BaseChatModel.stream", "streamed"),
            Wrap("BaseChatModel.astream", "streamed"),
        ),
        Candidate(  # here an answer out of LangChain's cache counts as a request, too
            "langchain_core.language_models.chat_models",
            Wrap("BaseChatModel._generate_with_cache", "generated"),
            Wrap("BaseChatModel._agenerate_with_cache", "generated"),
            Wrap("BaseChatModel.stream", "streamed"),
            Wrap("BaseChatModel.astream", "streamed"),
        ),
        tested="0.3.0, 0.3.79 and 1.7",
    ),
    Integration(
        "anthropic",
        "anthropic",
        "0.72",
        _MODELS + "anthropic",
        Candidate(
            "anthropic._base_client",
            Wrap("SyncAPIClient.request", "request"),
            Wrap("AsyncAPIClient.request", "request"),
        ),
        tested=_ANTHROPIC_TESTED,
    ),
    Integration(
        "google-genai",
        "google-genai",
        "1.20",
        _MODELS + "google_genai",
        Candidate(
            "google.genai._api_client",
            Wrap("BaseApiClient.request", "request"),
            Wrap("BaseApiClient.async_request", "request"),
            Wrap("BaseApiClient.request_streamed", "request"),
            Wrap("BaseApiClient.async_request_streamed", "request"),
        ),
        tested=_GOOGLE_GENAI_TESTED,
    ),
    # Whose request it is that the provider's SDK sends.
    Integration(
        "google-adk-requests",
        "google-adk",
        "1.15",
        _MODELS + "google_adk",
        Candidate("google.adk.flows.llm_flows.base_llm_flow", Wrap("BaseLlmFlow._call_llm_async", "request")),
        tested="1.15 and 2.13, with Gemini",
    ),
    Integration(
        "bedrock",
        "botocore",
        "1.35",
        _MODELS + "bedrock",
        Candidate("botocore.client", Wrap("BaseClient._make_api_call", "request")),
        tested="1.44, Converse",
    ),
)
