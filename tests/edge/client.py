"""Every method of Cloudflare's Python client for waiting rooms, against an address and with a token."""

import sys

import cloudflare

base_url, token = sys.argv[1:]


def client(**more):
    return cloudflare.Cloudflare(base_url=base_url, max_retries=0, **more)


def same(one, other):
    if one != other:
        raise SystemExit(f"{one!r} is not {other!r}")


def refused(kind, call):
    try:
        call()
    except kind as error:
        return [problem.source.pointer if problem.source else None for problem in error.errors]
    raise SystemExit(f"{kind.__name__} is missing")


rooms = client(api_token=token).waiting_rooms
zone = {"zone_id": "023e105f4ecef8ad9ca31a8372d0c353"}

sent = {
    "name": "Python_Room-1",
    "host": "python.example.com",
    "path": "/sale",
    "new_users_per_minute": 200,
    "total_active_users": 300,
    "additional_routes": [{"host": "python2.example.com", "path": "/sale"}],
    "cookie_attributes": {"samesite": "none", "secure": "always"},
    "cookie_suffix": "python",
    "custom_page_html": "{{#waitTimeKnown}}{{waitTime}} mins{{/waitTimeKnown}}",
    "default_template_language": "de-DE",
    "description": "Sale",
    "enabled_origin_commands": ["revoke"],
    "queueing_status_code": 202,
    "turnstile_action": "infinite_queue",
    "turnstile_mode": "visible_managed",
}
own = {"message": "Welcome"}
made = rooms.create(**zone, **sent, extra_body={"anteroom": own})
read = made.to_dict()
for field, value in sent.items():
    same(read[field], value)
same(read["anteroom"], own)
same(rooms.get(made.id, **zone), made)

# All that it insists on.
must = {"name": "renamed", "host": "python.example.com", "new_users_per_minute": 1, "total_active_users": 1}
updated = rooms.update(made.id, **zone, **must)
same((updated.id, updated.name, updated.path, updated.to_dict()["anteroom"]), (made.id, "renamed", "/", own))
same(rooms.edit(made.id, **zone, **must, queue_all=True).queue_all, True)
names = [f"python-{number}" for number in range(6)]
for number, name in enumerate(names):
    rooms.create(**zone, **{**must, "name": name}, path=f"/python/{number}")
for scope in (zone, {"account_id": "01a7362d577a6c3019a474fd6f485823", "per_page": 5}):
    same([room.name for room in rooms.list(**scope) if room.name in names], names)
# It writes whole numbers as 1.0.
same(len(rooms.list(**zone, page=1.0, per_page=5.0).result), 5)
status = rooms.statuses.get(made.id, **zone)
same((status.status, status.event_id, status.estimated_queued_users), ("queueing", "", 0))
same(rooms.page.preview(**zone, custom_html="<p>x</p>").preview_url.startswith("http"), True)
before = rooms.settings.get(**zone).search_engine_crawler_bypass
same(rooms.settings.update(**zone, search_engine_crawler_bypass=before).search_engine_crawler_bypass, before)
same(rooms.settings.edit(**zone).search_engine_crawler_bypass, before)

at = {**zone, "waiting_room_id": made.id}
times = {"event_start_time": "2030-11-28T09:00:00+01:00", "event_end_time": "2030-11-28T19:00:00+01:00"}
event = rooms.events.create(made.id, **zone, name="night", **times)
same((event.event_start_time, event.total_active_users), (times["event_start_time"], None))
same(rooms.events.update(event.id, **at, name="night", **times, prequeue_start_time=None).id, event.id)
edited = rooms.events.edit(event.id, **at, name="night", **times, description="late")
same(edited.description, "late")
same(rooms.events.get(event.id, **at), edited)
same(rooms.events.details.get(event.id, **at).total_active_users, 1)
same([one.name for one in rooms.events.list(made.id, **zone)], ["night"])
same(rooms.events.delete(event.id, **at).id, event.id)

rule = {"action": "bypass_waiting_room", "expression": "ip.src in {10.20.30.40}"}
first = list(rooms.rules.create(made.id, **zone, rules=rule))
same((first[0].version, first[0].enabled), ("1", True))
two = list(rooms.rules.update(made.id, **zone, rules=[rule, {**rule, "description": "b"}]))
for position in ({"index": 1}, {"before": two[0].id}, {"before": ""}):
    moved = list(rooms.rules.edit(two[1].id, **at, **rule, position=position))
    same([one.id for one in moved], [two[1].id, two[0].id])
same([one.id for one in rooms.rules.get(made.id, **zone)], [two[1].id, two[0].id])
same(len(list(rooms.rules.delete(two[0].id, **at))), 1)
same(list(rooms.rules.update(made.id, **zone, rules=[])), [])

# It drops the token when there is a key.
same(len(list(client(api_key=token, api_email="a@example.com").waiting_rooms.list(**zone))) > 6, True)
refused(cloudflare.AuthenticationError, lambda: client(api_token="x" * 40).waiting_rooms.list(**zone))
refused(cloudflare.NotFoundError, lambda: rooms.get("f" * 32, **zone))
same(refused(cloudflare.BadRequestError, lambda: rooms.create(**zone, **{**must, "name": "a b"})), ["/name"])
for room in list(rooms.list(**zone)):
    if room.name in [*names, "renamed"]:
        same(rooms.delete(room.id, **zone).id, room.id)
print("done")
