// Drawings of figures; each says in words what it shows.
import { html } from "./html.js";
import { count, duration, number, percent, shortMoney, STATUS_ORDER, word } from "./format.js";

const WIDTH = 300;

/** A share and its interval on a line from 0% to 100%. */
export function IntervalLine({ share, interval, label }) {
  if (share === null) return html`<span class="soft">–</span>`;
  const [low, high] = interval ?? [share, share];
  const told = `${label} ${percent(share)}${interval ? `, between ${percent(low)} and ${percent(high)}` : ""}`;
  return html`<span class="whole"><svg class="interval" viewBox="0 0 160 28" width="160" height="28" role="img" aria-label=${told}>
    <line class="axis" x1="4" x2="156" y1="9" y2="9" /><line class="axis" x1="4" x2="4" y1="5" y2="13" /><line class="axis" x1="156" x2="156" y1="5" y2="13" />
    <line class="whisker" x1=${4 + 152 * low} x2=${4 + 152 * high} y1="9" y2="9" /><circle class="dot" cx=${4 + 152 * share} cy="9" r="4.5" />
    <text x="0" y="26">0%</text><text x="160" y="26" text-anchor="end">100%</text>
  </svg>${interval && html` <span class="soft small">${percent(low)} to ${percent(high)}</span>`}</span>`;
}

export function Charts({ report }) {
  const { subjects } = report;
  const several = subjects.length > 1;
  const shown = subjects.slice(0, 8);
  const rest = subjects.length - shown.length;
  const chart = (title, draw, note) => html`<div class="card padded"><h3>${title}</h3>
    ${shown.map((subject) => html`<div key=${subject.subject}>${draw(subject)}</div>`)}
    ${rest > 0 && html`<p class="soft small">… and ${count(rest, "more subject")}</p>`}${note}</div>`;
  const costliest = Math.max(...subjects.map((one) => one.cost_usd + one.judge_cost_usd), 1e-9);
  const [from, to, edge] = timesOf(report);
  const head = (subject, words) => html`<div class="bar-name"><span>${several ? subject.subject : ""}</span><span class="soft">${words}</span></div>`;
  return html`<div class="charts">
    ${chart("How cases ended", (one) => html`${head(one, count(one.cases_run, "case"))}<${StatusBar} counts=${one.counts} name=${one.subject} />`, html`<${Legend} counts=${report.counts} />`)}
    ${chart("Scores", (one) => html`${head(one, one.mean_score === null ? "" : `mean ${one.mean_score.toFixed(2)}`)}<${Bars} name=${`${one.subject}: scores`}
      bins=${one.score_bins} ends=${["0", "1"]} axis="score of a case" />`)}
    ${chart("Time an answer took", (one) => html`${head(one, one.seconds ? `p50 ${duration(one.seconds.p50)}, p95 ${duration(one.seconds.p95)}` : "")}<${Bars} name=${`${one.subject}: time of answers`}
      bins=${one.second_bins.slice(from, to)} ends=${[duration(edge(from)), duration(edge(to))]} axis="time of an answer (logarithmic)" />`)}
    ${chart("Cost", (one) => html`${head(one, `${shortMoney(one.cost_usd + one.judge_cost_usd)}${one.cases_run > 0 && one.cost_usd + one.judge_cost_usd > 0 ? `, ${shortMoney((one.cost_usd + one.judge_cost_usd) / one.cases_run)} a case` : ""}`)}
      <${CostLine} answers=${one.cost_usd / costliest} judge=${one.judge_cost_usd / costliest} name=${one.subject} />`,
      html`<ul class="legend"><li><span class="swatch answers"></span>answers</li><li><span class="swatch judge"></span>judge</li></ul><p class="soft small">A full line is ${shortMoney(costliest)}, the dearest subject. The cost of a case includes its judge.</p>`)}
  </div>`;
}

/** The steps of the axis at which there are times, with some room around them, and the seconds at a step. */
function timesOf({ subjects, seconds_axis: [least, most] }) {
  const steps = subjects[0].second_bins.length;
  const used = [...Array(steps).keys()].filter((step) => subjects.some((one) => one.second_bins[step] > 0));
  return [Math.max(0, (used[0] ?? 0) - 2), Math.min(steps, (used.at(-1) ?? steps - 1) + 3), (step) => least * (most / least) ** (step / steps)];
}

