// Parts that several views are made of.
import { html, useEffect, useRef, useState } from "./html.js";
import { useKeys } from "./keys.js";
import { ago, capital, clock, moment, money, number, percent, shortMoney, word } from "./format.js";

export const Badge = ({ state, text }) => html`<span class=${`badge s-${state}`}>${text ?? word(state)}</span>`;

/** What a run came to, with the state that it is in; a verdict comes first, since completed is not the same as passed. */
export const Outcome = ({ run }) => (run.verdict
  ? html`<span class="outcome"><span class=${`badge v-${run.verdict.tone}`}>${run.verdict.words}</span> <span class="soft small">${word(run.state)}</span></span>`
  : html`<${Badge} state=${run.state} />`);

export const Tags = ({ names }) => names.map((name) => html`<span class="tag" key=${name}>${name}</span>`);

export const Ago = ({ at, now }) => html`<time datetime=${at} title=${moment(at)}>${ago(at, now)}</time>`;

/** The time of a day, where things happen within minutes. */
export const Clock = ({ at }) => html`<time datetime=${at} title=${moment(at)}>${clock(at)}</time>`;

/** An amount in short, with the exact one as its title. */
export const usd = (amount) => html`<span title=${money(amount)}>${shortMoney(amount)}</span>`;

/** A share from 0 to 1, red below a half and green near 1. */
export const Meter = ({ value, label }) => html`<meter min="0" max="1" low="0.5" high="0.75" optimum="1" value=${value} aria-label=${label}></meter>`;

export const Loading = ({ what }) => html`<p class="loading soft" role="status">Loading ${what} …</p>`;

/** A view that is loaded when it is first needed: `load` is a function that imports it. */
export function Later({ load, ...props }) {
  const [found, tell] = useState({ view: null, failed: false });
  useEffect(() => {
    load().then((view) => tell({ view, failed: false }), () => tell({ view: null, failed: true }));
  }, []);
  if (found.failed) return html`<div class="notice bad" role="alert">This part of the page could not be loaded. Reload the page.</div>`;
  return found.view && html`<${found.view} ...${props} />`;
}

/** What went wrong, and what to do next. */
export function Failure({ error, children }) {
  return html`<div class="notice bad" role="alert"><p><strong>${sentence(error.message)}</strong></p>${children}</div>`;
}

/** What is shown until something is loaded, or instead of it. */
export const Waiting = ({ data, error, what, children }) => (error ? html`<${Failure} error=${error}>${children}<//>` : !data && html`<${Loading} what=${what} />`);

/** A text as a sentence; a name with which it begins, such as that of an agent, stays as it is written. */
export function sentence(text, names = []) {
  const begun = names.some((name) => text.startsWith(name)) ? text : capital(text);
  return begun + (/[.!?…:]$/.test(text) ? "" : ".");
}

/** Nothing is here yet: what this place is for, and what to do first. */
export function Empty({ title, children }) {
  return html`<div class="empty"><h2>${title}</h2>${children}</div>`;
}

/** Batches that do not get on: why, and what to do about each. */
export const Stalled = ({ batches }) => batches.filter((batch) => batch.why).map((batch) => html`<div class="notice warn" role="status" key=${batch.id}>
  <p><strong>${`Batch ${batch.id} does not get on: ${batch.why}`}</strong></p><ul>${batch.next.map((one) => html`<li key=${one}>${sentence(one)}</li>`)}</ul></div>`);
export const Command = ({ text }) => html`<pre class="command"><code>${text}</code></pre>`;

/** How many calls are answered, with those that failed. */
export function CallsBar({ calls }) {
  const total = calls.total || 1;
  const told = `${number(calls.done)} of ${number(calls.total)} calls answered, ${number(calls.failed)} failed`;
  return html`<span class="bar" role="img" aria-label=${told} title=${told}>
    <span class="part done" style=${{ width: percent(calls.done / total, 2) }}></span>
    <span class="part failed" style=${{ width: percent(calls.failed / total, 2) }}></span>
  </span>`;
}

/** What the whole work has cost: a run that goes on with others shares their budget. */
const whole = (run) => run.lineage ?? run;

