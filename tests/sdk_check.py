"""The fake Messages API server seen by the official Python SDK, so that both sides agree with a third.

    pip install anthropic
    python sdk_check.py http://127.0.0.1:PORT        against a server that plays what tests/sdk.rs scripts

Prints one JSON object with what the SDK made of each exchange. tests/sdk.rs runs it and compares.
"""
import json
import sys

import anthropic

TOOLS = [{"type": "bash_20250124", "name": "bash"}]


def streamed(client, prompt):
    with client.messages.stream(model="m", max_tokens=100, messages=[{"role": "user", "content": prompt}]) as stream:
        pieces = list(stream.text_stream)
        message = stream.get_final_message()
    return {
        "text": "".join(pieces),
        "pieces": len(pieces),
        "blocks": [block.type for block in message.content],
        "stop_reason": message.stop_reason,
        "output_tokens": message.usage.output_tokens,
    }


def tool_loop(client, prompt, stream):
    messages, ran = [{"role": "user", "content": prompt}], []
    while True:
        ask = dict(model="m", max_tokens=100, messages=messages, tools=TOOLS)
        if stream:
            with client.messages.stream(**ask) as events:
                reply = events.get_final_message()
        else:
            reply = client.messages.create(**ask)
        # What the SDK parsed goes back as plain JSON, without the fields that were absent on the wire.
        content = [block.model_dump(mode="json", exclude_none=True) for block in reply.content]
        messages.append({"role": "assistant", "content": content})
        calls = [block for block in reply.content if block.type == "tool_use"]
        if not calls:
            return {"ran": ran, "text": reply.content[-1].text, "stop_reason": reply.stop_reason}
        ran += [call.input["command"] for call in calls]
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": "ok " + call.input["command"]}
                   for call in calls]
        messages.append({"role": "user", "content": results})


def failure(client, prompt):
    try:
        streamed(client, prompt)
    except anthropic.APIStatusError as error:
        return {"class": type(error).__name__, "status": error.status_code, "request_id": error.request_id}
    return {"class": None}


def main():
    client = anthropic.Anthropic(base_url=sys.argv[1], api_key="sk-test-key", max_retries=0)
    print(json.dumps({
        "streamed": streamed(client, "streamed text"),
        "loop": tool_loop(client, "tool loop", stream=False),
        "streamed_loop": tool_loop(client, "streamed tool loop", stream=True),
        "overloaded": failure(client, "overloaded"),
        "mid_stream": failure(client, "error in the stream"),
    }))


main()
