// Questions: one that was put to an agent with its answer, and those that a run waits for a person to answer.
import { html, into, useChange, useState } from "./html.js";
import { newKey, post, useGet } from "./http.js";
import { LIVE } from "./format.js";
import { Action, Failure, Loading } from "./parts.js";
import { Conversation } from "./calls.js";
import { ModelText } from "./text.js";

/** What was asked and what was answered: the one call of a run of `muster ask`. */
export function AnswerTab({ run, children }) {
  const { data, error, reload } = useGet(`/api/runs/${run.id}/call?key=ask`);
  useChange([run.state, run.calls.done], reload);
  return html`${children}<section class="card padded" aria-label="Answer">
    ${data ? html`<${Conversation} call=${data} run=${run.id} />` : error?.status === 404 ? html`<p class="soft" role="status">${LIVE.has(run.state) ? "It has not been asked yet." : "It was not asked."}</p>`
      : error ? html`<${Failure} error=${error} />` : html`<${Loading} what="the answer" />`}
  </section>`;
}

/** What the run waits for a person to answer. */
export function Question({ one, reload }) {
  const [failure, tell] = useState(null);
  const send = async (text) => {
    await post(`/api/runs/${one.run}/answer`, { text, key: one.key, client_id: newKey() });
    reload();
  };
  return html`<section class="card padded question" aria-label="Question">
    <h2>${one.agent} is asked</h2>
    <${ModelText} text=${one.prompt} />
    <${one.candidates ? Ballot : Text} one=${one} send=${send} tell=${tell} />
    ${failure && html`<${Failure} error=${failure} />`}
  </section>`;
}

function Text({ one, send, tell }) {
  const [text, type] = useState("");
  return html`<label for=${`answer-${one.key}`}>Answer as ${one.agent}</label>
    <textarea id=${`answer-${one.key}`} rows="3" value=${text} onInput=${into(type)}></textarea>
    <${Action} label="Send the answer" kind="main" act=${() => send(text)} onError=${tell} disabled=${text.trim() === ""} />`;
}

/** A weight and a critique for each candidate; who gives one no weight abstains from it. */
function Ballot({ one, send, tell }) {
  const [votes, vote] = useState({});
  const change = (label, field) => (event) => vote((old) => ({ ...old, [label]: { ...old[label], [field]: event.target.value } }));
  const weighed = (label) => (votes[label]?.weight ?? "") !== "";
  const evaluations = one.candidates.map((candidate) => (weighed(candidate)
    ? { candidate, weight: Number(votes[candidate].weight), critique: votes[candidate].critique ?? "" } : { candidate, skipped: true }));
  const wrong = evaluations.some(({ weight = 0 }) => !(Math.abs(weight) <= 100));
  return html`<h3>Your weights, as ${one.agent}</h3><p class="soft small">These fields write the lines. From −100, entirely wrong, to 100, entirely right; only their proportions count. Leave a weight empty to abstain from a candidate.</p>
    ${one.candidates.map((label) => html`<fieldset key=${label} class="ballot"><legend>Candidate ${label}</legend>
      <input type="number" min="-100" max="100" step="any" aria-label=${`Weight of ${label}`} placeholder="weight" value=${votes[label]?.weight ?? ""} onInput=${change(label, "weight")} />
      <textarea rows="1" aria-label=${`Critique of ${label}`} placeholder="What is wrong, and what would make it better" value=${votes[label]?.critique ?? ""} onInput=${change(label, "critique")}></textarea></fieldset>`)}
    ${wrong && html`<p class="bad small" role="alert">A weight is a number from −100 to 100.</p>`}
    <div class="actions"><${Action} label="Send the weights" kind="main" act=${() => send(JSON.stringify({ evaluations }))} onError=${tell} disabled=${wrong || !one.candidates.some(weighed)} />
      <${Action} label="Abstain" confirm="Abstain from all?" act=${() => send("skip:")} onError=${tell} /></div>`;
}
