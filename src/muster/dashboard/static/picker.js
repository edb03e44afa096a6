// A run of a suite, chosen by searching: the newest are there at once, all others are found by the server.
import { html, into, useEffect, useRef, useSettled, useState } from "./html.js";
import { useGet } from "./http.js";
import { KINDS } from "./kinds.js";
import { moment, titleOf, word } from "./format.js";
import { Failure, Outcome, Tags } from "./parts.js";

/** The workload whose runs are compared with each other, and have trends. */
export const COMPARED = KINDS.find(({ page }) => page.is_compared).workload;

const MOST = 20; // runs that are listed; who looks for another types more of its name

/** `run` is the id of the one that is chosen, or empty. */
export function RunPicker({ id, label, run, onChange }) {
  const [shown, show] = useState(false);
  const chosen = useGet(run ? `/api/runs/${encodeURIComponent(run)}` : null);
  const pick = (one) => {
    show(false);
    if (one.id !== run) onChange(one.id);
  };
  return html`<div class="picker" onKeyDown=${(event) => event.key === "Escape" && show(false)}>
    <span class="label" id=${`${id}-label`}>${label}</span>
    <button type="button" class="plain picked" id=${id} aria-expanded=${String(shown)} aria-labelledby=${`${id}-label ${id}`} onClick=${() => show(!shown)}>
      ${chosen.data ? html`<${Told} run=${chosen.data} />` : html`<span class="soft">${run ? (chosen.error ? `${run}: not found` : run) : "Choose a run"}</span>`}<span class="turn" aria-hidden="true">${shown ? "▴" : "▾"}</span></button>
    ${shown && html`<${Found} label=${label} chosen=${run} onPick=${pick} />`}
  </div>`;
}

const Told = ({ run }) => html`<span class="told"><span class="title">${titleOf(run)}</span><span class="soft small">${run.verdict?.words ?? word(run.state)} · ${moment(run.created_at)}</span></span>`;

function Found({ label, chosen, onPick }) {
  const [typed, type] = useState("");
  const search = useSettled(typed.trim());
  const { data, error } = useGet(`/api/runs?${new URLSearchParams({ workload: COMPARED, limit: MOST, ...(search && { search }) })}`);
  const field = useRef(null);
  useEffect(() => field.current.focus(), []);
  const runs = data?.runs ?? [];
  return html`<div class="card options" role="group" aria-label=${`Runs for ${label}`}>
    <input ref=${field} type="search" aria-label="Search suite runs" placeholder="Search name, id or tag" value=${typed} onInput=${into(type)} onKeyDown=${(event) => event.key === "Enter" && runs[0] && onPick(runs[0])} />
    ${error && html`<${Failure} error=${error} />`}
    ${data && runs.length === 0 && html`<p class="soft small">No suite run fits.</p>`}
    <ul>${runs.map((one) => html`<li key=${one.id}><button type="button" aria-pressed=${String(one.id === chosen)} onClick=${() => onPick(one)}>
      <span class="between"><span class="title">${titleOf(one)}</span><${Outcome} run=${one} /></span>
      <span class="soft small">${one.name ? `${one.subject} · ` : ""}${moment(one.created_at)} · ${one.id} <${Tags} names=${one.tags} /></span></button></li>`)}</ul>
    ${data?.next && html`<p class="soft small">The newest ${MOST}. Type more to find others.</p>`}
  </div>`;
}

/** A link to the comparison of a run with the one before it, where there is one: of the same suites and name. */
export function AgainstPrevious({ run, kind = "plain", text = "Against the previous run" }) {
  const { data } = useGet(`/api/suites/${encodeURIComponent(run)}/previous`);
  return data?.run ? html`<a class=${kind} href=${`#/compare?a=${data.run.id}&b=${run}`} title=${`${titleOf(data.run)}, ${moment(data.run.created_at)}`}>${text}</a>` : null;
}

/** What one can do with a suite run beside its parts. */
export function SuiteLinks({ run }) {
  return html`<${AgainstPrevious} run=${run.id} />
    ${run.name && html`<a class="plain" href=${`#/trend?run=${encodeURIComponent(run.name)}`}>Trend</a>`}
    <a class="plain" href=${`#/compare?b=${run.id}`}>Compare</a>`;
}
