"""Readers of message histories: find each message's tool calls and results by its own fields.

Dictionaries and SDK objects are both read. No framework is imported, and no code of a message runs.

- `messages`: OpenAI's chat, Anthropic's and Bedrock's blocks, LangChain's messages
- `items`: OpenAI's Responses API
- `contents`: Gemini
"""
