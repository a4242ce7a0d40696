// Visitors: so many requests at a time, each lane sends its next one when the last is answered.
import { Pool } from "undici";

import { ORIGIN_BODY, ORIGIN_HEADER } from "./origin.mjs";

/** Requests under way at any time; the same for every Worker. */
export const LANES = 64;
export const HOST = "shop.test";
/** What a browser sends along, and the platform tells about it. */
const HEADERS = {
  host: HOST,
  accept: "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
  "accept-encoding": "gzip, br",
  "accept-language": "en-GB,en;q=0.9",
  "cf-connecting-ip": "203.0.113.7",
  "cf-ipcountry": "NL",
  "cf-ray": "8f3a1c2b4d5e6f70-AMS",
  "cf-visitor": '{"scheme":"http"}',
  "mf-cf-blob": JSON.stringify({
    colo: "AMS",
    asn: 64496,
    asOrganization: "Example Networks",
    country: "NL",
    city: "Amsterdam",
    continent: "EU",
    region: "North Holland",
    regionCode: "NH",
    postalCode: "1012",
    latitude: "52.37403",
    longitude: "4.88969",
    timezone: "Europe/Amsterdam",
    isEUCountry: "1",
    httpProtocol: "HTTP/2",
    requestPriority: "weight=256;exclusive=1",
    clientAcceptEncoding: "gzip, deflate, br",
    clientTcpRtt: 12,
    tlsCipher: "AEAD-AES128-GCM-SHA256",
    tlsVersion: "TLSv1.3",
    tlsClientRandom: "m4u3GmzTzBGwfPBvYbmXh1yBb7f0ZPDzqSW3i2jGvV0=",
    tlsClientAuth: {
      certPresented: "0",
      certVerified: "NONE",
      certRevoked: "0",
      certIssuerDN: "",
      certSubjectDN: "",
    },
    edgeRequestKeepAliveStatus: 1,
  }),
  "sec-fetch-dest": "document",
  "sec-fetch-mode": "navigate",
  "sec-fetch-site": "same-origin",
  "upgrade-insecure-requests": "1",
  "user-agent":
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
};
/** The site's own. */
const COOKIES = "theme=dark; basket=6fd1c0f5f6a54d3b; _visit=GA1.1.1204712067.1763712345";
const ORIGIN_BYTES = Buffer.from(ORIGIN_BODY);

/** Thrown when an answer is not what it should be. */
export class Wrong extends Error {}

/**
 * @typedef {object} Answer
 * @property {number} status
 * @property {Record<string, string | string[]>} headers
 * @property {string | undefined} setCookie
 * @property {Buffer} body
 * @property {boolean} fromOrigin Whether it is the origin's answer, all of it.
 */

export class Load {
  #pool;

  /** @param {string} url The Worker's. */
  constructor(url) {
    this.#pool = new Pool(url, { connections: LANES, pipelining: 1 });
  }

  /**
   * @param {{ path: string, cookie?: string, headers?: Record<string, string>, method?: string, body?: string }} request
   * @returns {Promise<Answer>}
   */
  send({ path, cookie, headers, method = "GET", body }) {
    const options = {
      method,
      body,
      path,
      headers: { ...HEADERS, cookie: cookie ? `${COOKIES}; ${cookie}` : COOKIES, ...headers },
    };
    return new Promise((resolve, reject) => {
      const answer = { status: 0, headers: {} };
      const chunks = [];
      this.#pool.dispatch(options, {
        onRequestStart() {},
        onResponseStart(_, status, headers) {
          Object.assign(answer, { status, headers, setCookie: headers["set-cookie"] });
        },
        onResponseData(_, chunk) {
          chunks.push(chunk);
        },
        onResponseEnd() {
          answer.body = chunks.length === 1 ? chunks[0] : Buffer.concat(chunks);
          answer.fromOrigin =
            answer.status === 200 &&
            answer.headers[ORIGIN_HEADER] === "yes" &&
            answer.body.equals(ORIGIN_BYTES);
          resolve(answer);
        },
        onResponseError(_, error) {
          reject(error);
        },
      });
    });
  }

  /**
   * Sends so many requests, as many at a time as there are lanes.
   * @param {number} count
   * @param {(lane: number) => { path: string, cookie?: string }} next A lane's next request.
   * @param {(answer: Answer, request: object) => void} check Throws {@link Wrong}.
   */
  async run(count, next, check) {
    let sent = 0;
    const lane = async (_, number) => {
      while (sent < count) {
        sent += 1;
        const request = next(number);
        check(await this.send(request), request);
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));
  }

  close() {
    return this.#pool.destroy();
  }
}
