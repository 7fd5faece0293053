"""What the official suite calls by name: tools, resources and prompts that a server under test must have.

Those that our own machinery can express (a text, an error, progress) are tools of the desk, so that the suite's calls
run through it. The rest speak the protocol directly.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from bunko.errors import QueryError
from bunko.interfaces.tools.tool import ToolCall, ToolDefinition, ToolReply, object_schema

Context = ServerRequestContext[Any, Any]
Answer = types.CallToolResult | types.InputRequiredResult
Asked = Callable[[Context, types.CallToolRequestParams], Awaitable[Answer]]

# The smallest images and sounds there are: one red pixel, and no samples at all.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="


# Tools of the desk: they go the way of `search` and `reindex`.


def _progressed(call: ToolCall) -> ToolReply:
    for done in (0, 50, 100):
        call.report_progress(done, 100, f"{done} of 100")
        time.sleep(0.25)  # longer than the server's own pause between two reports
    return _said("Done.")


def _refused(call: ToolCall) -> ToolReply:
    raise QueryError("This tool intentionally returns an error for testing", hint="There is nothing to do about it.")


def _said(text: str) -> ToolReply:
    return ToolReply(text, {"text": text})


def _plain(name: str, about: str, run: Callable[[ToolCall], ToolReply]) -> ToolDefinition:
    return ToolDefinition(name, about, about, (), object_schema({"text": {"type": "string"}}), run, right="read")


DESK_TOOLS = [
    _plain("test_simple_text", "A text", lambda _: _said("This is a simple text response for testing.")),
    _plain("test_error_handling", "An error", _refused),
    _plain("test_tool_with_progress", "Progress", _progressed),
    # Bunko sends no log messages to clients; this one has nothing to say in any case.
    _plain("test_logging_tool", "No log message", lambda _: _said("Nothing was logged.")),
]


# Tools that answer with what ours never do: other kinds of content, questions to the user or the client's model.


def complete(*content: types.ContentBlock) -> types.CallToolResult:
    return types.CallToolResult(content=list(content))


def text(words: str) -> types.TextContent:
    return types.TextContent(type="text", text=words)


def image() -> types.ImageContent:
    return types.ImageContent(type="image", data=PNG, mime_type="image/png")


def embedded(uri: str, kind: str, words: str) -> types.EmbeddedResource:
    contents = types.TextResourceContents(uri=uri, mime_type=kind, text=words)
    return types.EmbeddedResource(type="resource", resource=contents)


def fixed(*content: types.ContentBlock) -> Asked:
    async def answer(ctx: Context, params: types.CallToolRequestParams) -> Answer:
        return complete(*content)

    return answer


def sampling(words: str, tokens: int) -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=text(words))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[message], max_tokens=tokens),
    )


def form(message: str, properties: dict[str, Any], *required: str) -> types.ElicitRequest:
    wanted = {"type": "object", "properties": properties, "required": list(required or properties)}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=wanted))


async def test_sampling(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    related = _related(ctx)
    asked = sampling((params.arguments or {})["prompt"], 100)
    found = await ctx.session.send_request(asked, types.CreateMessageResult, metadata=related)
    return complete(text(f"LLM response: {getattr(found.content, 'text', '')}"))


def eliciting(properties: dict[str, Any], *required: str) -> Asked:
    async def answer(ctx: Context, params: types.CallToolRequestParams) -> Answer:
        asked = form((params.arguments or {}).get("message", "Please fill this in"), properties, *required)
        found = await ctx.session.send_request(asked, types.ElicitResult, metadata=_related(ctx))
        return complete(text(f"Elicitation completed: action={found.action}, content={json.dumps(found.content)}"))

    return answer


def _related(ctx: Context) -> Any:
    from mcp.shared.message import ServerMessageMetadata

    return ServerMessageMetadata(related_request_id=ctx.request_id)


async def test_missing_capability(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    wanted = types.ClientCapabilities(sampling=types.SamplingCapability())
    if not ctx.session.check_client_capability(wanted):
        data = types.MissingRequiredClientCapabilityErrorData(required_capabilities=wanted)
        raise MCPError(
            types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            "This tool needs a client that samples",
            data.model_dump(by_alias=True, mode="json", exclude_none=True),
        )
    return complete(text("The client samples."))


# Input in several rounds (2026-07-28): what is missing is asked for, the client calls again with it.

NAME = form("What is your name?", {"name": {"type": "string"}})
CAPITAL = sampling("What is the capital of France?", 100)


def rounds(*steps: dict[str, Any], state: bool = False) -> Asked:
    """Return a tool that asks for each step's inputs, one step after the other, then tells what it was given."""

    async def answer(ctx: Context, params: types.CallToolRequestParams) -> Answer:
        step = int(params.request_state or 0)
        given = params.input_responses or {}
        if step < len(steps) and steps[step].keys() <= given.keys():
            step += 1
        if step < len(steps):
            return types.InputRequiredResult(input_requests=steps[step], request_state=str(step) if state else None)
        told = {name: given[name].model_dump(mode="json", exclude_none=True) for name in given}
        return complete(text(f"{'state-ok ' if state else ''}{json.dumps(told)}"))

    return answer


