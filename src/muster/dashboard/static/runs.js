// All runs, the newest first: what goes on, what it came to, and what it cost.
import { html, into, useAddressed, useMemo, useNow, useSettled, useState, useTicks } from "./html.js";
import { useGet } from "./http.js";
import { duration, elapsed, LIVE, number, titleOf } from "./format.js";
import { Ago, CallsBar, Choice, Command, Cost, CostBar, Empty, Outcome, Tags } from "./parts.js";
import { endingsOf, grouped, nameOf, summed } from "./groups.js";
import { KINDS } from "./kinds.js";
import { Keys } from "./keys.js";
import { List, usePages } from "./window.js";

const FILTERS = {
  all: ["All", []],
  live: ["In progress", [...LIVE]],
  completed: ["Completed", ["completed"]],
  failed: ["Failed", ["failed", "timeout"]],
  canceled: ["Canceled", ["canceled"]],
};
const WORKLOADS = [["", "all kinds of work"], ...KINDS.filter(({ page }) => page.is_listed).map(({ workload, words }) => [workload, words])];

/** The beginning of a day, in seconds since 1970, as the clock of the reader has it; `later` days after. */
function dayOf(text, later = 0) {
  const at = new Date(`${text}T00:00:00`);
  at.setDate(at.getDate() + later);
  return Number.isNaN(at.getTime()) ? "" : at.getTime() / 1000;
}

function pathOf(filter, { workload, search, agent, user, from, to }) {
  const asked = new URLSearchParams({ limit: "100" });
  for (const state of FILTERS[filter][1]) asked.append("state", state);
  const given = { workload, search, agent, started_by: user, since: from && dayOf(from), until: to && dayOf(to, 1) };
  for (const [name, value] of Object.entries(given)) if (value) asked.set(name, value);
  return `/api/runs?${asked}`;
}

