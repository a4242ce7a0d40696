// Queue-it's connector as its documentation has it used: the visitor's session cookie is checked by its hash, then the
// request goes to the origin. The hash comes from the platform, which is the fastest way there is.
import { createHmac } from "node:crypto";

import { KnownUser } from "@queue-it/connector-javascript";

const cryptoProvider = {
  getSha256Hash: (secret, text) => createHmac("sha256", secret).update(text).digest("hex"),
};

/** @param {Request} request @param {string[]} cookies What is to be set. */
function contextOf(request, cookies) {
  const header = (name) => request.headers.get(name) ?? "";
  const visitor = {
    getUserAgent: () => header("user-agent"),
    getHeader: header,
    getAbsoluteUri: () => request.url,
    getUserHostAddress: () => header("cf-connecting-ip"),
    getRequestBodyAsString: () => "",
    getCookieValue(name) {
      for (const pair of header("cookie").split("; ")) {
        if (pair.startsWith(`${name}=`)) return decodeURIComponent(pair.slice(name.length + 1));
      }
      return undefined;
    },
  };
  const answer = {
    setCookie(name, value, domain, expiration, isHttpOnly, isSecure) {
      const parts = [
        `${name}=${encodeURIComponent(value)}`,
        `expires=${new Date(expiration * 1000).toUTCString()}`,
        ...(domain ? [`domain=${domain}`] : []),
        ...(isHttpOnly ? ["HttpOnly"] : []),
        ...(isSecure ? ["Secure"] : []),
        "path=/",
      ];
      cookies.push(parts.join("; "));
    },
  };
  return {
    getHttpRequest: () => visitor,
    getHttpResponse: () => answer,
    getCryptoProvider: () => cryptoProvider,
    getEnqueueTokenProvider: () => null,
  };
}

export default {
  async fetch(request, env) {
    const cookies = [];
    const { url } = request;
    const token = new URL(url).searchParams.get(KnownUser.QueueITTokenKey) ?? "";
    const result = await KnownUser.validateRequestByIntegrationConfig(
      url,
      token,
      env.INTEGRATION,
      "customer",
      env.SECRET,
      contextOf(request, cookies),
    );
    if (result.doRedirect()) return Response.redirect(result.redirectUrl, 302);
    const response = await fetch(request);
    if (cookies.length === 0) return response;
    const changed = new Response(response.body, response);
    for (const cookie of cookies) changed.headers.append("set-cookie", cookie);
    return changed;
  },
};
