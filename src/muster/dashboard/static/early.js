// What the first view asks for is asked for at once, while the other modules are still being loaded.

export const KEPT = "muster.token"; // in this tab only

export function headers(more = {}) {
  const token = sessionStorage.getItem(KEPT);
  return token === null ? more : { ...more, authorization: `Bearer ${token}` };
}

/** The first page of the calls of a run. */
export const callsOf = (run) => `/api/runs/${run}/calls?limit=200`;

const asked = new Map();

/** The response that was asked for before anybody could use it; it is given once. */
export function early(path) {
  const found = asked.get(path);
  asked.delete(path);
  return found;
}

function ask(path) {
  const response = fetch(path, { cache: "no-store", credentials: "omit", headers: headers() });
  response.catch(() => {}); // whoever uses it tells
  asked.set(path, response);
}

const [place = "", run = "", tab] = location.hash.replace(/^#\/?/, "").split("?")[0].split("/");
if (place === "runs" && /^[\w-]+$/.test(run)) {
  ask(`/api/runs/${run}`);
  if (tab === "calls") ask(callsOf(run));
}
addEventListener("hashchange", () => asked.clear(), { once: true });
