// The calls of a run, however many, and one of them in full: what was asked, what was answered, in which attempts.
import { callsOf } from "./early.js";
import { html, useEffect, useState } from "./html.js";
import { useGet } from "./http.js";
import { duration, elapsed, LIVE, money, number } from "./format.js";
import { Badge, Clock, Empty, Facts, Panel, Table, usd, Waiting } from "./parts.js";
import { AnsiText, Json, ModelText } from "./text.js";
import { List, usePages } from "./window.js";

const COLUMNS = [["Call", "name"], ["State", "state"], ["Agent", "agent"], ["Attempts", "number tries"], ["Took", "number took"], ["Cost", "number cost"]];
export const isOpen = (call) => call.state === "open";

/** The key of a call; where it is too long its beginning is left out, since keys differ at their ends. */
export const CallKey = ({ text }) => html`<span class="title mono key" title=${text}><bdi>${text}</bdi></span>`;

export function CallsTab({ run, live }) {
  const pages = usePages(callsOf(run.id), "calls", [run.id]);
  const [chosen, open] = useState(null);
  useEffect(() => {
    if (pages.loaded && (live.tail.length > 0 || LIVE.has(run.state))) pages.again(isOpen, (call) => call.key);
  }, [run.calls.done, run.calls.failed, run.calls.total, run.state]);
  const cells = (call) => [
    html`<${CallKey} text=${call.key} />`,
    html`<${Badge} state=${call.state} />${call.reused_from && html` <span class="tag">reused</span>`}`,
    call.agent,
    html`${number(call.attempts)}<span class="thin soft"> attempt${call.attempts === 1 ? "" : "s"}</span>`,
    duration(call.seconds),
    usd(call.cost_usd),
  ];
  const none = html`<${Empty} title="No call has been made yet"><p class="soft">Each request to an agent will stand here as soon as it begins.</p><//>`;
  return html`<section class="card" aria-label="Calls">
    <${List} pages=${pages} what="calls" none=${none} label="Calls" kind="call-rows" columns=${COLUMNS} cells=${cells} heights=${[40, 76]} total=${run.calls.total}
      keyOf=${(call) => call.key} onOpen=${(call) => open(call.key)} />
    ${chosen !== null && html`<${CallPanel} run=${run.id} callKey=${chosen} onClose=${() => open(null)} />`}
  </section>`;
}

export function CallPanel({ run, callKey, onClose }) {
  const { data, error } = useGet(`/api/runs/${run}/call?key=${encodeURIComponent(callKey)}`);
  return html`<${Panel} title=${callKey} onClose=${onClose}>
    <${Waiting} data=${data} error=${error} what="the call" />
    ${data && html`<${CallFacts} call=${data} />
      ${!data.withheld_for && data.reply?.thinking_tokens > 0 && html`<${Thinking} run=${run} callKey=${callKey} />`}
      ${data.withheld_for ? html`<p class="soft">What was asked and answered is shown when the council has ended: ${data.withheld_for.join(" and ")} must not read here who wrote what.</p>` : html`<${Conversation} call=${data} run=${run}><h3>Conversation</h3><//>`}
      <${Attempts} call=${data} />`}
  <//>`;
}

/** What the model says that it thought, when somebody wants to read it. */
function Thinking({ run, callKey }) {
  const [wanted, want] = useState(false);
  const { data, error } = useGet(wanted ? `/api/runs/${run}/call?key=${encodeURIComponent(callKey)}&thinking=true` : null);
  if (!wanted) return html`<p><button type="button" class="plain small" onClick=${() => want(true)}>Show thinking</button></p>`;
  return html`<h3>Thinking</h3><${Waiting} data=${data} error=${error} what="the thinking" />
    ${data && (data.reply.thinking ? html`<section class="card padded"><${ModelText} text=${data.reply.thinking} /></section>` : html`<p class="soft">The provider says how much it thought, and not what.</p>`)}`;
}

