// Push messages to visitors: their words, their encryption (RFC 8291), and who sends them (RFC 8292). `pushes.rs` says when.
import { buildPushPayload } from "@block65/webcrypto-web-push";
import { createLanguages, direction } from "./page/languages.js";
import { post } from "./webhooks.js";

/** @param {{ languages: Record<string, string>, pushWorker: string }} assets what tools/pages.mjs reads from static/ */
export function createPush({ languages: files, pushWorker }) {
  const languages = createLanguages(files);
  return {
    /** The service worker. */
    worker: () => pushWorker,
    /** The tag of the language in which a visitor is told. */
    language: languages.choose,
    /**
     * Sends a message, as JSON; `push.rs` has its parts.
     * @param {string} message
     */
    async send(message) {
      const { subscription, vapid, topic, ttl, language, url, milliseconds } = JSON.parse(message);
      const { pushTitle, pushText } = languages.texts(language);
      const data = { title: pushTitle, body: pushText, url, lang: language, dir: direction(language) };
      const { headers, body } = await buildPushPayload(
        { data, options: { ttl, topic, urgency: "high" } },
        subscription,
        vapid,
      );
      return post(subscription.endpoint, headers, body, milliseconds);
    },
  };
}