/** What was spent of a budget. */
export function CostBar({ run }) {
  if (run.budget_usd === null) return null;
  const spent = whole(run).cost_usd;
  const share = run.budget_usd === 0 ? 1 : Math.min(1, spent / run.budget_usd);
  const told = `${money(spent)} of ${money(run.budget_usd)}, ${percent(share)}`;
  return html`<span class="bar" role="img" aria-label=${told} title=${told}>
    <span class=${`part ${share > 0.9 ? "failed" : share > 0.7 ? "warm" : "spent"}`} style=${{ width: percent(share, 2) }}></span>
  </span>`;
}

/** What something has cost in all, of which budget, and what of it is uncertain or covered by a subscription; `mark` are words after the sum. */
export function CostOf({ of: one, mark }) {
  const lanes = [["imputed", one.imputed_usd], ["uncertain", one.uncertain_usd]].filter(([, amount]) => amount > 0);
  return html`<span class="cost-of">${usd(one.cost_usd)}${mark && html`<span class="soft"> ${mark}</span>`}${(one.budget_usd ?? null) !== null && html`<span class="soft"> of ${usd(one.budget_usd)}</span>`}${
    lanes.length > 0 && html`<span class="soft small lanes"> (${lanes.map(([lane, amount], place) => html`${place > 0 && ", "}${usd(amount)} ${lane}`)})</span>`}</span>`;
}

/** What a run has cost, with the runs that it continues or is continued by. */
export function Cost({ run }) {
  const all = whole(run);
  const parts = all.cost_usd !== run.cost_usd;
  return html`<span title=${parts ? `${money(all.cost_usd)} in all, ${money(run.cost_usd)} of it by this run` : undefined}><${CostOf} of=${all} mark=${parts && "in all"} /></span>`;
}

/** Several buttons of which one is chosen. */
export function Choice({ label, options, value, onChange }) {
  return html`<div class="chips" role="group" aria-label=${label}>
    ${options.map(([name, text, extra]) => html`<button key=${name} type="button" class=${`chip s-${name}`} aria-pressed=${String(value === name)}
      onClick=${() => onChange(name)}>${text}${extra === undefined ? "" : html` <span class="soft">${number(extra)}</span>`}</button>`)}
  </div>`;
}

/** Links in a line that scrolls sideways; arrows at its ends say that there are more, and go there. */
export function Strip({ label, kind = "", value, children }) {
  const place = useRef(null);
  const [more, tell] = useState([false, false]);
  const look = () => {
    if (!place.current) return; // it is gone
    const { scrollLeft, scrollWidth, clientWidth } = place.current;
    tell([scrollLeft > 4, scrollLeft + clientWidth < scrollWidth - 4]);
  };
  useEffect(() => {
    const watch = new ResizeObserver(look);
    watch.observe(place.current);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    const chosen = place.current.querySelector("[aria-current=page]");
    if (chosen) place.current.scrollLeft = chosen.offsetLeft - (place.current.clientWidth - chosen.offsetWidth) / 2;
    look();
  }, [value]);
  const arrow = (step, sign) => html`<span class=${`arrow ${step < 0 ? "before" : "after"}`} aria-hidden="true" onClick=${() => place.current.scrollBy({ left: 0.7 * step * place.current.clientWidth, behavior: "smooth" })}>${sign}</span>`;
  return html`<div class=${`strip ${kind}`}>${more[0] && arrow(-1, "‹")}<nav ref=${place} aria-label=${label} onScroll=${look}>${children}</nav>${more[1] && arrow(1, "›")}</div>`;
}

/** Links that stand for the parts of a page. */
export function Tabs({ label, base, tabs, value }) {
  return html`<${Strip} label=${label} kind="tabs" value=${value}>
    ${tabs.map(([name, text]) => html`<a key=${name} href=${`${base}/${name}`} aria-current=${value === name ? "page" : undefined}>${text}</a>`)}
  <//>`;
}

let panels = 0;

