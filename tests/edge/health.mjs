// What the platform's health checks and our own observers send, for tests of what becomes of it.

export const WEBHOOK_SECRET = "4de28cf2-4a1f-4abd-b62e-c8d69569a4d2";
/** Vars of checks whose results the tests send themselves: nobody else looks. */
export function unobserved(...names) {
  const check = { url: "https://origin.example.com/", suspended: true };
  return Object.fromEntries(names.map((name) => [`CHECK_${name.toUpperCase()}`, check]));
}

export const WEBHOOK = "/__anteroom/health/webhook";

/** As the platform sends it; `data` in place of what is there. */
export function notification(data) {
  return {
    name: "Origin",
    text: "Health Check: configuration-service",
    data: {
      time: platformTime(Date.now()),
      status: "Unhealthy",
      reason: "TCP connection failed",
      name: "configuration-service",
      preview: false,
      expected_codes: "200",
      actual_code: 0,
      health_check_id: "5334d6fbfc9f170315cc51e29e8a350a",
      ...data,
    },
    ts: Math.floor(Date.now() / 1000),
    alert_type: "health_check_status_notification",
  };
}

/** Whole seconds, as the platform writes them. */
export function platformTime(at) {
  return `${new Date(at).toISOString().slice(0, 19).replace("T", " ")} +0000 UTC`;
}

/** The bytes of a message of results (src/wire.rs says how): what an observer sends. */
export function record(results) {
  const number = (value) => {
    const bytes = [];
    for (let rest = BigInt(value); ; rest >>= 7n) {
      if (rest < 128n) return [...bytes, Number(rest)];
      bytes.push(Number(rest & 127n) | 128);
    }
  };
  const text = (value) => [...number(Buffer.byteLength(value)), ...Buffer.from(value)];
  const maybe = (value) => (value === undefined ? [0] : [1, ...number(value)]);
  // The places of reasons in `Reason`.
  const reasons = ["No failures", "TCP connection failed"];
  const bytes = results.map(
    ({ check, region, observer = 1, at, reason = "No failures", code, waterfall = [] }) => [
      ...text(check),
      ...text(region),
      observer,
      ...number(at),
      Number(reason === "No failures"),
      ...number(reasons.indexOf(reason)),
      ...text("200"),
      ...maybe(code),
      ...[0, 1, 2, 3].flatMap((moment) => maybe(waterfall[moment])),
    ],
  );
  return [1, ...number(results.length), ...bytes.flat()];
}

/** What two observers in each of two regions saw of two checks in an hour; one check fails for some minutes. */
export function anHour(now) {
  return Array.from({ length: 480 }, (_, index) => {
    const minute = index % 60;
    const check = index % 120 < 60 ? "production" : "staging";
    const region = index % 240 < 120 ? "WEU" : "SEAS";
    const observer = 1 + Math.floor(index / 240);
    const at = now - minute * 60_000 - observer;
    if (check === "staging" && minute % 20 < 5)
      return { check, region, observer, at, reason: "TCP connection failed" };
    const far = region === "SEAS" ? 3 : 1;
    const waterfall = [20, 40, 110, 150].map((ms, moment) => ms * far + ((minute * 7 + moment) % 23));
    return { check, region, observer, at, code: 200, waterfall };
  });
}
