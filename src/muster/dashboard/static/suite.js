// What a suite came to: the verdict, figures of each subject with their intervals, charts, a matrix, and every case.
import { html, into, useAddressed, useChange, useMemo, useRef, useSettled, useState, useTicks } from "./html.js";
import { useGet } from "./http.js";
import { count, duration, LIVE, number, percent, score, STATUS_ORDER, word } from "./format.js";
import { Badge, Choice, Empty, Failure, Loading, Table, Tags, usd, Verdict } from "./parts.js";
import { Charts, IntervalLine } from "./charts.js";
import { CasePanel } from "./case.js";
import { Keys } from "./keys.js";
import { List, usePages } from "./window.js";

const BAD = ["failed", "error", "timed_out", "flaky", "unjudged"];
const nameOf = (one) => `${one.case}\n${one.subject}`;

export function SuiteTab({ run }) {
  const summary = useGet(`/api/suites/${run.id}/summary`);
  const reviews = useGet(`/api/reviews?run=${run.id}`);
  const [chosen, open] = useState(null);
  const going = LIVE.has(run.state);
  useChange([run.state], summary.reload);
  useTicks(going ? 3000 + run.calls.total / 2 : 0, summary.reload, [going]); // figures of all cases are added up each time
  if (summary.error && !summary.data) return html`<${Failure} error=${summary.error} />`;
  const { data } = summary;
  return html`${data === null
      ? html`<div class="card adding-up"><${Loading} what=${run.calls.total > 2000 ? `the figures of ${number(run.calls.total)} calls` : "the figures"} /></div>`
      : html`<${Outcome} report=${data} going=${going} agreement=${reviews.data} />
        ${data.warnings.length > 0 && html`<div class="notice warn"><ul>${data.warnings.map((one) => html`<li key=${one}>${one}</li>`)}</ul></div>`}
        ${data.subjects.length > 0 && html`<${Subjects} run=${run} subjects=${data.subjects} /><${Variants} subjects=${data.subjects} /><h2>Charts</h2><${Charts} report=${data} />`}
        ${data.subjects.length > 1 && html`<${Matrix} run=${run} subjects=${data.subjects} onOpen=${open} />`}`}
    <${Cases} run=${run} report=${data} going=${going} reviews=${reviews.data} onOpen=${open} />
    ${chosen && html`<${CasePanel} run=${run.id} row=${chosen.one} ...${around(chosen, open)} reviews=${reviews.data?.reviews ?? []} onReview=${reviews.reload} onClose=${() => open(null)} />`}`;
}

/** What is before, behind and beside the case that is open, in the list from which it was opened; more of that is asked for near its end. */
function around({ one, list, beside }, open) {
  const { items, more } = list(one);
  const place = items.findIndex((other) => nameOf(other) === nameOf(one));
  const go = (by) => {
    const next = items[place + by];
    if (!next) return;
    if (place + by > items.length - 5) more();
    open({ one: next, list, beside });
  };
  const others = beside?.(one.case) ?? [];
  return { before: place > 0, behind: place !== -1 && place < items.length - 1, go, place: place === -1 ? "" : `${number(place + 1)} of ${number(items.length)}`,
    subjects: others.length > 1 ? others : [], choose: (other) => open({ one: other, list, beside }) };
}

function Outcome({ report, going, agreement }) {
  const judged = agreement?.judge_agreement;
  return html`<${Verdict} kind=${going ? "pending" : report.ok ? "ok" : ""} name=${going ? "in progress" : report.ok ? "passed" : "not passed"} text=${report.verdict}>
    ${agreement && agreement.reviews.length > 0 && html`<p class="agreement">People agree with the judge in <strong>${percent(judged.raw)}</strong> of ${count(judged.reviews, "reviewed verdict")}${judged.kappa === null ? "" : ` (κ ${judged.kappa.toFixed(2)})`}${agreement.borderline > 0 ? `, and call ${number(agreement.borderline)} borderline` : ""}.</p>`}
  <//>`;
}

const subjectColumns = (thinks) =>
  [["Subject"], ["Pass rate", "number"], ["95% interval"], ...["Score", "p50", "p95", ...(thinks ? ["Thinking"] : []), "Cost"].map((name) => [name, "number"])];

