"""The histories that agents keep: which messages ask for tools and which answer, told by a message's own fields.

Dictionaries and SDK objects alike; no framework is imported and no code of a message runs while it is read.

- `messages`: OpenAI's chat, Anthropic's and Bedrock's blocks, LangChain's messages
- `items`: OpenAI's Responses API
- `contents`: Gemini
"""
