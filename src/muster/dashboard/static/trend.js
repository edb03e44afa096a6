// The trend of a suite over its runs of one name: pass rates with their intervals, what they cost, and the baseline.
import { html, useMemo, useNarrow, useTicks } from "./html.js";
import { useGet } from "./http.js";
import { Columns } from "./charts.js";
import { count, day, LIVE, moment, number, percent, shortMoney } from "./format.js";
import { COMPARED } from "./picker.js";
import { Ago, Badge, Command, Empty, Table, Tags, usd, Waiting } from "./parts.js";

const MOST = 60; // runs
const TONES = 6; // subjects, each in its colour

export function TrendView({ query }) {
  const runs = useGet(`/api/runs?workload=${COMPARED}&limit=500`);
  const names = useMemo(() => [...new Set((runs.data?.runs ?? []).map((run) => run.name).filter(Boolean))], [runs.data]);
  const chosen = query.get("run") ?? names[0];
  return html`<h1>Trend</h1>
    <${Waiting} ...${runs} what="suite runs" />
    ${runs.data && !chosen && html`<section class="card"><${Empty} title="No suite run has a name yet">
      <p>A trend is over the runs of one name. Run the same suite under the same name each time, every night for example:</p>
      <${Command} text="muster run suite.yaml --agent A --name nightly" /><//></section>`}
    ${chosen && html`<section class="card filters" aria-label="Suite"><label for="trend-name">Runs called</label>
        <select id="trend-name" value=${chosen} onChange=${(event) => (location.hash = `#/trend?run=${encodeURIComponent(event.target.value)}`)}>
          ${[...new Set([chosen, ...names])].map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select></section>
      <${Trend} key=${chosen} name=${chosen} />`}`;
}

const found = (run, subject) => run.subjects.find((one) => one.subject === subject && one.pass_rate !== null);
const between = ({ pass_interval: [low, high] }) => `between ${percent(low)} and ${percent(high)}`;

function Trend({ name }) {
  const { data, error, reload } = useGet(`/api/suites/trend?run=${encodeURIComponent(name)}&limit=${MOST}`);
  const going = data?.runs.some((run) => LIVE.has(run.state));
  useTicks(going ? 4000 : 20_000, reload, [going]);
  if (!data) return html`<${Waiting} error=${error} what="the trend" />`;
  const { runs } = data;
  const all = [...new Set(runs.flatMap((run) => run.subjects.map((one) => one.subject)))].sort();
  const subjects = all.slice(0, TONES);
  const dearest = Math.max(...runs.map((run) => run.cost_usd));
  const ends = [runs[0], runs.at(-1)].map((run) => day(run.created_at));
  const baseline = runs.findLast((run) => run.baselines.length > 0);
  const rate = (one) => (one ? html`<strong>${percent(one.pass_rate)}</strong> <span class="soft small">of ${number(one.cases_run)} <br />${one.pass_interval.map((end) => percent(end)).join(" to ")}</span>` : "–");
  return html`<div class="charts broad">
      <div class="card padded"><h2>Cases that passed, with 95% intervals</h2><${Rates} runs=${runs} subjects=${subjects} ends=${ends} />
        <ul class="legend">${subjects.map((subject, place) => html`<li key=${subject}><span class=${`swatch m${place}`}></span>${subject}</li>`)}
          ${all.length > TONES && html`<li>… and ${number(all.length - TONES)} more</li>`}${baseline && html`<li><span class="swatch baseline"></span>baseline</li>`}</ul></div>
      <div class="card padded"><h2>Cost of a run</h2><${Columns} label=${`Cost of ${count(runs.length, "run")}, at most ${shortMoney(dearest)}`} items=${runs} ends=${ends} axis="runs, the oldest first" value=${(run) => run.cost_usd}
        told=${(run) => `${moment(run.created_at)}: ${shortMoney(run.cost_usd)}`} />
        ${dearest > 0 && runs.length > 1 && html`<p class="soft small">The last one cost ${shortMoney(runs.at(-1).cost_usd)}, the dearest ${shortMoney(dearest)}.</p>`}</div>
    </div>
    <h2>Runs</h2><${Table} label="Runs" columns=${[["Run", "whole"], ...subjects.map((subject) => [subject, "rate"]), ["State"], ["Cost", "number"], ["Against baseline"]]}
      rows=${[...runs].reverse().map((run) => [html`<a href=${`#/runs/${run.id}`}><${Ago} at=${run.created_at} /></a> ${run.baselines.length > 0 && html`<br />`}<${Tags} names=${run.baselines.map((one) => `baseline ${one}`)} />`,
        ...subjects.map((subject) => rate(found(run, subject))), html`<${Badge} state=${run.state} />`, usd(run.cost_usd),
        baseline && baseline !== run && html`<a class="small" href=${`#/compare?a=${baseline.id}&b=${run.id}`}>Compare<span class="hidden"> with the baseline</span></a>`])}>
      ${runs.length === MOST && html`<p class="foot soft small">The newest ${number(MOST)} runs.</p>`}<//>`;
}

/** Pass rates of every subject from run to run. */
function Rates({ runs, subjects, ends }) {
  const right = useNarrow() ? 330 : 592;
  const across = (place) => 36 + ((right - 36) * (place + 0.5)) / runs.length;
  const down = (share) => 150 - 140 * share;
  const points = subjects.map((subject) => runs.flatMap((run, place) => (found(run, subject) ? [{ ...found(run, subject), at: across(place), run }] : [])));
  const told = points.filter((line) => line.length).map((line) => `${line[0].subject} from ${percent(line[0].pass_rate)} to ${percent(line.at(-1).pass_rate)}`);
  return html`<svg viewBox=${`0 0 ${right + 8} 182`} role="img" aria-label=${`Pass rate over ${count(runs.length, "run")}: ${told.join("; ")}`}>
    ${[0, 0.25, 0.5, 0.75, 1].map((share) => html`<g key=${share}><line class="axis" x1="36" x2=${right} y1=${down(share)} y2=${down(share)} /><text x="30" y=${down(share) + 4} text-anchor="end">${percent(share)}</text></g>`)}
    ${runs.map((run, place) => run.baselines.length > 0 && html`<line key=${run.id} class="baseline" x1=${across(place)} x2=${across(place)} y1="6" y2="150" />`)}
    ${points.map((line, tone) => html`<g key=${tone} class=${`m${tone}`}><polyline points=${line.map((one) => `${one.at},${down(one.pass_rate)}`).join(" ")} />
      ${line.map((one) => html`<g key=${one.run.id}><line class="reach" x1=${one.at} x2=${one.at} y1=${down(one.pass_interval[0])} y2=${down(one.pass_interval[1])} />
        <circle cx=${one.at} cy=${down(one.pass_rate)} r=${runs.length > 30 ? 2.5 : 4}><title>${one.subject}, ${moment(one.run.created_at)}: ${percent(one.pass_rate)}, ${between(one)}</title></circle></g>`)}</g>`)}
    <text x="36" y="165">${ends[0]}</text>${ends[1] !== ends[0] && html`<text x=${right} y="165" text-anchor="end">${ends[1]}</text>`}
    <text class="axis-name" x=${(36 + right) / 2} y="179" text-anchor="middle">runs, the oldest first</text>
  </svg>`;
}
