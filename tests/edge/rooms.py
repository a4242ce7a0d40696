"""Does what it is told with Cloudflare's Python client: a line of JSON for each call, a line for what comes of it."""

import json
import sys

import cloudflare

base_url, token, zone = sys.argv[1:]
# A connection that is kept may be closed by the other side just when it is used again.
client = cloudflare.Cloudflare(
    base_url=base_url, api_token=token, max_retries=0, timeout=600, default_headers={"connection": "close"}
)

for line in sys.stdin:
    method, ids, given = json.loads(line)
    own = given.pop("anteroom", None)
    extra = {"extra_body": {"anteroom": own}} if own else {}
    try:
        made = getattr(client.waiting_rooms, method)(*ids, zone_id=zone, **given, **extra)
        answer = made.to_dict() if hasattr(made, "to_dict") else list(made)
    except cloudflare.APIStatusError as error:
        answer = {"status": error.status_code}
    print(json.dumps(answer, default=str), flush=True)