function Subjects({ run, subjects }) {
  const two = subjects.length > 1 && new URLSearchParams({ a: run.id, of_a: subjects[1].subject, b: run.id, of_b: subjects[0].subject });
  const thinks = subjects.some((one) => (one.thinking_tokens ?? 0) > 0);
  return html`<div class="between"><h2>Subjects</h2>${two && html`<a class="plain small" href=${`#/compare?${two}`}>Compare two of them</a>`}</div><${Table} label="Subjects" columns=${subjectColumns(thinks)} rows=${subjects.map((one) => [
    html`${one.rank !== null && subjects.length > 1 ? html`<span class="soft">${one.rank}. </span>` : ""}${one.subject}${one.told_apart === false ? html` <span class="soft small">its interval overlaps the one above</span>` : ""}`,
    html`<strong>${percent(one.pass_rate)}</strong>`, html`<${IntervalLine} share=${one.pass_rate} interval=${one.pass_interval} label="pass rate" />`,
    score(one.mean_score), duration(one.seconds?.p50), duration(one.seconds?.p95), ...(thinks ? [number(one.thinking_tokens ?? 0)] : []), usd(one.cost_usd + one.judge_cost_usd),
  ])} />`;
}

/** Pass rates of agents under prompts, where a run tries several prompts. */
function Variants({ subjects }) {
  const prompts = [...new Set(subjects.map((one) => one.prompt))].sort();
  const agents = [...new Set(subjects.map((one) => one.agent))].sort();
  if (prompts.length < 2) return null;
  const of = (agent, prompt) => subjects.find((one) => one.agent === agent && one.prompt === prompt);
  return html`<h2>Agents and prompts</h2><${Table} label="Agents and prompts" columns=${[["Prompt"], ...agents.map((agent) => [agent ?? "recorded answers"])]}
    rows=${prompts.map((prompt) => [prompt ?? "that of the suite", ...agents.map((agent) => html`<${Rate} one=${of(agent, prompt)} />`)])} />`;
}

function Rate({ one }) {
  if (!one || one.pass_rate === null) return html`<span class="soft">–</span>`;
  return html`<strong>${percent(one.pass_rate)}</strong>${one.pass_interval && html` <span class="soft small">${percent(one.pass_interval[0])} to ${percent(one.pass_interval[1])}</span>`}`;
}

function pathOf(run, filter, limit) {
  const asked = new URLSearchParams({ limit });
  for (const status of filter.statuses ?? []) asked.append("status", status);
  for (const name of ["subject", "search", "differing"]) if (filter[name]) asked.set(name, filter[name]);
  return `/api/suites/${run.id}/cases?${asked}`;
}

const MATRIX_CASES = 60; // that are asked for at a time
const FIRST_CASES = 20; // that are shown at first: what follows the matrix is not far away

/** Cases against subjects: those on which the subjects differ, or all. */
function Matrix({ run, subjects, onOpen }) {
  const [kind, choose] = useState("differing");
  const [most, show] = useState(FIRST_CASES);
  const names = subjects.map((one) => one.subject);
  const limit = Math.min(500, MATRIX_CASES * names.length);
  const pages = usePages(pathOf(run, { differing: kind === "differing" }, limit), "cases", [run.id, run.state, kind]);
  const rows = useMemo(() => {
    const found = new Map();
    for (const one of pages.items) found.set(one.case, { ...(found.get(one.case) ?? {}), [one.subject]: one });
    return [...found];
  }, [pages.items]);
  const now = useRef(null);
  now.current = { rows, pages };
  // From a cell one goes on to the same subject in the next row, and from case to case to the other subjects.
  const openOne = (one) => onOpen({ one, list: (shown) => ({ items: now.current.rows.flatMap(([, row]) => row[shown.subject] ?? []), more: now.current.pages.more }),
    beside: (name) => { const row = now.current.rows.find(([id]) => id === name)?.[1] ?? {}; return names.flatMap((subject) => row[subject] ?? []); } });
  const worst = (row) => names.map((subject) => row[subject]).filter(Boolean).sort((a, b) => STATUS_ORDER.indexOf(a.status) - STATUS_ORDER.indexOf(b.status))[0];
  return html`<div class="between"><h2>Matrix</h2><${Choice} label="Cases of the matrix" value=${kind} onChange=${choose} options=${[["differing", "Where subjects differ"], ["all", "All cases"]]} /></div>
    ${pages.error && html`<${Failure} error=${pages.error} />`}
    ${rows.length === 0 ? html`<div class="card"><p class="padded soft" role="status">${!pages.loaded ? "Loading …" : kind === "all" ? "No case has ended yet." : "On no case do the subjects differ."}</p></div>`
    : html`<div class="card scroll matrix" tabindex="0" role="region" aria-label="Matrix of cases and subjects"><table>
      <thead><tr><th scope="col">Case</th>${names.map((name) => html`<th key=${name} scope="col">${name}</th>`)}</tr></thead>
      <tbody>${rows.slice(0, most).map(([name, row]) => html`<tr key=${name} onClick=${(event) => event.target.closest("button") || openOne(worst(row))}><th scope="row" class="name"><button type="button" class="open" onClick=${() => openOne(worst(row))}><span class="title">${name}</span></button></th>
        ${names.map((subject) => html`<td key=${subject}>${row[subject] ? html`<${Cell} one=${row[subject]} onOpen=${openOne} />` : html`<span class="soft">–</span>`}</td>`)}</tr>`)}</tbody>
    </table>${(pages.next || rows.length > most) && html`<p class="more"><button type="button" class="plain" onClick=${() => { show(most + MATRIX_CASES); pages.more(); }}>Show more cases</button></p>`}</div>`}`;
}

