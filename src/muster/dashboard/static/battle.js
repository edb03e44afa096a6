// A battle as it is played: both sides turn by turn, and after each reply what validators and judges decided.
import { html, useChange, useRef, useState } from "./html.js";
import { useGet, useStream } from "./http.js";
import { duration, LIVE, percent, shortMoney, word } from "./format.js";
import { Badge, Facts, Meter, sentence, usd, Verdict, Waiting } from "./parts.js";
import { Message } from "./calls.js";

const VERDICTS = { yes: "passed", no: "failed", uncertain: "unjudged" };
const ENDED = { goal: "goal reached", limit: "turn limit reached", error: "failed", manual: "canceled by a person", timeout: "out of time", budget: "budget spent" };
const NEAR = 160; // pixels from the end within which the page follows what is said

export function BattleTab({ run, children }) {
  const report = useGet(`/api/runs/${run.id}/report?format=json`);
  const joined = useRef(false);
  const [talk, tell] = useState({ messages: [], decisions: [], writing: {} });
  useStream(run.id, 0, (updates) => {
    const follows = joined.current && document.documentElement.scrollHeight - scrollY - innerHeight < NEAR;
    joined.current = true; // what was said before one came is read from its beginning
    tell((old) => updates.reduce(heard, old));
    if (follows && updates.some((one) => one.name === "message")) requestAnimationFrame(() => scrollTo(0, document.documentElement.scrollHeight));
  });
  useChange([run.state], report.reload);
  if (!report.data) return html`<${Waiting} ...${report} what="the battle" />`;
  const battle = report.data;
  const going = LIVE.has(run.state);
  return html`<div class="battle">
    <${Outcome} battle=${battle} run=${run} talk=${talk} going=${going} />
    <div class="talk" role="log" aria-label="Conversation" aria-live="polite">
      ${turnsOf(talk).map((turn) => html`<${Turn} key=${turn.message.seq} ...${turn} battle=${battle} />`)}
      ${Object.entries(talk.writing).map(([key, text]) => html`<${Writing} key=${key} text=${text} side=${sideOf(key)} battle=${battle} />`)}
      ${going && Object.keys(talk.writing).length === 0 && html`<p class="soft waiting" role="status">${run.state === "waiting" ? "A person is asked for the next message." : "The next message is being written …"}</p>`}
    </div>
    ${children}
  </div>`;
}

/** What is known of the conversation after one more update. */
function heard(talk, { name, data }) {
  if (name === "message" && !talk.messages.some((one) => one.seq === data.seq)) return { ...talk, messages: [...talk.messages, data], writing: {} };
  if (name === "decision") return { ...talk, decisions: [...talk.decisions, data] };
  if (name === "delta") {
    const before = talk.writing[data.key] ?? "";
    return { ...talk, writing: { ...talk.writing, [data.key]: before.slice(0, data.offset) + data.text } };
  }
  return name === "end" ? { ...talk, writing: {} } : talk;
}

/** Each message with the decisions that followed it: they belong to the reply of the agent under test of their turn. */
function turnsOf({ messages, decisions }) {
  let turn = 0;
  return messages.map((message) => {
    const own = message.role === "assistant";
    turn += own ? 1 : 0;
    return { message, turn, decisions: own ? decisions.filter((one) => one.turn === turn) : [] };
  });
}

const sideOf = (key) => (key.includes("counterpart") || key.includes("user") ? "user" : "assistant");

function Outcome({ battle, run, talk, going }) {
  const turns = talk.messages.filter((one) => one.role === "assistant").length;
  const kind = going ? "pending" : battle.endedReason === "goal" ? "ok" : battle.endedReason === "limit" && !battle.goal ? "ok" : "";
  const cost = talk.messages.reduce((sum, one) => sum + one.costUsd, 0) + talk.decisions.reduce((sum, one) => sum + one.costUsd, 0);
  return html`<${Verdict} label="Outcome" kind=${kind} name=${going ? word(run.state) : ENDED[battle.endedReason] ?? word(run.state)}
      text=${going ? `Turn ${Math.min(turns + 1, battle.messageLimit)} of at most ${battle.messageLimit}.` : sentence(battle.verdict, [battle.agent])}>
    ${going && html`<progress max=${battle.messageLimit} value=${turns} aria-label="Turns played">${turns}</progress>`}
    <${Facts} items=${[
      ["Goal", battle.goal ?? "none; it is played to its limit"],
      ["Under test", battle.agent],
      ["Counterpart", battle.counterpart],
      battle.judge && ["Judge", battle.judge === battle.confirmJudge ? battle.judge : `${battle.judge}, confirmed by ${battle.confirmJudge}`],
      !going && ["Turns", `${turns} of ${battle.messageLimit}`],
      ["Cost", usd(going ? cost : battle.costUsd)],
    ]} />
  <//>`;
}

function Turn({ message, turn, decisions, battle }) {
  const own = message.role === "assistant";
  const name = own ? `${battle.agent} · turn ${turn}` : message.agent ?? "opening";
  const facts = [message.latencyMs > 0 && duration(message.latencyMs / 1000), message.costUsd > 0 && shortMoney(message.costUsd), message.quality !== "good" && message.quality].filter(Boolean);
  return html`<${Message} role=${message.role} text=${message.content} name=${name}>
      ${facts.length > 0 && html`<p class="soft small facts-line">${facts.join(" · ")}</p>`}
    <//>
    ${decisions.map((one, place) => html`<${Decision} key=${place} decision=${one} />`)}`;
}

function Decision({ decision }) {
  return html`<div class=${`decision v-${decision.verdict}`}>
    <p class="line-up"><strong>${word(decision.stage)}</strong> <${Badge} state=${VERDICTS[decision.verdict] ?? "unjudged"} text=${decision.verdict} />
      ${decision.confidence !== null && html`<span class="soft small">${percent(decision.confidence)} sure that the goal is reached</span><${Meter} value=${decision.confidence} label="Confidence" />`}</p>
    ${decision.reason && html`<p>${decision.reason}</p>`}
    <p class="soft small">${[decision.criteriaApplied.join(", "), decision.model, decision.latencyMs > 0 && duration(decision.latencyMs / 1000)].filter(Boolean).join(" · ")}</p>
  </div>`;
}

function Writing({ text, side, battle }) {
  return html`<div class=${`message ${side} writing`}><span class="role">${side === "assistant" ? battle.agent : battle.counterpart} is writing</span><p class="text">${text}</p></div>`;
}
