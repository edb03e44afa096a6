// One case under one subject: what was said, what was checked, what the judge thought, and what a person thinks of that.
import { html, into, useEffect, useRef, useState } from "./html.js";
import { post, useGet } from "./http.js";
import { duration, percent, score, word } from "./format.js";
import { Action, Badge, Choice, Facts, Failure, Meter, Panel, Tags, usd, Waiting } from "./parts.js";
import { Conversation } from "./calls.js";
import { Keys } from "./keys.js";
import { ModelText } from "./text.js";

/** `row` is the case as lists have it; its epochs are asked for when it is opened. `go(1)` opens the one behind it, `subjects` are the results of others. */
export function CasePanel({ run, row, reviews, onReview, onClose, before, behind, go, place, subjects, choose }) {
  const step = (by, able, text) => html`<button type="button" class="plain small" disabled=${!able} onClick=${() => go(by)}>${text}</button>`;
  const head = html`<p class="under"><${Badge} state=${row.status} /> <span class="soft">${row.subject}</span> <${Tags} names=${row.tags} /></p>
    ${place && html`<div class="steps-between">${step(-1, before, "‹ Previous")}<span class="soft small">${place}</span>${step(1, behind, "Next ›")}<${Keys} next="next and previous case" search=${false} /></div>`}
    ${subjects.length > 0 && html`<${Choice} label="Subject" value=${row.subject} onChange=${(name) => choose(subjects.find((one) => one.subject === name))} options=${subjects.map((one) => [one.subject, `${one.subject}: ${word(one.status)}`])} />`}`;
  return html`<${Panel} title=${row.case} onClose=${onClose} head=${head} keys=${{ j: () => go(1), k: () => go(-1) }}>
    <${Case} key=${`${row.case}\n${row.subject}`} run=${run} row=${row} reviews=${reviews} onReview=${onReview} />
  <//>`;
}

function Case({ run, row, reviews, onReview }) {
  const { data, error } = useGet(`/api/suites/${run}/case?${new URLSearchParams({ case: row.case, subject: row.subject })}`);
  const [number, choose] = useState(0);
  const top = useRef(null);
  useEffect(() => {
    for (let one = top.current; one; one = one.parentElement) if (one.scrollTop && one.closest("dialog")) one.scrollTop = 0; // as if it were opened
  }, []);
  const epochs = data?.epochs ?? [];
  const epoch = epochs[Math.min(number, epochs.length - 1)];
  return html`<div ref=${top}>
    ${row.about && html`<p>${row.about}</p>`}
    <${Waiting} data=${data} error=${error} what="the case" />
    ${epochs.length > 1 && html`<${Choice} label="Epoch" value=${String(number)} onChange=${(value) => choose(Number(value))}
      options=${epochs.map((one, place) => [String(place), `epoch ${one.epoch}: ${word(one.status)}`])} />`}
    ${data && !epoch && html`<p class="soft">The run has not come to this case yet.</p>`}
    ${epoch && html`<${Epoch} key=${epoch.epoch} run=${run} row=${row} epoch=${epoch} />
      <${Review} key=${`review-${epoch.epoch}`} run=${run} row=${row} epoch=${epoch} onReview=${onReview}
        review=${reviews.find((one) => one.case === row.case && one.subject === row.subject && one.epoch === epoch.epoch)} />
      <${Talk} run=${run} keys=${epoch.keys} />`}
  </div>`;
}

function Epoch({ row, epoch }) {
  return html`
    <${Facts} items=${[
      ["Score", epoch.score === null ? "–" : `${score(epoch.score)} (${score(row.threshold)} is needed)`],
      ["Took", duration(epoch.seconds)],
      ["Cost", html`${usd(epoch.cost_usd)}${epoch.judge_cost_usd > 0 && html` and ${usd(epoch.judge_cost_usd)} for the judge`}`],
      ["Where", `${row.file}${row.line ? `:${row.line}` : ""}`],
    ]} />
    ${epoch.why && html`<div class="box bad"><p>${epoch.why}</p></div>`}
    ${epoch.error && html`<div class="box bad"><p>${epoch.error.message ?? String(epoch.error)}</p></div>`}
    ${epoch.checks.length > 0 && html`<h3>Checks</h3>${epoch.checks.map((one, place) => html`<div key=${place} class=${`box ${one.passed ? "fine" : "bad"}`}>
      <div class="between"><span><strong>${one.name}</strong> <code>${typeof one.expected === "string" ? one.expected : JSON.stringify(one.expected)}</code></span><${Badge} state=${one.passed ? "passed" : "failed"} /></div>
      ${one.why && html`<p>${one.why}</p>`}</div>`)}`}
    ${epoch.items.length > 0 && html`<h3>What the judge looked at</h3>${epoch.items.map((one, place) => html`<${Item} key=${place} item=${one} />`)}`}
    ${epoch.judgements.length > 0 && html`<p class="soft small">Judged by ${epoch.judgements.map((one) => `${one.by}${one.model ? ` (${one.model})` : ""}${one.samples > 1 ? `, ${one.samples} samples, ${percent(one.agreement)} agree` : ""}`).join("; ")}</p>`}
    <h3>Answer</h3><div class="message assistant"><${ModelText} text=${epoch.answer ?? ""} /></div>`;
}

function Item({ item }) {
  const kind = item.score === null ? "open-end" : item.score >= 0.5 ? "fine" : "bad";
  return html`<div class=${`box ${kind}`}>
    <div class="between"><span><strong>${item.id}</strong>${item.critical && html` <span class="tag">critical</span>`} <span class="soft small">${item.by}</span></span>
      ${item.score === null ? html`<span class="soft">not judged</span>` : html`<span class="whole"><${Meter} value=${item.score} label=${`Score of ${item.id}`} /> ${score(item.score)}</span>`}</div>
    ${item.rationale && html`<p>${item.rationale}</p>`}
    ${item.evidence && html`<p class="quote">${item.evidence}</p>`}
    ${item.quoted === false && html`<p class="soft small">This quotation does not stand in the answer.</p>`}
  </div>`;
}

const OPINIONS = [["right", "Right"], ["wrong", "Wrong"], ["borderline", "Borderline"]];

/** What a person thinks of the verdict; it is stored, and the agreement above changes with it. */
function Review({ run, row, epoch, review, onReview }) {
  const [note, type] = useState(review?.note ?? "");
  const [failure, tell] = useState(null);
  const send = async (opinion) => {
    await post("/api/reviews", { run, case: row.case, subject: row.subject, epoch: epoch.epoch, opinion, note });
    onReview();
  };
  return html`<section class="box review" aria-label="Review">
    <h3>Is this verdict right?</h3>
    <div class="actions">${OPINIONS.map(([name, text]) => html`<${Action} key=${name} label=${review?.opinion === name ? `✓ ${text}` : text} kind=${review?.opinion === name ? "main" : "plain"} act=${() => send(name)} onError=${tell} />`)}</div>
    <label for="review-note">Why (kept with the review)</label>
    <input id="review-note" value=${note} onInput=${into(type)} />
    ${review && html`<p class="soft small">Reviewed as ${review.opinion}${review.by ? ` by ${review.by}` : ""}${review.note ? `: ${review.note}` : ""}</p>`}
    ${failure && html`<${Failure} error=${failure} />`}
  </section>`;
}

function Talk({ run, keys }) {
  const last = keys.at(-1);
  const { data } = useGet(last ? `/api/runs/${run}/call?key=${encodeURIComponent(last)}` : null);
  return data && html`<${Conversation} call=${data} run=${run}><h3>Conversation</h3><//>`;
}