function Cell({ one, onOpen }) {
  const scored = one.score === null ? word(one.status) : score(one.score);
  return html`<button type="button" class=${`cell s-${one.status}`} onClick=${() => onOpen(one)} aria-label=${`${one.case}, ${one.subject}: ${word(one.status)}${one.score === null ? "" : `, ${scored}`}`}>${scored}</button>`;
}

const PAGE = 100;

function Cases({ run, report, going, reviews, onOpen }) {
  const [kind, choose] = useAddressed("status", BAD.some((status) => run.result?.counts?.[status]) ? "bad" : "all");
  const [typed, type] = useAddressed("search");
  const [subject, pick] = useAddressed("subject");
  const [round, again] = useState(0);
  const search = useSettled(typed.trim());
  const statuses = kind === "all" ? [] : kind === "bad" ? BAD : [kind];
  const pages = usePages(pathOf(run, { statuses, subject, search }, PAGE), "cases", [run.id, run.state, kind, subject, search, round]);
  useChange([report], () => going && pages.items.length <= PAGE && again((number) => number + 1));
  const latest = useRef(null);
  latest.current = pages;
  const openOne = (one) => onOpen({ one, list: () => latest.current });
  const reviewed = useMemo(() => new Map((reviews?.reviews ?? []).map((one) => [nameOf(one), one.opinion])), [reviews]);
  const subjects = report?.subjects ?? [];
  const counts = (subject ? subjects.find((one) => one.subject === subject)?.counts : report?.counts) ?? {};
  const sum = (names) => names.reduce((all, name) => all + (counts[name] ?? 0), 0);
  const many = (names) => (report && search === "" ? sum(names) : undefined); // of what was searched for nobody counts all
  const options = [["all", "All", many(STATUS_ORDER)], ...(kind === "bad" || sum(BAD) ? [["bad", "Did not pass", many(BAD)]] : []),
    ...STATUS_ORDER.filter((name) => name === kind || (counts[name] && !(BAD.includes(name) && counts[name] === sum(BAD)))).map((name) => [name, word(name), many([name])])];
  const cells = (one) => [
    html`<span class="title">${one.case}</span><span class="under soft">${one.why || one.about} <${Tags} names=${one.tags} /></span>`,
    html`<${Badge} state=${one.status} />${reviewed.has(nameOf(one)) && html` <span class="tag">${reviewed.get(nameOf(one))}</span>`}`,
    one.subject, score(one.score), duration(one.seconds), usd(one.cost_usd + one.judge_cost_usd),
  ];
  const total = many(statuses.length ? statuses : STATUS_ORDER);
  return html`<div class="between"><h2>Cases</h2><${Keys} /></div><section class="card" aria-label="Cases">
    <div class="filters">
      <input aria-label="Search cases" type="search" placeholder="Search cases, tags, reasons" value=${typed} onInput=${into(type)} />
      ${subjects.length > 1 && html`
      <select aria-label="Subject" value=${subject} onChange=${into(pick)}>
        <option value="">all subjects</option>${subjects.map((one) => html`<option key=${one.subject} value=${one.subject}>${one.subject}</option>`)}</select>`}
      <${Choice} label="How they ended" value=${kind} onChange=${choose} options=${options} />
    </div>
    <${List} pages=${pages} what="rows" none=${html`<${Empty} title=${kind !== "all" || search || subject ? "No case fits these filters" : "No case has ended yet"} />`} total=${total} label="Cases" kind="case-rows"
      columns=${[["Case", "name"], ["Status", "state"], ["Subject", "agent"], ["Score", "number score"], ["Took", "number took"], ["Cost", "number cost"]]} cells=${cells} heights=${[60, 104]} keyOf=${nameOf} onOpen=${openOne} />
  </section>`;
}
