// The events of a run, the newest first; older ones are loaded when one scrolls down, and only so many are kept.
import { html, useEffect, useRef, useState } from "./html.js";
import { get, useReturn } from "./http.js";
import { money, number } from "./format.js";
import { Clock, Empty, Failure, Loading, Panel } from "./parts.js";
import { Json } from "./text.js";
import { Rows } from "./window.js";

const PAGE = 200;
const FAR = 2_000; // events behind which the newest are shown at once; those between are loaded when one scrolls to them
const MOST = 5_000; // events that are kept; older ones are loaded again when they are wanted

export function EventsTab({ run, live }) {
  const [state, tell] = useState({ events: [], error: null, loaded: false });
  const [chosen, open] = useState(null);
  const busy = useRef(false);

  const load = async (after, limit, join) => {
    if (busy.current) return;
    busy.current = true;
    try {
      const page = await get(`/api/runs/${run.id}/events?after=${after}&limit=${limit}`);
      tell((old) => ({ events: join(old.events, page.events.reverse()), error: null, loaded: true }));
    } catch (error) {
      tell((old) => ({ ...old, error, loaded: true }));
    }
    busy.current = false;
  };
  useReturn(() => state.error?.status === 0 && tell((old) => ({ ...old, error: null, loaded: old.events.length > 0 })));
  const newest = state.events[0]?.seq ?? 0;
  const oldest = state.events.at(-1)?.seq ?? 1;
  useEffect(() => {
    if (live.first === null) return;
    const behind = live.last - newest;
    if (!state.loaded || behind > FAR) load(Math.max(0, live.last - PAGE), PAGE, (_, found) => found);
    else if (behind > 0) load(newest, 1000, (old, found) => [...found, ...old].slice(0, MOST));
  }, [live.first, live.last, state.loaded, newest, oldest]);
  const more = () => {
    if (oldest > 1 && state.events.length < 20 * MOST) load(Math.max(0, oldest - 1 - PAGE), Math.min(PAGE, oldest - 1), (old, found) => [...old, ...found]);
  };
  if (state.error) return html`<${Failure} error=${state.error} />`;
  if (!state.loaded) return html`<${Loading} what="events" />`;
  if (state.events.length === 0) return html`<div class="card"><${Empty} title="Nothing has happened yet" /></div>`;
  const cells = (event) => [html`<span class="title mono">${event.kind}</span>`, html`<span class="soft">${number(event.seq)}</span>`, html`<${Clock} at=${event.at} />`, html`<span class="line soft">${summary(event.data)}</span>`];
  return html`<section class="card" aria-label="Events">
    <${Rows} label="Events" kind="event-rows" items=${state.events} columns=${[["Event", "name"], ["No.", "number seq"], ["At", "when"], ["What", "data"]]} cells=${cells}
      heights=${[34, 60]} total=${live.last} keyOf=${(event) => event.seq} onOpen=${open} onEnd=${more} />
    <p class="foot soft small">events loaded: ${number(state.events.length)} of ${number(Math.max(live.last, newest))}${oldest > 1 ? "; scroll for older ones" : ""}</p>
    ${chosen && html`<${Panel} title=${`${chosen.kind}, no. ${chosen.seq}`} onClose=${() => open(null)}><${Json} value=${chosen} /><//>`}
  </section>`;
}

const AMOUNTS = new Set(["cost", "reserved", "spent", "cap"]); // in millionths of a dollar
const told = (name, value) => (typeof value === "string" ? value : AMOUNTS.has(name) && typeof value === "number" ? money(value / 1e6) : JSON.stringify(value));
const summary = (data) => Object.entries(data).map(([name, value]) => `${name}: ${told(name, value)}`).join(", ").slice(0, 300);
