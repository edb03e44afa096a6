// A scale test: how its battles ended and how sure that is, each of them, and a revised prompt with what is known of it.
import { html, useChange, useMemo } from "./html.js";
import { useGet } from "./http.js";
import { count, duration, LIVE, number, percent, word } from "./format.js";
import { Badge, Facts, Pieces, sentence, Table, usd, Verdict, Waiting } from "./parts.js";
import { IntervalLine } from "./charts.js";
import { differences } from "./difference.js";
import { ModelText } from "./text.js";
import { Rows } from "./window.js";

const ENDINGS = { goal: "passed", limit: "flaky", error: "error", canceled: "canceled", manual: "canceled", timeout: "timeout", budget: "failed" };
const WORDS = { goal: "goal reached", limit: "turn limit", manual: "canceled by a person", timeout: "out of time", budget: "budget spent" };
const wordOf = (ending) => WORDS[ending] ?? ending;
const RESULTS = { better: "ok", worse: "" };
const LATENCIES = ["p50", "p90", "p99"];

export function ScaleTab({ run, live }) {
  const { data: scale, error, reload } = useGet(`/api/runs/${run.id}/report?format=json`);
  useChange([live.last, run.state], reload);
  if (!scale) return html`<${Waiting} error=${error} what="the scale test" />`;
  const going = LIVE.has(run.state);
  return html`<${Verdict} kind=${going ? "pending" : kindOf(scale, run)} name=${going ? word(run.state) : scale.ok ? (scale.minGoalRate === null ? "finished" : "passed") : "not passed"} text=${sentence(scale.summary, scale.subjects.map((one) => one.agent))}>
      ${going && html`<progress max="1" value=${scale.progress} aria-label="Battles played"></progress>`}
      <${Facts} items=${[
        ["Battles over", `${number(scale.completed)} of ${number(scale.total)}`],
        scale.minGoalRate !== null && ["Goals asked for", percent(scale.minGoalRate)],
        scale.unjudged > 0 && ["At their limit and judged by nobody", html`${number(scale.unjudged)} <span class="soft small">${scale.battles.find((one) => one.unjudged).unjudged}</span>`],
        scale.turns && ["Turns", html`median ${scale.turns.median} <span class="soft small">mean ${scale.turns.mean.toFixed(1)}, ${scale.turns.min} to ${scale.turns.max}</span>`],
        ["Time of a reply", LATENCIES.map((name) => html`<span class="whole">${name} ${duration(scale.latencyMs[name] === null ? null : scale.latencyMs[name] / 1000)}</span> `)],
        ["Cost", html`${usd(scale.costUsd)} <span class="soft small">${number(scale.usage.tokensIn)} tokens in, ${number(scale.usage.tokensOut)} out</span>`],
      ]} />
    <//>
    <h2>How battles ended</h2><${Table} label="How battles ended" columns=${[["Ended"], ["Battles", "number"], ["Share", "number"], ["95% interval (Wilson)"]]}
      rows=${Object.entries(scale.counts).filter(([name, many]) => many > 0 || name === "goal").map(([name, many]) => [html`<${Badge} state=${ENDINGS[name]} text=${wordOf(name)} />`, number(many), ...rateOf(many, scale.completed, scale.intervals[name])])} />
    ${scale.subjects.length > 1 && html`<h2>Goals by subject</h2><${Table} label="Goals by subject" columns=${[["Subject"], ["Reached", "number"], ["Share", "number"], ["95% interval (Wilson)"]]}
      rows=${scale.subjects.map((one) => [subjectOf(one), `${one.reached} of ${one.battles}`, ...rateOf(one.reached, one.battles, one.interval)])} />`}
    <${Battles} scale=${scale} />
    ${scale.rationale !== null && html`<${Revision} scale=${scale} />`}`;
}

/** Without a share that is asked for nobody said what would be good: neither good nor bad, as in the header of the run. */
const kindOf = (scale, run) => (scale.ok ? (run.verdict?.tone === "plain" ? "plain" : "ok") : "");

