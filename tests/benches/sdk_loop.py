"""The agent loop of the official Python SDK's documentation: one persistent bash, one request per call.

Arguments: base URL. Ends when the model ends its turn. The bench measures it from the server's side.
"""

import subprocess
import sys

import anthropic

MARK = "__end_of_command__"

shell = subprocess.Popen(
    ["/bin/bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
)


def run(command):
    shell.stdin.write(f"{command}\necho {MARK} $?\n")
    shell.stdin.flush()
    lines = []
    for line in shell.stdout:
        if line.startswith(MARK):
            return "".join(lines) + f"exit {line.split()[1]}"
        lines.append(line)
    return "the shell ended"


client = anthropic.Anthropic(base_url=sys.argv[1], api_key="sk-bench", max_retries=0)
messages = [{"role": "user", "content": "round and round"}]
while True:
    with client.messages.stream(
        model="claude-opus-5-5",
        max_tokens=4096,
        messages=messages,
        tools=[{"type": "bash_20250124", "name": "bash"}],
    ) as stream:
        reply = stream.get_final_message()
    messages.append({"role": "assistant", "content": reply.content})
    calls = [block for block in reply.content if block.type == "tool_use"]
    if not calls:
        break
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": run(call.input["command"])} for call in calls]
    messages.append({"role": "user", "content": results})
shell.stdin.close()
shell.wait()