async def test_input_required_result_capabilities(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    if params.input_responses:
        return complete(text("Thank you."))
    can = ctx.session.client_capabilities or types.ClientCapabilities()
    wanted: dict[str, Any] = {}
    if can.elicitation is not None:
        wanted["user_name"] = NAME
    if can.sampling is not None:
        wanted["capital_question"] = CAPITAL
    return types.InputRequiredResult(input_requests=wanted) if wanted else complete(text("There is nobody to ask."))


_OPTIONS = ["option1", "option2", "option3"]
_TITLED = [{"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(("First", "Second", "Third"), 1)]
_ENUMS = {
    "untitledSingle": {"type": "string", "enum": _OPTIONS},
    "titledSingle": {"type": "string", "oneOf": _TITLED},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": _TITLED}},
}
_DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
_EVERYTHING = {
    "user_name": NAME,
    "greeting": sampling("Generate a greeting", 50),
    "client_roots": types.ListRootsRequest(),
}
_STEPS = (
    {"step1": form("Step 1: What is your name?", {"name": {"type": "string"}})},
    {"step2": form("Step 2: What is your favorite color?", {"color": {"type": "string"}})},
)
_CONFIRM = {"confirm": form("Please confirm", {"ok": {"type": "boolean"}})}

TOOLS: dict[str, Asked] = {
    "test_image_content": fixed(image()),
    "test_audio_content": fixed(types.AudioContent(type="audio", data=WAV, mime_type="audio/wav")),
    "test_embedded_resource": fixed(embedded("test://embedded-resource", "text/plain", "This is embedded.")),
    "test_multiple_content_types": fixed(
        text("Multiple content types test:"),
        image(),
        embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ),
    "test_sampling": test_sampling,
    "test_elicitation": eliciting({"username": {"type": "string"}, "email": {"type": "string"}}),
    "test_elicitation_sep1034_defaults": eliciting(_DEFAULTS),
    "test_elicitation_sep1330_enums": eliciting(_ENUMS),
    "test_missing_capability": test_missing_capability,
    "test_streaming_elicitation": rounds({"user_name": NAME}),
    "test_input_required_result_elicitation": rounds({"user_name": NAME}),
    "test_input_required_result_sampling": rounds({"capital_question": CAPITAL}),
    "test_input_required_result_list_roots": rounds({"client_roots": types.ListRootsRequest()}),
    "test_input_required_result_request_state": rounds(_CONFIRM, state=True),
    "test_input_required_result_tampered_state": rounds(_CONFIRM, state=True),
    "test_input_required_result_multiple_inputs": rounds(_EVERYTHING, state=True),
    "test_input_required_result_multi_round": rounds(*_STEPS, state=True),
    "test_input_required_result_capabilities": test_input_required_result_capabilities,
    "json_schema_2020_12_tool": fixed(text("The schema is the point.")),
    "test_custom_headers": fixed(text("The header is the point.")),
}

_ANY: dict[str, Any] = {"type": "object"}
_ADDRESS = {"street": {"type": "string"}, "city": {"type": "string"}}
SCHEMAS: dict[str, dict[str, Any]] = {
    "test_sampling": object_schema({"prompt": {"type": "string"}}, "prompt"),
    "test_elicitation": object_schema({"message": {"type": "string"}}, "message"),
    "test_custom_headers": object_schema({"region": {"type": "string", "x-mcp-header": "Region"}}),
    "json_schema_2020_12_tool": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": _ADDRESS}},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
}


def described(names: list[str]) -> list[types.Tool]:
    return [types.Tool(name=name, description=name, input_schema=SCHEMAS.get(name, _ANY)) for name in names]


# Resources and prompts

RESOURCES: dict[str, types.TextResourceContents | types.BlobResourceContents] = {
    "test://static-text": types.TextResourceContents(
        uri="test://static-text", mime_type="text/plain", text="This is the content of the static text resource."
    ),
    "test://static-binary": types.BlobResourceContents(uri="test://static-binary", mime_type="image/png", blob=PNG),
    "test://template/123/data": types.TextResourceContents(
        uri="test://template/123/data",
        mime_type="application/json",
        text='{"id":"123","templateTest":true,"data":"Data for ID: 123"}',
    ),
}

PROMPTS = [
    types.Prompt(name="test_simple_prompt", description="One message"),
    types.Prompt(
        name="test_prompt_with_arguments",
        description="Its arguments",
        arguments=[types.PromptArgument(name=name, description=name, required=True) for name in ("arg1", "arg2")],
    ),
    types.Prompt(
        name="test_prompt_with_embedded_resource",
        description="A resource inside",
        arguments=[types.PromptArgument(name="resourceUri", description="The resource", required=True)],
    ),
    types.Prompt(name="test_prompt_with_image", description="An image inside"),
    types.Prompt(name="test_input_required_result_prompt", description="Asks before it answers"),
]
_CONTEXT: types.InputRequests = {
    "user_context": form("What context should the prompt use?", {"context": {"type": "string"}})
}


async def list_prompts(ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=PROMPTS)


async def get_prompt(
    ctx: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    given = params.arguments or {}
    content: list[Any]
    match params.name:
        case "test_simple_prompt":
            content = [text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            content = [text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")]
        case "test_prompt_with_embedded_resource":
            content = [
                embedded(given["resourceUri"], "text/plain", "Embedded resource content for testing."),
                text("Please process the embedded resource above."),
            ]
        case "test_prompt_with_image":
            content = [image(), text("Please analyze the image above.")]
        case "test_input_required_result_prompt":
            if "user_context" not in (params.input_responses or {}):
                return types.InputRequiredResult(input_requests=_CONTEXT)
            content = [text("Thank you for the context.")]
        case _:
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=one) for one in content])