const subjectOf = (one) => [one.agent, one.prompt].filter(Boolean).join(" · ");

function rateOf(many, of, interval) {
  if (of === 0) return ["–", "–"];
  return [percent(many / of), html`<${IntervalLine} share=${many / of} interval=${interval} label="Share" />`];
}

/** All battles with what became of each; where the revised prompt was played, of its pair too. */
function Battles({ scale }) {
  const again = new Map(scale.revised.map((one) => [one.number, one]));
  const ended = (one) => (one.conversationId === null ? html`<span class="soft">not begun</span>` : html`<${Badge} state=${ENDINGS[one.endedReason] ?? "running"} text=${one.unjudged ? `${wordOf(one.endedReason)}, judged by nobody` : (wordOf(one.endedReason) ?? "running")} />`);
  const pair = (one) => (again.get(one.number)?.conversationId ? html`<a href=${`#/runs/${again.get(one.number).conversationId}`}>${ended(again.get(one.number))}<span class="hidden"> battle ${one.number} with the revised prompt</span></a>` : html`<span class="soft">–</span>`);
  const cells = (one) => [
    html`<span class="title">${one.number}. ${one.goal ?? "no goal"}</span><span class="under soft">${subjectOf(one)}</span>`,
    ended(one), count(one.turns, "turn"), usd(one.costUsd), ...(scale.revised.length > 0 ? [pair(one)] : []),
  ];
  return html`<h2>Battles</h2><section class="card" aria-label="Battles"><${Rows} label="Battles" kind="battle-rows" items=${scale.battles} cells=${cells} heights=${[56, 78]} keyOf=${(one) => one.number}
    columns=${[["Goal", "name"], ["Ended", "state"], ["Turns", "number"], ["Cost", "number"], ...(scale.revised.length > 0 ? [["Revised", "side"]] : [])]} href=${(one) => one.conversationId && `#/runs/${one.conversationId}`} /></section>`;
}

/** The proposed prompt beside the one before; whether it is better is told only by battles with it. */
function Revision({ scale }) {
  const { revisedPrompt, originalPrompt, comparison, rationale } = scale;
  const found = useMemo(() => differences(originalPrompt ?? "", revisedPrompt ?? ""), [originalPrompt, revisedPrompt]);
  if (revisedPrompt === null) return html`<h2>Revised prompt</h2><div class="notice warn">${sentence(rationale)}</div>`;
  return html`<h2>Revised prompt</h2>
    ${comparison ? html`<${Verdict} label="Comparison by pairs" kind=${RESULTS[comparison.result] ?? "pending"} name=${comparison.result}
        text=${`Played on the same goals, in ${number(comparison.pairs)} pairs: ${comparison.before} reached the goal before, ${comparison.after} with it.`}>
        <${Facts} items=${[["Reached only with it", comparison.gained], ["Reached only before", comparison.lost], ["Exact McNemar test", comparison.pText], ["Pairs left out: error, budget, timeout or cancel", comparison.leftOut - comparison.leftOutUnjudged], ["Pairs left out: a side judged by nobody", comparison.leftOutUnjudged]]} /><//>`
      : html`<div class="notice warn">It was not played, so nothing says that it is better. <code>muster scale … --try-revised</code> plays the same goals with it and compares.</div>`}
    <div class="card padded" role="region" aria-label="Reasons"><h3>Why it was proposed</h3><${ModelText} text=${rationale.split("\n").map((one) => `- ${one}`).join("\n")} /></div>
    <div class="pair prompts"><section class="box" aria-label="Prompt before" tabindex="0"><h3>Before</h3>${originalPrompt ? html`<${Pieces} pieces=${found.before} />` : html`<p class="soft">The agent had none.</p>`}</section>
      <section class="box" aria-label="Revised prompt" tabindex="0"><h3>Revised</h3><${Pieces} pieces=${found.after} /></section></div>`;
}
