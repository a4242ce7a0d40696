"""Asks the Worker for all that its own description offers, and for much that it does not.

Arguments: the Worker's address, tokens as JSON by their roles, how many requests an operation gets at least. Each answer must be
one that the description knows: its status, its type, and all that is in it. Prints which operations never did what they are for.
"""

import datetime
import itertools
import json
import sys

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from openapi_spec_validator import OpenAPIV31SpecValidator
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
address, tokens, examples = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
# Whoever is not answered for so many seconds never is.
PATIENCE = 30
V4 = f"{address}/__anteroom/client/v4"
ROOMS = f"{V4}/zones/main/waiting_rooms"
# By the tests' clock, which is about that of the machine.
BEGIN = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=30)
PLANNED = {"from": BEGIN.isoformat(), "until": (BEGIN + datetime.timedelta(hours=1)).isoformat()}
numbers = itertools.count(1)
# One of many may make rooms: each may send 1,200 requests in five minutes.
configuring = itertools.cycle(tokens["configure"])


def closed(schema):
    """The same, where objects have no properties but those that are described."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    more = {"additionalProperties": False} if isinstance(schema.get("properties"), dict) else {}
    return {**more, **{name: closed(value) for name, value in schema.items()}}


def made():
    """A room, an event, a rule, a plan, a page and a token, and what leads to them."""
    headers = {"authorization": f"Bearer {next(configuring)}"}

    def send(path, body, root=ROOMS):
        answer = requests.post(f"{root}{path}", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json()["result"]

    number = next(numbers)
    room = send("", {**valid(number), "total_active_users": 10, "new_users_per_minute": 10})["id"]
    event = send(f"/{room}/events", {"name": "known", **times(number)})["id"]
    rule = send(f"/{room}/rules", {"action": "bypass_waiting_room", "expression": 'http.host eq "a"'})[0]["id"]
    plan = send(f"/{room}/plans", {"set": {"queue_all": True}, **PLANNED})["id"]
    page = send("/preview", {"custom_html": "<p>{{waitTime}}</p>"})["preview_url"].rsplit("/", 1)[1]
    # It takes the place of the one before: there may be a hundred.
    for token in requests.get(f"{V4}/tokens", headers=headers).json()["result"]:
        requests.delete(f"{V4}/tokens/{token['id']}", headers=headers)
    token = send("/tokens", {"name": "known", "role": "view"}, V4)["id"]
    return {
        "zone_id": "main",
        "account_id": "main",
        "waiting_room_id": room,
        "event_id": event,
        "rule_id": rule,
        "plan_id": plan,
        "preview_id": page,
        "token_id": token,
    }


def valid(number):
    return {"name": f"room-{number}", "host": f"h{number}.test", "path": f"/{number}"}


def times(number):
    return {
        "event_start_time": f"{2030 + number % 900}-11-28T09:00:00+01:00",
        "event_end_time": f"{2030 + number % 900}-11-28T19:00:00+01:00",
    }


def helped(written):
    """A body or a query with values that can be, where chance would hardly ever write one."""
    if not isinstance(written, dict):
        return written
    number = next(numbers)
    hints = {
        **valid(number),
        **times(number),
        "prequeue_start_time": None,
        "expression": 'http.host eq "b"',
        "room": "deployed",
        "round": 1,
        "event": None,
        "set": {"total_active_users": number},
        "clear": ["message"],
        "keep": [],
        "events": {},
        "until": "30m",
        "if_version": None,
        "token": tokens["configure"][0],
        "expires_on": None,
        "text": "Hello World!",
    }
    if "set" in written and "from" in written:
        hints |= {**PLANNED, "weekly": False, "zone": "UTC", "reason": ""}
    known = {name: hints.get(name, value) for name, value in written.items()}
    return {name: value for name, value in known.items() if value is not None or name not in ("event", "if_version")}


document = requests.get(f"{address}/__anteroom/openapi.json").json()
OpenAPIV31SpecValidator(document).validate()
schema = schemathesis.openapi.from_dict(closed(document))
schema.config.update(base_url=address)
callers = st.sampled_from(["configure"] * 7 + ["view", "steer", "nobody"])
never, sent = [], 0

for found in schema.get_all_operations():
    operation = found.ok()
    known = made()
    names = {parameter.name for parameter in operation.path_parameters}
    path = {name: value for name, value in known.items() if name in names}
    queried = {parameter.name for parameter in operation.query}
    statuses = set()

    def ask(strategy, most, is_helped):
        @seed(16)
        @settings(
            max_examples=most,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=strategy, caller=callers)
        def run(case, caller):
            global sent
            sent += 1
            if is_helped:
                is_notification = isinstance(case.body, dict) and "webhook" in case.path
                case.body = helped({"text": "", **case.body} if is_notification else case.body)
                case.query = helped({"room": "", **case.query} if "room" in queried else case.query)
            token = next(configuring) if caller == "configure" else tokens.get(caller, "of nobody at all")
            headers = {"authorization": f"Bearer {token}"}
            if "webhook" in case.path:
                headers["cf-webhook-auth"] = tokens["webhook"]
            try:
                answer = case.call(headers=headers, allow_redirects=False, timeout=PATIENCE)
            except requests.Timeout:
                # The Worker answers nobody any more: there is nothing to go on with.
                sys.exit(f"no answer within {PATIENCE} s: {case.as_curl_command()}")
            statuses.add(answer.status_code)
            case.validate_response(answer, checks=CHECKS)

        run()

    if operation.definition.raw["operationId"] == "restoreRoom":
        gone = f"{ROOMS}/{known['waiting_room_id']}"
        requests.delete(gone, headers={"authorization": f"Bearer {next(configuring)}"})
    try:
        ask(operation.as_strategy(path_parameters=path), examples, True)
        ask(operation.as_strategy(path_parameters=path), examples // 2, False)
        if path:
            ask(operation.as_strategy(), examples // 4, True)
        ask(operation.as_strategy(GenerationMode.NEGATIVE, path_parameters=path), examples, False)
    except Unsatisfiable:
        pass  # Nothing in it can be written wrong.
    if not any(status < 400 for status in statuses):
        never.append(operation.definition.raw["operationId"])
print(json.dumps({"sent": sent, "never": never}))
