"""What the official suite calls by name: tools, resources and prompts that a server under test must have.

Those that our own machinery can express (a text, an error, progress) are tools of the desk, so that the suite's calls
run through it. The rest speak the protocol directly.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import itertools
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any, TypeVar

import mcp_types as types
from mcp.shared.inbound import validate_mcp_param_headers
from pydantic import BaseModel

from bunko.errors import QueryError
from bunko.interfaces.mcp.messages import INVALID_PARAMS, Message, ProtocolError
from bunko.interfaces.mcp.protocol import CAPABILITIES_KEY, ClientCall
from bunko.interfaces.tools.tool import ToolCall, ToolDefinition, ToolReply, object_schema

Model = TypeVar("Model", bound=BaseModel)
Answer = types.CallToolResult | types.InputRequiredResult
Asked = Callable[[ClientCall, types.CallToolRequestParams], Awaitable[Answer]]

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
    async def answer(call: ClientCall, params: types.CallToolRequestParams) -> Answer:
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


HEADERS: ContextVar[Mapping[str, str]] = ContextVar("HEADERS")  # of the HTTP request that is being answered
_waiting: dict[str, asyncio.Future[Message]] = {}  # for what the client says to the requests of a tool
_numbers = itertools.count()


async def ask(call: ClientCall, request: BaseModel, answer_type: type[Model]) -> Model:
    """Ask the client something as part of a call, which bunko itself never does."""
    request_id = f"ask-{next(_numbers)}"
    _waiting[request_id] = asyncio.get_running_loop().create_future()
    await call.send({"jsonrpc": "2.0", "id": request_id, **dump(request)})
    response = await _waiting[request_id]
    return answer_type.model_validate(response["result"], by_name=False)


def take_response(message: Message) -> None:
    """Hand what a client says to whoever asked."""
    _waiting.pop(message["id"]).set_result(message)


def dump(model: BaseModel) -> dict[str, Any]:
    """Return a model of the SDK as JSON."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


async def test_sampling(call: ClientCall, params: types.CallToolRequestParams) -> Answer:
    found = await ask(call, sampling((params.arguments or {})["prompt"], 100), types.CreateMessageResult)
    return complete(text(f"LLM response: {getattr(found.content, 'text', '')}"))


def eliciting(properties: dict[str, Any], *required: str) -> Asked:
    async def answer(call: ClientCall, params: types.CallToolRequestParams) -> Answer:
        asked = form((params.arguments or {}).get("message", "Please fill this in"), properties, *required)
        found = await ask(call, asked, types.ElicitResult)
        return complete(text(f"Elicitation completed: action={found.action}, content={json.dumps(found.content)}"))

    return answer


def client_capabilities(call: ClientCall) -> types.ClientCapabilities:
    """Return what a client of the newer era says it can."""
    return types.ClientCapabilities.model_validate(call.params["_meta"][CAPABILITIES_KEY], by_name=False)


async def test_custom_headers(call: ClientCall, params: types.CallToolRequestParams) -> Answer:
    """Compare the headers with the arguments; none of bunko's own tools has a parameter that is also a header."""
    rejection = validate_mcp_param_headers(SCHEMAS["test_custom_headers"], params.arguments or {}, HEADERS.get())
    if rejection is not None:
        raise ProtocolError(rejection.code, rejection.message, rejection.data)
    return complete(text("The header is the point."))


async def test_missing_capability(call: ClientCall, params: types.CallToolRequestParams) -> Answer:
    if client_capabilities(call).sampling is None:
        data = types.MissingRequiredClientCapabilityErrorData(
            required_capabilities=types.ClientCapabilities(sampling=types.SamplingCapability())
        )
        raise ProtocolError(
            types.MISSING_REQUIRED_CLIENT_CAPABILITY, "This tool needs a client that samples", dump(data)
        )
    return complete(text("The client samples."))


# Input in several rounds (2026-07-28): what is missing is asked for, the client calls again with it.

NAME = form("What is your name?", {"name": {"type": "string"}})
CAPITAL = sampling("What is the capital of France?", 100)


_SECRET = secrets.token_bytes(32)


def seal(step: int) -> str:
    """Return a state that a client cannot change."""
    return f"{step}.{hmac.digest(_SECRET, str(step).encode(), hashlib.sha256).hex()}"


def unseal(state: str) -> int:
    """Return what was sealed."""
    step = state.partition(".")[0]
    if not step.isdigit() or not hmac.compare_digest(seal(int(step)).encode(), state.encode()):
        raise ProtocolError(INVALID_PARAMS, "The requestState is not one of this server")
    return int(step)


def rounds(*steps: dict[str, Any], state: bool = False) -> Asked:
    """Return a tool that asks for each step's inputs, one step after the other, then tells what it was given."""

    async def answer(call: ClientCall, params: types.CallToolRequestParams) -> Answer:
        step = unseal(params.request_state) if params.request_state else 0
        given = params.input_responses or {}
        if step < len(steps) and steps[step].keys() <= given.keys():
            step += 1
        if step < len(steps):
            return types.InputRequiredResult(input_requests=steps[step], request_state=seal(step) if state else None)
        told = {name: given[name].model_dump(mode="json", exclude_none=True) for name in given}
        return complete(text(f"{'state-ok ' if state else ''}{json.dumps(told)}"))

    return answer


async def test_input_required_result_capabilities(call: ClientCall, params: types.CallToolRequestParams) -> Answer:
    if params.input_responses:
        return complete(text("Thank you."))
    can = client_capabilities(call)
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
    "test_custom_headers": test_custom_headers,
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


def described(names: list[str]) -> list[dict[str, Any]]:
    return [{"name": name, "description": name, "inputSchema": SCHEMAS.get(name, _ANY)} for name in names]


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


async def list_prompts(call: ClientCall) -> dict[str, Any]:
    return dump(types.ListPromptsResult(prompts=PROMPTS))


async def get_prompt(call: ClientCall) -> dict[str, Any]:
    params = types.GetPromptRequestParams.model_validate(call.params, by_name=False)
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
                return dump(types.InputRequiredResult(input_requests=_CONTEXT))
            content = [text("Thank you for the context.")]
        case _:
            raise ProtocolError(INVALID_PARAMS, f"Unknown prompt: {params.name}")
    return dump(types.GetPromptResult(messages=[types.PromptMessage(role="user", content=one) for one in content]))
