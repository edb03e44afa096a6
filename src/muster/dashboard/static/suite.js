// What a suite came to: the verdict, figures of each subject with their intervals, charts, a matrix, and every case.
import { html, useChange, useMemo, useNarrow, useState, useTicks } from "./html.js";
import { useGet } from "./http.js";
import { duration, LIVE, money, number, percent, score, shortMoney, STATUS_ORDER, word } from "./format.js";
import { Badge, Choice, Empty, Failure, Loading, Tags } from "./parts.js";
import { Charts, IntervalLine } from "./charts.js";
import { CasePanel } from "./case.js";
import { Rows } from "./window.js";

export function SuiteTab({ run }) {
  const report = useGet(`/api/runs/${run.id}/report?format=json`);
  const reviews = useGet(`/api/reviews?run=${run.id}`);
  const [chosen, open] = useState(null);
  const going = LIVE.has(run.state);
  useChange([run.state], report.reload);
  useTicks(going ? 3000 : 0, report.reload, [going]); // figures of all cases are made anew each time
  if (report.error && !report.data) return html`<${Failure} error=${report.error} />`;
  if (!report.data) return html`<${Loading} what="the results" />`;
  const data = report.data;
  const place = chosen === null ? null : data.cases.find((one) => one.case === chosen.case && one.subject === chosen.subject);
  return html`<${Verdict} report=${data} going=${going} agreement=${reviews.data} />
    ${data.warnings.length > 0 && html`<div class="notice warn"><ul>${data.warnings.map((one) => html`<li key=${one}>${one}</li>`)}</ul></div>`}
    ${data.subjects.length > 0 && html`<${Subjects} subjects=${data.subjects} /><h2>Charts</h2><${Charts} report=${data} />`}
    ${data.subjects.length > 1 && html`<${Matrix} report=${data} onOpen=${open} />`}
    <${Cases} report=${data} reviews=${reviews.data} onOpen=${open} />
    ${place && html`<${CasePanel} run=${run.id} row=${place} reviews=${reviews.data?.reviews ?? []} onReview=${reviews.reload} onClose=${() => open(null)} />`}`;
}

function Verdict({ report, going, agreement }) {
  const kind = going ? "pending" : report.ok ? "ok" : "";
  const judged = agreement?.judge_agreement;
  return html`<section class=${`card verdict ${kind}`} aria-label="Verdict">
    <span class="word">${going ? "in progress" : report.ok ? "passed" : "not passed"}</span>
    <p>${report.verdict}</p>
    ${agreement && agreement.reviews.length > 0 && html`<p class="agreement">People agree with the judge in <strong>${percent(judged.raw)}</strong> of ${number(judged.reviews)} reviewed verdicts${judged.kappa === null ? "" : ` (κ ${judged.kappa.toFixed(2)})`}${agreement.borderline > 0 ? `, and call ${number(agreement.borderline)} borderline` : ""}.</p>`}
  </section>`;
}

function Subjects({ subjects }) {
  return html`<h2>Subjects</h2><div class="card scroll" tabindex="0" role="region" aria-label="Subjects"><table>
    <thead><tr><th scope="col">Subject</th><th scope="col" class="number">Pass rate</th><th scope="col">95 % interval</th><th scope="col" class="number">Score</th><th scope="col" class="number">p50</th><th scope="col" class="number">p95</th><th scope="col" class="number">Cost</th></tr></thead>
    <tbody>${subjects.map((one) => html`<tr key=${one.subject}>
      <th scope="row" class="name">${one.rank !== null && subjects.length > 1 ? html`<span class="soft">${one.rank}. </span>` : ""}${one.subject}${one.told_apart === false ? html` <span class="soft small">its interval overlaps the one above</span>` : ""}</th>
      <td class="number"><strong>${percent(one.pass_rate)}</strong></td>
      <td><${IntervalLine} share=${one.pass_rate} interval=${one.pass_interval} label="pass rate" /></td>
      <td class="number">${score(one.mean_score)}</td><td class="number">${duration(one.seconds?.p50)}</td><td class="number">${duration(one.seconds?.p95)}</td>
      <td class="number">${shortMoney(one.cost_usd + one.judge_cost_usd)}</td></tr>`)}</tbody>
  </table></div>`;
}

const MOST_MATRIX = 60; // cases at first