function StatusBar({ counts, name }) {
  const total = Object.values(counts).reduce((sum, many) => sum + many, 0) || 1;
  const seen = [...STATUS_ORDER].reverse().filter((status) => counts[status]);
  let left = 0;
  return html`<svg viewBox="0 0 300 20" role="img" aria-label=${`${name}: ${seen.map((one) => `${counts[one]} ${word(one)}`).join(", ")}`}>
    ${seen.map((status) => {
      const width = (WIDTH * counts[status]) / total;
      left += width;
      return html`<rect key=${status} class=${`filled s-${status}`} x=${left - width} y="2" width=${width} height="16"><title>${counts[status]} ${word(status)}</title></rect>`;
    })}
  </svg>`;
}

function Legend({ counts }) {
  return html`<ul class="legend">${[...STATUS_ORDER].reverse().filter((one) => counts[one]).map((one) => html`<li key=${one}><span class=${`swatch s-${one}`}></span>${word(one)} ${number(counts[one])}</li>`)}</ul>`;
}

/** How many cases fall into each step; `axis` says what is counted along the line. */
function Bars({ bins, ends, name, axis }) {
  const total = bins.reduce((sum, many) => sum + many, 0);
  if (total === 0) return html`<p class="soft small">nothing to show</p>`;
  const highest = Math.max(...bins);
  const width = (WIDTH - 30) / bins.length;
  return html`<svg viewBox="0 0 300 84" role="img" aria-label=${`${name} of ${total} cases, from ${ends[0]} to ${ends[1]}: ${axis}; at most ${count(highest, "case")} in one step`}>
    <text x="26" y="11" text-anchor="end">${number(highest)}</text><text x="26" y="60" text-anchor="end">0</text><text class="axis-name" x="10" y="36" text-anchor="middle" transform="rotate(-90 10 36)">cases</text>
    <line class="axis" x1="30" x2="300" y1="4.5" y2="4.5" />
    ${bins.map((many, place) => {
      const height = many === 0 ? 0 : Math.max(2, (52 * many) / highest);
      return html`<rect key=${place} class="bin" x=${30 + place * width + 1} y=${56 - height} width=${width - 2} height=${height} rx="2"><title>${number(many)}</title></rect>`;
    })}
    <line class="axis" x1="30" x2="300" y1="56.5" y2="56.5" />
    <text x="30" y="69">${ends[0]}</text><text x="300" y="69" text-anchor="end">${ends[1]}</text><text class="axis-name" x="165" y="81" text-anchor="middle">${axis}</text>
  </svg>`;
}

function CostLine({ answers, judge, name }) {
  return html`<svg viewBox="0 0 300 16" role="img" aria-label=${`${name}: ${percent(answers + judge)} of the dearest, ${percent(judge)} for the judge`}>
    <rect class="track-back" x="0" y="3" width="300" height="10" rx="3" />
    <rect class="cost-answers" x="0" y="3" width=${WIDTH * answers} height="10" /><rect class="cost-judge" x=${WIDTH * answers} y="3" width=${WIDTH * judge} height="10" />
  </svg>`;
}

/** A column for each item: `value(item)` in dollars, a line at `limit(item)` where there is one, and what is `told` of it; `axis` says what the columns are. */
export function Columns({ label, items, value, limit = () => null, told, ends, axis = "days" }) {
  const most = Math.max(...items.map(value));
  if (most === 0) return html`<p class="soft small">nothing to show</p>`;
  const highest = Math.max(most, ...items.map(limit).filter((one) => one !== null && one < 4 * most)); // a far limit would flatten all
  const width = WIDTH / Math.max(items.length, 8); // a few are no wall
  const top = (amount) => 100 - (98 * amount) / highest;
  return html`<div class="plot"><div class="y-axis soft small"><span>${shortMoney(highest)}</span><span class="axis-name">dollars</span><span>$0</span></div><svg class="columns" viewBox="0 0 300 100" preserveAspectRatio="none" role="img" aria-label=${label}>
    ${items.map((item, place) => {
      const [amount, cap] = [value(item), limit(item)];
      return html`<g key=${place}><rect class="hit" x=${place * width} y="0" width=${width} height="100" />
        <rect class=${cap !== null && amount > 0.9 * cap ? "bin over" : "bin"} x=${(place + 0.1) * width} y=${top(amount)} width=${0.8 * width} height=${100 - top(amount)} />
        ${cap !== null && cap <= highest && html`<line class="limit" x1=${place * width} x2=${(place + 1) * width} y1=${top(cap)} y2=${top(cap)} />`}<title>${told(item)}</title></g>`;
    })}
  </svg><div class="x-axis bar-name soft"><span>${ends[0]}</span><span class="axis-name">${axis}</span><span>${ends[1] !== ends[0] && ends[1]}</span></div></div>`;
}
