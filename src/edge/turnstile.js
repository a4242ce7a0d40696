// The calls to Turnstile's service; `turnstile.rs` says when, and reads what comes.

/**
 * What the service says of a token: the body of its answer.
 * @param {string} service its URL
 * @param {string} secret
 * @param {string} token
 * @param {string | undefined} address of the visitor
 * @param {number} milliseconds that it may take
 */
export async function siteverify(service, secret, token, address, milliseconds) {
  const body = new URLSearchParams({ secret, response: token });
  if (address) body.set("remoteip", address);
  const signal = AbortSignal.timeout(milliseconds);
  const answer = await fetch(`${service}/siteverify`, { method: "POST", body, signal });
  return answer.text();
}

/** Whether visitors could get the widget's script. */
export async function hasWidget(service, milliseconds) {
  const signal = AbortSignal.timeout(milliseconds);
  const answer = await fetch(`${service}/api.js`, { method: "HEAD", signal });
  return answer.status < 500;
}
