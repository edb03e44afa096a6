// The waterfall: when each call waited, was on the wire, lay in a batch, failed and was tried again.
import { html, useEffect, useMemo, useNow, useState } from "./html.js";
import { at, duration, elapsed, LIVE, number, percent } from "./format.js";
import { CallKey, CallPanel, isOpen } from "./calls.js";
import { Empty, Failure, Loading } from "./parts.js";
import { Rows, usePages } from "./window.js";

const KINDS = [["waiting", "waiting for a place, money or the next try"], ["wire", "on the wire"], ["parked", "parked in a batch"], ["failed", "failed, then tried again or given up"], ["uncertain", "outcome unknown"]];
const OF_STATE = { started: "wire", succeeded: "wire", parked: "parked", uncertain: "uncertain" };

export function TimelineTab({ run, live }) {
  const pages = usePages(`/api/runs/${run.id}/attempts?limit=100`, "calls", [run.id]);
  const [chosen, open] = useState(null);
  const going = LIVE.has(run.state);
  const now = useNow(going);
  useEffect(() => {
    if (pages.loaded && (live.tail.length > 0 || going)) pages.again(isOpen, (call) => call.key);
  }, [run.calls.done, run.calls.failed, run.calls.total, run.state]);
  const rows = useMemo(() => pages.items.map((call) => ({ call, parts: partsOf(call) })), [pages.items]);
  if (pages.error) return html`<${Failure} error=${pages.error} />`;
  if (!pages.loaded) return html`<${Loading} what="the timeline" />`;
  const timed = rows.flatMap((row) => row.parts);
  if (timed.length === 0) return html`<div class="card"><${Empty} title="Nothing was sent yet"><p class="soft">A line will stand here for each call, from its first wait to its answer.</p><//></div>`;
  const begin = timed.reduce((first, part) => Math.min(first, part.from), at(run.started_at) ?? Infinity); // of the whole run, also where not all calls are loaded
  const end = timed.reduce((last, part) => Math.max(last, part.to ?? now), going ? now : at(run.ended_at) ?? begin + 1);
  const cells = ({ call, parts }) => [
    html`<${CallKey} text=${call.key} />`,
    html`<${Track} parts=${parts} begin=${begin} end=${end} now=${now} />`,
    duration(parts.length ? ((parts.at(-1).to ?? now) - parts[0].from) / 1000 : null),
  ];
  return html`<section class="card" aria-label="Timeline">
    <ul class="legend">${KINDS.map(([name, text]) => html`<li key=${name}><span class=${`swatch t-${name}`}></span>${text}</li>`)}</ul>
    <${Rows} label="Timeline" kind="time-rows" items=${rows} columns=${[["Call", "name"], [`from ${duration(0)} to ${duration((end - begin) / 1000)}`, "track-cell"], ["Took", "number took"]]}
      cells=${cells} heights=${[30, 52]} total=${run.calls.total} keyOf=${(row) => row.call.key} onOpen=${(row) => open(row.call.key)} onEnd=${pages.more} />
    <p class="foot soft small">${number(rows.length)} of ${number(run.calls.total)} calls are drawn${pages.next ? "; scroll for more" : ""}. ${run.calls.reused > 0 ? "Calls that were reused took no time." : ""}</p>
    ${chosen !== null && html`<${CallPanel} run=${run.id} callKey=${chosen} onClose=${() => open(null)} />`}
  </section>`;
}

/** The stretches of a call: `{kind, from, to, told}`, in order; `to` is null while it goes on. */
export function partsOf(call) {
  const parts = [];
  if (call.reused_from || call.attempt_list.length === 0) return parts;
  let last = at(call.attempt_list[0].started_at) - (call.attempt_list.length === 1 ? 1000 * (call.waited_seconds ?? 0) : 0);
  for (const one of call.attempt_list) {
    const from = at(one.started_at);
    const to = at(one.ended_at);
    if (from - last > 1 && !one.batch) parts.push({ kind: "waiting", from: last, to: from, told: `waited ${duration((from - last) / 1000)}` });
    const kind = one.batch ? "parked" : OF_STATE[one.state] ?? "failed";
    parts.push({ kind: one.batch && one.state === "uncertain" ? "uncertain" : kind, from, to, told: `attempt ${one.n}: ${one.state}, ${duration(to === null ? null : elapsed(one.started_at, one.ended_at))}` });
    last = to ?? from;
  }
  return parts;
}

function Track({ parts, begin, end, now }) {
  const place = (time) => percent((time - begin) / (end - begin), 3);
  const told = parts.map((part) => part.told).join("; ");
  return html`<span class="track" role="img" aria-label=${told || "no attempt"}>
    ${parts.map((part, number) => html`<span key=${number} class=${`span t-${part.kind}${part.to === null ? " open-end" : ""}`} title=${part.told}
      style=${{ left: place(part.from), width: `max(2px, ${percent(((part.to ?? now) - part.from) / (end - begin), 3)})` }}></span>`)}
  </span>`;
}
