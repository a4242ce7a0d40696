/** Secrets for this machine: `.dev.vars`, which wrangler dev reads. */
import { randomBytes } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import { DEV_VARS } from "./toolchain.mjs";

/** Secrets of this project alone, kept, so that a visitor's cookie outlives a restart. @param {string} [file] */
export function writeSecrets(file = DEV_VARS) {
  if (existsSync(file)) return;
  const secret = () => randomBytes(32).toString("base64");
  writeFileSync(
    file,
    `# For this machine only, made by npm start. COOKIE_KEYS: the newest first, separated by commas.
COOKIE_KEYS="${secret()}"
ADMIN_TOKEN="${secret()}"
`,
    { mode: 0o600 },
  );
}
