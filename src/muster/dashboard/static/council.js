// A council as it argues: proposals and how the others weighed them, round by round; what it came to, and who dissents.
import { html, into, useChange, useState } from "./html.js";
import { post, useGet } from "./http.js";
import { count, LIVE, percent, word } from "./format.js";
import { Action, Badge, Choice, Empty, Facts, Failure, sentence, Table, Verdict, Waiting } from "./parts.js";
import { ModelText } from "./text.js";

const TONES = 8; // colours of members
const signed = (value, places = 2) => `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(value).toFixed(places)}`;

export function CouncilTab({ run, live, children }) {
  const { data: council, error, reload } = useGet(`/api/councils/${run.id}/trace`);
  const [chosen, choose] = useState(null);
  useChange([live.last, run.state, run.questions?.length], reload);
  if (!council) return html`<${Waiting} error=${error} what="the council" />`;
  const going = LIVE.has(run.state);
  const rounds = roundsOf(council);
  const shown = rounds.find((one) => one.number === chosen) ?? rounds.at(-1);
  const toneOf = (agent) => `m${council.members.findIndex((one) => one.name === agent) % TONES}`;
  return html`<${Outcome} ...${{ council, run, going, toneOf }} />
    ${children}
    ${going && html`<${Interventions} run=${run} />`}
    <${Answer} council=${council} going=${going} />
    <${Objections} council=${council} />
    ${council.rounds.length > 0 && html`<h2>Support over the rounds</h2><${SupportChart} council=${council} toneOf=${toneOf} />`}
    ${council.withheld_for.length > 0 ? html`<section class="card"><${Empty} title="What members say is not shown yet"><p class="soft">Candidates are anonymous, so ${council.withheld_for.join(" and ")} must not read here who wrote what. Everything is shown when the council has ended.</p><//></section>`
      : shown ? html`<div class="between"><h2>Round ${shown.number} of at most ${council.max_rounds}</h2>
        ${rounds.length > 1 && html`<${Choice} label="Round" value=${shown.number} onChange=${choose} options=${rounds.map((one) => [one.number, `Round ${one.number}`])} />`}</div>
        <${Round} key=${shown.number} round=${shown} ...${{ council, going, toneOf }} />`
      : html`<section class="card"><${Empty} title="Nobody has proposed anything yet"><p class="soft">Proposals and evaluations are shown as soon as they come.</p><//></section>`}`;
}

/** The rounds that are complete, and the one that is being held or was not completed. */
function roundsOf({ rounds, open_round: phases }) {
  if (phases.length === 0) return rounds;
  const all = (name) => phases.flatMap((phase) => phase[name]);
  return [...rounds, { number: phases[0].round, phases, standings: [], matrix: [], proposals: all("proposals"), critiques: all("critiques"), abstentions: all("abstentions") }];
}

function Outcome({ council, run, going, toneOf }) {
  const { winner } = council;
  return html`<${Verdict} label="Outcome" kind=${going ? "pending" : winner ? "ok" : ""} name=${going ? word(run.state) : winner ? "decided" : "not decided"} text=${sentence(council.verdict, council.members.map((one) => one.name))}>
    <div class="asked" tabindex="0" role="region" aria-label="Question of the council"><${ModelText} text=${council.question} /></div>
    <p>${council.members.map((one) => html`<span class=${`member ${toneOf(one.name)}`} title=${one.persona}>${one.name} <span class="soft small">${one.role}</span></span> `)}</p>
    ${winner && html`<${Facts} items=${[[going ? "Ahead" : "Won by", winner.agent]]} />`}
  <//>`;
}

/** What a person can say to a council that is held: something for all members, or that it is enough. */
function Interventions({ run }) {
  const [text, type] = useState("");
  const [failure, tell] = useState(null);
  const [done, note] = useState("");
  const send = async () => {
    await post(`/api/councils/${run.id}/inject`, { text });
    type("");
    note("Sent. Members are told when the next phase begins.");
  };
  const stop = async () => {
    await post(`/api/councils/${run.id}/stop`);
    note("It stops when those who are at work have answered.");
  };
  return html`<section class="card padded say" aria-label="Intervene">
    <label for="inject">Tell all members something</label>
    <textarea id="inject" rows="2" value=${text} onInput=${into(type)}></textarea>
    ${failure && html`<${Failure} error=${failure} />`}
    <div class="actions line-up"><${Action} label="Tell all members" act=${send} onError=${tell} disabled=${text.trim() === ""} />
      <${Action} label="Stop with the best proposal" confirm="Really stop?" kind="danger" act=${stop} onError=${tell} />
      <span class="soft small" role="status">${done}</span></div>
  </section>`;
}