export function RunsView() {
  const [filter, choose] = useAddressed("state", "all");
  const [workload, kind] = useAddressed("workload");
  const [typed, type] = useAddressed("search");
  const [agent, by] = useAddressed("agent");
  const [user, of] = useAddressed("user");
  const [from, since] = useAddressed("from");
  const [to, until] = useAddressed("to");
  const search = useSettled(typed.trim());
  const [settledAgent, settledUser] = [useSettled(agent.trim()), useSettled(user.trim())];
  const known = FILTERS[filter] ? filter : "all";
  const path = pathOf(known, { workload, search, agent: settledAgent, user: settledUser, from, to });
  const pages = usePages(path, "runs", [path]);
  const going = pages.items.some((run) => LIVE.has(run.state));
  useTicks(going ? 1500 : 4000, () => pages.refresh((run) => run.id), [path, going]);
  const more = [agent, user, from, to].filter(Boolean).length;
  const all = () => [type, kind, by, of, since, until].forEach((clear) => clear("")) || choose("all");
  return html`<div class="between"><h1>Runs</h1><${Keys} /></div>
    <section class="card" aria-label="Runs">
      <div class="filters">
        <input aria-label="Search runs" type="search" placeholder="Search id, name, kind or tag" value=${typed} onInput=${into(type)} />
        <select aria-label="Kind of work" value=${workload} onChange=${into(kind)}>
          ${WORKLOADS.map(([name, text]) => html`<option key=${name} value=${name}>${text}</option>`)}
        </select>
        <${Choice} label="State" value=${known} onChange=${choose} options=${Object.entries(FILTERS).map(([name, [text]]) => [name, text])} />
        <${MoreFilters} open=${more > 0} many=${more} runs=${pages.items} fields=${{ agent: [agent, by], user: [user, of], from: [from, since], to: [to, until] }} />
      </div>
      <${RunRows} pages=${pages} going=${going} apart=${search !== ""} none=${known !== "all" || workload || search || more > 0 ? html`<${Empty} title="No run fits these filters"><p>
        <button type="button" class="plain" onClick=${all}>Show all runs</button></p><//>` : html`<${FirstSteps} />`} />
    </section>`;
}

/** Filters that are needed less often: by agent, by who started it, and by day. */
function MoreFilters({ open, many, runs, fields }) {
  const [shown, show] = useState(open);
  const agents = useGet(shown ? "/api/agents" : null).data?.agents ?? [];
  const users = [...new Set(runs.map((run) => run.started_by).filter(Boolean))];
  const field = (name, label, kind, listed) => html`<label>${label} <input type=${kind} list=${listed && `of-${name}`} autocomplete="off" value=${fields[name][0]} onInput=${into(fields[name][1])} />
    ${listed && html`<datalist id=${`of-${name}`}>${listed.map((one) => html`<option key=${one} value=${one} />`)}</datalist>`}</label>`;
  return html`<button type="button" class="chip" aria-expanded=${String(shown)} onClick=${() => show(!shown)}>${shown ? "Fewer filters" : "Agent, user, date"}${many > 0 && ` (${many})`}</button>
    ${shown && html`<div class="more-filters" role="group" aria-label="More filters">
      ${field("agent", "Agent called", "text", agents.map((one) => one.name))}${field("user", "Started by", "text", users)}${field("from", "From", "date")}${field("to", "to", "date")}</div>`}`;
}

const COLUMNS = [["Run", "name"], ["Result", "state"], ["Calls", "calls"], ["Cost", "cost"], ["Started", "when"], ["Took", "took number"]];

/** Why a run stands still in a batch that does not get on. */
function waits(run) {
  const batch = LIVE.has(run.state) && run.batches.find((one) => one.stalled);
  return batch && html` · <span class="bad" title=${[batch.why, ...batch.next].join("\n")}>waits for batch ${batch.id}: ${batch.why}</span>`;
}

/** Rows of runs; small ones that follow each other stand in one, unless they are `apart`. */
function RunRows({ going, apart, pages, ...list }) {
  const now = useNow(going);
  const [opened, open] = useState(new Set());
  const rows = useMemo(() => (apart ? pages.items : grouped(pages.items, opened)), [apart, pages.items, opened]);
  const toggle = ({ group, opened: isOpen }) => open((old) => new Set(isOpen ? [...old].filter((id) => !group.some((run) => run.id === id)) : [...old, ...group.map((run) => run.id)]));
  const figures = (run) => [
    html`<span class="count">${number(run.calls.done)}<span class="soft"> of ${number(run.calls.total)}</span>${run.calls.failed > 0 && html`<span class="bad"> · ${number(run.calls.failed)} failed</span>`}</span><${CallsBar} calls=${run.calls} />`,
    html`<${Cost} run=${run} /><${CostBar} run=${run} />`,
  ];
  const ofGroup = ({ group, opened: isOpen }) => [
    html`<span class="title"><span class="turn" aria-hidden="true">${isOpen ? "▾" : "▸"}</span> ${nameOf(group)}</span><span class="under soft">${number(group.length)} runs in a row · ${group[0].kind} · ${isOpen ? "opened" : "press to see each"}</span>`,
    html`<span class="outcome">${endingsOf(group).map((one) => html`<span key=${one.words} class=${`badge ${one.kind}`}>${one.words}</span>`)}</span>`,
    ...figures(summed(group)),
    html`<${Ago} at=${group[0].started_at ?? group[0].created_at} now=${now} />`,
    "",
  ];
  const ofRun = (run) => [
    html`<span class="title">${titleOf(run)}</span><span class="under soft">${run.kind} · ${run.id} <${Tags} names=${run.tags} /> ${run.name && run.subject}${run.started_by && ` · by ${run.started_by}`}${run.continued_by && ` · continued as ${run.continued_by}`}${waits(run)}</span>`,
    html`<${Outcome} run=${run} />`,
    ...figures(run),
    html`<${Ago} at=${run.started_at ?? run.created_at} now=${now} />`,
    duration(elapsed(run.started_at, run.ended_at, now)),
  ];
  return html`<${List} what="runs" label="Runs" kind="run-rows" columns=${COLUMNS} cells=${(row) => (row.group ? ofGroup(row) : ofRun(row))} heights=${[60, 112]} keyOf=${(run) => run.id} pages=${pages} items=${rows}
    href=${(row) => row.group ? undefined : `#/runs/${row.id}`} onOpen=${toggle} markOf=${(row) => (row.inGroup ? "in-group" : row.group ? "group" : "")} ...${list} />`;
}

function FirstSteps() {
  return html`<${Empty} title="Nothing has been run yet">
    <p>A run is one piece of work: a suite, a battle, a task, a question. Start one <a href="#/start">here</a>, or in a terminal:</p>
    <${Command} text='muster ask sim/echo "hello"' />
    <p class="soft">It needs no key. This list shows it as soon as it begins.</p>
  <//>`;
}
