// Requests to the API of the server, with its own words about what went wrong.

import { t } from "./dom.js";
import { ServerProblem, SessionEnded } from "./fragments.js";

/**
 * Send a request and return the JSON of the answer; a refusal is thrown as a ServerProblem.
 * @param {"GET" | "POST" | "PATCH" | "DELETE"} method
 * @param {string} path below /api/v1
 * @param {unknown} [body]
 * @returns {Promise<any>}
 */
export async function request(method, path, body) {
  /** @type {Record<string, string>} */
  const headers = { Accept: "application/json", "Accept-Language": document.documentElement.lang };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let reply;
  try {
    reply = await fetch(`/api/v1${path}`, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new ServerProblem(t("common.offline"));
  }
  if (reply.status === 401) throw new SessionEnded();
  const answer = await reply.json().catch(() => ({}));
  if (!reply.ok) throw new ServerProblem([answer.detail ?? String(reply.status), answer.hint ?? ""].join("\n").trim());
  return answer;
}
