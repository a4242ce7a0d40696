// Sends a message to a webhook's receiver; `deliveries.rs` says when, and what comes of it.

/**
 * The status of the answer and, in seconds, for how long the receiver wants to be left alone: `"503 120"`.
 * @param {string} url
 * @param {string} id
 * @param {string} seconds since the epoch
 * @param {string | undefined} signature
 * @param {string} body
 * @param {number} milliseconds that it may take
 */
export async function send(url, id, seconds, signature, body, milliseconds) {
  const headers = {
    "content-type": "application/json",
    "user-agent": "Anteroom-Webhook/1",
    "webhook-id": id,
    "webhook-timestamp": seconds,
  };
  if (signature) headers["webhook-signature"] = signature;
  return post(url, headers, body, milliseconds);
}

/**
 * Posts a body to an address that may be a secret. Redirects are not followed.
 * @param {string} url
 * @param {Record<string, string>} headers
 * @param {BodyInit} body
 * @param {number} milliseconds that it may take
 */
export async function post(url, headers, body, milliseconds) {
  const signal = AbortSignal.timeout(milliseconds);
  try {
    const answer = await fetch(url, { method: "POST", headers, body, redirect: "manual", signal });
    // Whatever it says, nobody reads it.
    await answer.body?.cancel();
    const after = answer.headers.get("retry-after") ?? "";
    const wait = /^\d+$/.test(after) ? Number(after) : (Date.parse(after) - Date.now()) / 1000;
    return `${answer.status} ${wait > 0 ? Math.min(Math.ceil(wait), 86_400) : 0}`;
  } catch (error) {
    if (signal.aborted) throw new Error(`no answer within ${milliseconds / 1000} seconds`);
    throw new Error(`no answer (${String(error?.message).replaceAll(url, "its url")})`);
  }
}
