// Tokens that are made at run time: makes, lists and revokes them.
import { Refused } from "./api.mjs";
import { UsageError } from "./options.mjs";
import { table } from "./print.mjs";

const TOKENS = "client/v4/tokens";
/** As many as one answer has: there are never more. */
const ALL = { per_page: 1_000 };

/**
 * @param {ReturnType<typeof import("./api.mjs").openApi>} api
 * @param {import("./options.mjs").Call} call
 * @param {(answer: unknown, words: (answer: any) => string) => void} show
 */
export async function actOnTokens(api, { what, token: name, role, expires }, show) {
  if (what === "list") return show(await api.json(TOKENS, ALL), ({ result }) => tokensTable(result));
  if (!name) throw new UsageError(`error: token ${what}: say whose it is.`);
  if (what === "create") {
    const body = { name, role, ...(expires && { expires_on: new Date(Number(expires)).toISOString() }) };
    // Alone, so that it can be sent on to where secrets are kept.
    return show(await api.json(TOKENS, {}, body), ({ result }) => result.token);
  }
  const { result } = await api.json(TOKENS, ALL);
  const found = result.find((one) => one.name.toLowerCase() === name.toLowerCase() || one.id === name);
  if (!found)
    throw new Refused(`There is no token ${name}. Those of secrets are taken away with their secret.`);
  show(await api.json(`${TOKENS}/${found.id}`, {}, undefined, "DELETE"), () => `${found.name} is revoked.`);
}

const tokensTable = (tokens) =>
  table(
    ["name", "role", "ends", "made by", "made (UTC)", "last four"],
    tokens.map(({ name, role, status, expires_on: ends, created_by, created_on, last_four }) => [
      ...[name, role, status === "expired" ? `ended ${ends}` : (ends ?? "never")],
      ...[created_by, created_on, last_four],
    ]),
  );