function Answer({ council, going }) {
  const { synthesis, winner } = council;
  if (!winner) return null;
  const made = synthesis?.text;
  return html`<h2>${made ? `Answer, written by ${synthesis.agent}` : `${going ? "Ahead so far" : "Answer"}: the proposal of ${winner.agent}`}</h2>
    <section class="card padded" aria-label="Answer">
      ${synthesis?.flaw && html`<div class="notice warn">No answer was written: ${synthesis.flaw}</div>`}
      ${synthesis?.lost.length > 0 && html`<div class="notice warn">It leaves out the objections of ${synthesis.lost.join(", ")}.</div>`}
      <${ModelText} text=${made || winner.text} />
    </section>`;
}

function Objections({ council }) {
  return html`${council.dissent.length > 0 && html`<h2>Dissent</h2>`}
    ${council.dissent.map((one) => html`<div class="box bad"><p><strong>${one.agent}</strong> gave the winner ${signed(one.weight, 0)} and ${one.preferred ? `prefers the proposal of ${one.preferred}` : "is against every proposal"}.</p><${ModelText} text=${one.critique} /></div>`)}
    ${council.contested.length > 0 && html`<h2>Contested claims</h2>`}
    ${byClaim(council.contested).map((one) => html`<div class="box open-end"><p><strong>${one.agents.join(", ")}</strong>: ${one.claim}</p>
      ${one.said.map((each) => html`<p class="small"><${Badge} state=${each.stance === "verified" ? "passed" : "failed"} text=${each.stance} /> ${each.evaluator}: ${each.reason}</p>`)}</div>`)}`;
}

/** Claims with all who make them, since several members may rest on the same. */
function byClaim(contested) {
  const found = new Map(contested.map(({ claim }) => [claim, { claim, agents: [], said: [] }]));
  for (const { claim, agent, said } of contested) {
    const one = found.get(claim);
    one.agents.push(agent);
    one.said.push(...said.filter((each) => !one.said.some((known) => known.evaluator === each.evaluator && known.reason === each.reason)));
  }
  return [...found.values()];
}

/** The support of each member's proposals in each round, as lines; the legend has the last figure. */
function SupportChart({ council, toneOf }) {
  const { rounds, members } = council;
  const series = members.map(({ name }) => [name, rounds.map((round) => round.standings.find((one) => one.agent === name)?.support ?? null)]);
  const known = series.flatMap(([, values]) => values.filter((value) => value !== null));
  const [low, high] = [Math.min(0, ...known), Math.max(0.1, ...known)];
  const x = (place) => (rounds.length === 1 ? 317 : 50 + (530 * place) / (rounds.length - 1));
  const y = (value) => 12 + (116 * (high - value)) / (high - low);
  const path = (values) => values.map((value, place) => (value === null ? "" : `${(values[place - 1] ?? null) === null ? "M" : "L"}${x(place)} ${y(value)}`)).join("");
  const figure = (value) => (value === null ? "no proposal" : signed(value));
  const told = series.map(([name, values]) => `${name} ${values.map(figure).join(", then ")}`).join("; ");
  return html`<div class="card padded"><svg class="support" viewBox="0 0 600 136" role="img" aria-label=${told}>
      ${[...new Set([high, 0, low])].map((value) => html`<line class="axis" x1="34" x2="600" y1=${y(value)} y2=${y(value)} /><text x="28" y=${y(value) + 4} text-anchor="end">${value === 0 ? "0" : signed(value)}</text>`)}
      <text class="axis-name" transform=${`rotate(-90 8 68)`} x="8" y="68" text-anchor="middle">support</text>
      ${series.map(([name, values]) => html`<g class=${toneOf(name)}><path d=${path(values)} />
        ${values.map((value, place) => value !== null && html`<circle cx=${x(place)} cy=${y(value)} r="5"><title>${name}: ${signed(value)}</title></circle>`)}</g>`)}
    </svg>
    <div class="support-rounds soft small">${rounds.map((round) => html`<span>round ${round.number}</span>`)}</div>
    <ul class="legend">${series.map(([name, values]) => html`<li><span class=${`swatch ${toneOf(name)}`}></span>${name} ${figure(values.at(-1))}</li>`)}</ul></div>`;
}