function CallFacts({ call }) {
  const { reply } = call;
  return html`<${Facts} items=${[
    ["State", html`<${Badge} state=${call.state} />`],
    ["Agent", call.agent],
    reply?.model && reply.model !== call.agent && ["Model", reply.model],
    ["On the wire", duration(call.seconds)],
    call.waited_seconds > 0.001 && ["Waited", duration(call.waited_seconds)],
    ["Cost", money(call.cost_usd)],
    reply && ["Tokens", `${number(reply.tokens.input)} in, ${number(reply.tokens.output)} out`],
    reply?.thinking_tokens > 0 && ["Thinking", `${number(reply.thinking_tokens)} of the tokens out`],
    reply?.service_tier && reply.service_tier !== "default" && ["Tier of service", reply.service_tier],
    reply && call.quality !== "good" && ["Quality", html`<${Badge} state="failed" text=${call.quality} />`],
    call.reused_from && ["Reused from", html`<a href=${`#/runs/${call.reused_from}`}>${call.reused_from}</a>`],
  ]} />`;
}

const textOf = (request) => (typeof request === "string" ? request : request?.prompt ?? null);

/** What was asked, with all that was said before. */
export function Asked({ call: { request }, run }) {
  const asked = request?.messages ?? (textOf(request) === null ? [] : [{ role: "user", text: textOf(request) }]);
  return html`${request?.system && html`<${Message} role="system" text=${request.system} />`}
    ${asked.map((one, place) => html`<${Message} key=${place} role=${one.role} text=${one.text ?? ""} tools=${one.tool_calls}>
      ${shownIn(one).map((file) => html`<${Shown} key=${file.digest} run=${run} file=${file} />`)}<//>`)}`;
}

const shownIn = (message) => (Array.isArray(message.content) ? message.content.filter((part) => part?.digest) : []);
const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/** An image that was shown, once somebody wants to see it; a document by its name. */
function Shown({ run, file }) {
  const [open, show] = useState(false);
  const label = file.name || `${file.kind} ${file.digest.slice(0, 12)}`;
  if (!run || !PICTURES.includes(file.type)) return html`<p class="soft small">(${label})</p>`;
  return open ? html`<${Picture} run=${run} file=${file} label=${label} />` : html`<button type="button" class="plain small" onClick=${() => show(true)}>Show ${label}</button>`;
}

function Picture({ run, file, label }) {
  const { data, error } = useGet(`/api/runs/${run}/media/${file.digest}`);
  if (error) return html`<p class="soft small">${error.message}</p>`;
  return data ? html`<img class="shown" src=${`data:${file.type};base64,${data.data}`} alt=${label} />` : html`<p class="soft small">Loading ${label} …</p>`;
}

/** What was asked and what was answered. */
export function Conversation({ call, run, children }) {
  const { reply } = call;
  return html`${children}<div class="talk">
    <${Asked} call=${call} run=${run} />
    ${reply && html`<${Message} role="assistant" text=${reply.text} tools=${reply.tool_calls} />`}
    ${call.error && html`<div class="message failure"><span class="role">error</span><p>${call.error.message ?? JSON.stringify(call.error)}</p></div>`}
    ${!reply && !call.error && html`<p class="soft" role="status">No answer yet.</p>`}
  </div>
  ${reply?.data !== null && reply?.data !== undefined && html`<h3>Data</h3><${Json} value=${reply.data} />`}
  ${reply?.log && html`<h3>What the program wrote</h3><div class="box"><${AnsiText} text=${reply.log} /></div>`}`;
}

export function Message({ role, text, tools = [], name, children }) {
  return html`<div class=${`message ${role}`}><span class="role">${name ?? role}</span>
    ${text !== "" && html`<${ModelText} text=${text} />`}
    ${(tools ?? []).map((tool, place) => html`<div class="tool" key=${place}><code>${tool.name}</code><${Json} value=${tool.arguments} />
      ${tool.result !== null && tool.result !== undefined && html`<p class="soft small">${tool.failed ? "failed with" : "returned"}</p><${AnsiText} text=${typeof tool.result === "string" ? tool.result : JSON.stringify(tool.result, null, 2)} />`}</div>`)}
    ${children}
  </div>`;
}

const ATTEMPT_COLUMNS = [["No."], ["Ended as"], ["Began"], ["Took", "number"], ["Reserved", "number"], ["Cost", "number"]];

function Attempts({ call }) {
  return html`<h3>Attempts</h3><${Table} label="Attempts" columns=${ATTEMPT_COLUMNS} rows=${call.attempt_list.map((one) => [
    one.n, html`<${Badge} state=${one.state} />${one.error && html`<div class="soft small">${one.error.message}</div>`}`, html`<${Clock} at=${one.started_at} />`,
    duration(one.ended_at ? elapsed(one.started_at, one.ended_at) : null), usd(one.reserved_usd), usd(one.cost_usd),
  ])} />`;
}