/** A panel over the page; Escape, the backdrop and Back close it, and `keys` are those that it knows besides. */
export function Panel({ title, onClose, children, head, keys = {} }) {
  const place = useRef(null);
  const panel = useRef(null); // the name of its entry in the history, also after a reload
  const isShown = () => history.state?.panel === panel.current;
  useKeys({ ...keys, covers: () => place.current?.open }); // the browser may have closed it before its entry has left the history
  // Whoever closes it goes back, and it ends when that has happened: going back takes a while, and would undo a step that was made meanwhile.
  const leave = (event) => {
    event?.preventDefault();
    if (isShown()) history.back();
    else onClose();
  };
  useEffect(() => {
    const before = document.activeElement;
    const dialog = place.current;
    const back = () => !isShown() && onClose();
    panel.current = (panels += 1) + Math.random();
    dialog.showModal();
    history.pushState({ ...history.state, panel: panel.current }, "");
    addEventListener("popstate", back);
    return () => {
      removeEventListener("popstate", back);
      if (isShown()) history.back();
      const now = document.activeElement; // the browser closes it before this ends: who has gone on to another field stays there
      if (before?.isConnected && (now === document.body || dialog.contains(now))) before.focus();
    };
  }, []);
  return html`<dialog ref=${place} class="panel" aria-label=${title} onCancel=${leave} onClose=${leave}
      onClick=${(event) => event.target === place.current && leave()}>
    <header class="panel-head">
      <div class="between"><h2>${title}</h2><button type="button" class="plain" onClick=${leave}>Close</button></div>
      ${head}
    </header>
    <div class="panel-body">${children}</div>
  </dialog>`;
}

/** A button that asks the server to do something: it says while it does, and what went wrong. */
export function Action({ label, act, kind = "plain", confirm, onError, disabled }) {
  const [busy, tell] = useState(false);
  const [sure, ask] = useState(false);
  const timer = useRef(null);
  const go = async () => {
    if (confirm && !sure) {
      ask(true);
      timer.current = setTimeout(() => ask(false), 4000);
      return;
    }
    clearTimeout(timer.current);
    tell(true);
    try {
      await act();
      onError?.(null);
    } catch (error) {
      onError?.(error);
    }
    tell(false);
    ask(false);
  };
  return html`<button type="button" class=${kind} disabled=${busy || disabled} onClick=${go}>${sure ? confirm : label}</button>`;
}

export function Facts({ items }) {
  return html`<dl class="facts">
    ${items.filter(Boolean).map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}

/** What something came to: a word, a sentence, and what belongs to it; `kind` is "ok", "pending" or "". */
export const Verdict = ({ label = "Verdict", kind, name, text, children }) => html`<section class=${`card verdict ${kind}`} aria-label=${label}><span class="word">${name}</span><p>${text}</p>${children}</section>`;

/** A table that scrolls sideways by itself. Columns are names, figures with "number"; the first cell names its row. */
export function Table({ label, columns, rows, children }) {
  return html`<div class="card scroll" tabindex="0" role="region" aria-label=${label}><table>
    <thead><tr>${columns.map(([name, kind]) => html`<th scope="col" class=${kind}>${name}</th>`)}</tr></thead>
    <tbody>${rows.map(([first, ...cells]) => html`<tr><th scope="row" class=${`name ${columns[0][1] ?? ""}`}>${first}</th>${cells.map((cell, place) => html`<td class=${columns[place + 1][1]}>${cell}</td>`)}</tr>`)}</tbody>
  </table>${children}</div>`;
}

/** A text whose pieces were taken out, put in, or are the same. */
export const Pieces = ({ pieces }) => html`<p class="text">${pieces.map(([kind, text]) => (kind === "same" ? text : kind === "out" ? html`<del>${text}</del>` : html`<ins>${text}</ins>`))}</p>`;

/** What changed in the user's repository while somebody worked, with the commands that restore it; or why that is not known. */
export function RepositoryChanges({ of: { repository_changes: changes, repository_unknown: unknown } }) {
  return html`${changes.length > 0 && html`<div class="notice warn" role="status"><p>While it worked, this changed in your repository, by it, by you or by another task:</p><ul>${changes.map((one) => html`<li key=${one.what}><code>${one.what}</code>: ${one.before ?? "nothing"} became ${one.after ?? "nothing"}${one.restore && html`. Restore it with: <code>${one.restore}</code>`}</li>`)}</ul></div>`}
    ${unknown && html`<div class="notice warn" role="status"><p>What changed in your repository while it worked is not known: ${unknown}</p></div>`}`;
}