function Round({ round, council, going, toneOf }) {
  const order = (round.standings.length > 0 ? round.standings : round.proposals).map((one) => one.agent);
  return html`${council.injections.filter((one) => one.round === round.number).map((one) => html`<div class="notice warn"><p class="soft small">told to all members before ${one.phase}</p><${ModelText} text=${one.text} /></div>`)}
    ${round.phases && !going && html`<div class="notice warn">This round was not completed and does not count.</div>`}
    ${round.critiques.length > 0 && html`<${Matrix} ...${{ round, council, order, toneOf }} />`}
    <div class="talk" role="log" aria-label="Turns">
      ${order.map((agent) => html`<${Proposal} key=${agent} agent=${agent} round=${round} tone=${toneOf(agent)} />`)}
      ${round.abstentions.map((one) => html`<p class="soft"><strong>${one.agent}</strong> had no part in ${one.phase}: ${word(one.cause)}${one.reason && ` (${one.reason})`}</p>`)}
      ${round.phases && going && html`<p class="soft waiting" role="status">${awaited(round.phases.at(-1), council.members)}</p>`}
    </div>`;
}

/** Who has not said anything in the phase that is held. */
function awaited(last, members) {
  const begins = last.over && last.phase === "propose"; // nobody has evaluated anything yet
  const heard = begins ? [] : [...last.proposals, ...last.abstentions].map((one) => one.agent).concat(last.critiques.map((one) => one.evaluator));
  const left = members.filter((one) => !heard.includes(one.name)).map((one) => one.name);
  return left.length > 0 ? `Asked to ${begins ? "evaluate" : last.phase}: ${left.join(", ")} …` : "All have answered …";
}

/** Who gave how much to whose proposal; the stronger its colour, the larger a share of all that its evaluator gave. */
function Matrix({ round, council, order, toneOf }) {
  const at = (list, evaluator, target) => list.find((one) => one.evaluator === evaluator && one.target === target);
  const cell = (evaluator, target) => {
    const said = at(round.critiques, evaluator, target);
    const moved = at(round.matrix, evaluator, target);
    if (evaluator === target || !said) return html`<span class="soft">${evaluator === target ? "own" : "–"}</span>`;
    if (said.weight === null) return html`<span class="soft">abstains</span>`;
    const title = moved ? `${percent(Math.abs(moved.share))} of what ${evaluator} gave; adds ${signed(moved.value)}` : "does not count, or not yet";
    return html`<span class=${`weighed ${said.weight < 0 ? "against" : ""}`} style=${{ "--share": Math.abs(moved?.share ?? 0) }} title=${title}>${signed(said.weight, 0)}</span>`;
  };
  const sums = round.standings.map((one) => html`<strong>${signed(one.support)}</strong>`);
  return html`<${Table} label="Score matrix" columns=${[["Gave to the proposal of"], ...order.map((name) => [html`<span class=${`member ${toneOf(name)}`}>${name}</span>`, "number"])]}
    rows=${[...council.members.map(({ name }) => [name, ...order.map((target) => cell(name, target))]), ...(sums.length > 0 ? [["Support", ...sums]] : [])]} />`;
}

function Proposal({ agent, round, tone }) {
  const proposal = round.proposals.find((one) => one.agent === agent);
  const standing = round.standings.find((one) => one.agent === agent);
  return html`<article class=${`message proposal ${tone}`}>
    <p class="line-up"><strong>${agent}</strong>${round.winner === agent && html`<${Badge} state="passed" text=${round.tied.length > 1 ? "won the tie" : "won the round"} />`}
      ${standing && html`<span class="soft small">support ${signed(standing.support)}, ${standing.in_favour} for and ${standing.against} against it</span>`}</p>
    <${ModelText} text=${proposal.text} />
    ${proposal.claims.length > 0 && html`<details><summary class="small">${count(proposal.claims.length, "claim")}</summary><ul>${proposal.claims.map((one) => html`<li>${one}</li>`)}</ul></details>`}
    ${round.critiques.filter((one) => one.target === agent && one.critique).map((one) => html`<div class="critique" key=${one.evaluator}><span class="role">${one.evaluator} ${one.weight === null ? "abstains" : signed(one.weight, 0)}</span><${ModelText} text=${one.critique} /></div>`)}
  </article>`;
}