/** Cases against subjects; those on which the subjects differ come first. */
function Matrix({ report, onOpen }) {
  const [all, show] = useState(false);
  const names = report.subjects.map((one) => one.subject);
  const rows = useMemo(() => {
    const found = new Map();
    for (const one of report.cases) found.set(one.case, { ...(found.get(one.case) ?? {}), [one.subject]: one });
    const differs = (row) => new Set(Object.values(row).map((one) => one.status)).size > 1;
    return [...found].sort(([, a], [, b]) => Number(differs(b)) - Number(differs(a)));
  }, [report]);
  const shown = all ? rows : rows.slice(0, MOST_MATRIX);
  return html`<h2>Matrix</h2><div class="card scroll matrix" tabindex="0" role="region" aria-label="Matrix of cases and subjects"><table>
    <thead><tr><th scope="col">Case</th>${names.map((name) => html`<th key=${name} scope="col">${name}</th>`)}</tr></thead>
    <tbody>${shown.map(([name, row]) => html`<tr key=${name}><th scope="row" class="name">${name}</th>
      ${names.map((subject) => html`<td key=${subject}>${row[subject]
        ? html`<button type="button" class=${`cell s-${row[subject].status}`} onClick=${() => onOpen(row[subject])} aria-label=${`${name}, ${subject}: ${word(row[subject].status)}${row[subject].score === null ? "" : `, ${score(row[subject].score)}`}`}>${row[subject].score === null ? word(row[subject].status) : score(row[subject].score)}</button>`
        : html`<span class="soft">–</span>`}</td>`)}</tr>`)}</tbody>
  </table></div>
  ${shown.length < rows.length && html`<p class="more"><button type="button" class="plain" onClick=${() => show(true)}>Show all ${number(rows.length)} cases</button></p>`}`;
}

function Cases({ report, reviews, onOpen }) {
  const [status, choose] = useState("all");
  const [typed, type] = useState("");
  const [subject, pick] = useState("");
  const narrow = useNarrow();
  const reviewed = useMemo(() => new Map((reviews?.reviews ?? []).map((one) => [`${one.case}\n${one.subject}`, one.opinion])), [reviews]);
  const words = typed.trim().toLowerCase();
  const found = useMemo(() => report.cases.filter((one) => (!subject || one.subject === subject) && (words === "" || searched(one).includes(words))), [report, subject, words]);
  const items = useMemo(() => found.filter((one) => status === "all" || one.status === status).sort((a, b) => STATUS_ORDER.indexOf(a.status) - STATUS_ORDER.indexOf(b.status)), [found, status]);
  const many = (name) => found.filter((one) => one.status === name).length;
  const options = [["all", "All", found.length], ...STATUS_ORDER.filter((name) => report.counts[name]).map((name) => [name, word(name), many(name)])];
  const cells = (one) => [
    html`<span class="title">${one.case}</span><span class="under soft">${one.why || one.description} <${Tags} names=${one.tags} /></span>`,
    html`<${Badge} state=${one.status} />${reviewed.has(`${one.case}\n${one.subject}`) && html` <span class="tag">${reviewed.get(`${one.case}\n${one.subject}`)}</span>`}`,
    one.subject, score(one.score), duration(one.seconds), money(one.cost_usd + one.judge_cost_usd),
  ];
  return html`<h2>Cases</h2><section class="card" aria-label="Cases">
    <div class="filters">
      <label class="hidden" for="cases-search">Search cases</label>
      <input id="cases-search" type="search" placeholder="Search cases, reasons, answers" value=${typed} onInput=${(event) => type(event.target.value)} />
      ${report.subjects.length > 1 && html`<label class="hidden" for="cases-subject">Subject</label><select id="cases-subject" value=${subject} onChange=${(event) => pick(event.target.value)}>
        <option value="">all subjects</option>${report.subjects.map((one) => html`<option key=${one.subject} value=${one.subject}>${one.subject}</option>`)}</select>`}
      <${Choice} label="How they ended" value=${status} onChange=${choose} options=${options} />
    </div>
    ${items.length === 0 ? html`<${Empty} title=${report.cases.length ? "No case fits these filters" : "No case has ended yet"} />` : html`
      <${Rows} label="Cases" kind="case-rows" items=${items} columns=${[["Case", "name"], ["Status", "state"], ["Subject", "agent"], ["Score", "number score"], ["Took", "number took"], ["Cost", "number cost"]]}
        cells=${cells} height=${narrow ? 104 : 60} keyOf=${(one) => `${one.case}\n${one.subject}`} onOpen=${onOpen} />
      <p class="foot soft small">${number(items.length)} of ${number(report.cases.length)} rows</p>`}
  </section>`;
}

const searched = (row) => [row.case, row.why, row.description, ...row.tags, ...row.epochs.map((one) => one.answer ?? "")].join("\n").toLowerCase();
