/** One case with everything that was said in it and about it. */
const panel = document.getElementById("panel");
let current = 0, epochShown = 0;
const LONG = 4000;

function openCase(place) {
  current = place;
  const row = shown[place];
  epochShown = Math.max(0, row.epochs.findIndex((epoch) => epoch.status !== "passed")); // the first that is worth a look
  drawPanel();
  if (!panel.open) panel.showModal();
  panel.scrollTop = 0;
  document.getElementById("panel-title").focus(); // what had the focus before was drawn anew
}

function drawPanel() {
  const row = shown[current], epoch = row.epochs[epochShown];
  panel.replaceChildren(panelHead(row), make("div", { class: "panel-body" }, ...(epoch ? epochParts(row, epoch) : [about(row)])));
}

function panelHead(row) {
  const step = (by, text) => make("button", { type: "button", class: "plain", text, disabled: !shown[current + by], click: () => openCase(current + by) });
  const place = [row.suite, row.file && `${row.file}:${row.line}`, row.subject].filter(Boolean).join(" · ");
  const epochs = row.epochs.length < 2 ? [] : row.epochs.map((epoch, n) => make("button", {
    type: "button", class: `chip c-${epoch.status}`, "aria-pressed": String(n === epochShown), text: `epoch ${epoch.epoch}: ${WORDS[epoch.status]}`,
    click: () => { epochShown = n; drawPanel(); panel.querySelector(".chip[aria-pressed=true]").focus(); } }));
  return make("div", { class: "panel-head" },
    make("div", { class: "panel-row" }, badge(row.status), make("span", { class: "push" }), step(-1, "‹ Previous"), step(1, "Next ›"),
      make("button", { type: "button", class: "plain", id: "close", text: "Close", click: () => panel.close() })),
    make("h2", { id: "panel-title", class: "panel-title", tabindex: "-1", text: row.case }),
    make("div", { class: "soft small", text: place }),
    epochs.length ? make("div", { class: "chips" }, ...epochs) : null);
}

function about(row) {
  return make("div", {}, row.description ? make("p", { text: row.description }) : null, ...tags(row.tags),
    row.why ? make("div", { class: "box bad" }, make("p", { id: "why", text: row.why })) : null);
}

function epochParts(row, epoch) {
  const parts = [row.description ? make("p", { text: row.description }) : null, make("div", { class: "tags" }, ...tags(row.tags))];
  const why = epoch.why || row.why;
  if (why) parts.push(make("div", { class: "box bad" }, make("p", { id: "why", text: why })));
  parts.push(figures(row, epoch));
  if (epoch.checks.length) parts.push(make("h3", { text: "Checks" }), ...epoch.checks.map(checkBox));
  if (epoch.items.length) parts.push(make("h3", { text: "Rubric" }), ...epoch.items.map((item) => itemBox(item, row)));
  if (epoch.judges.length) parts.push(make("h3", { text: "Judged by" }), ...epoch.judges.map(judgeBox));
  parts.push(make("h3", { text: "Conversation" }), conversation(epoch));
  return parts;
}

function figures(row, epoch) {
  const facts = [["Score", epoch.score === null ? "none" : `${score(epoch.score)} (needs ${score(row.threshold)})`], ["Time", time(epoch.seconds)],
    ["Cost", money(epoch.cost)], ["Judge", epoch.judge_cost ? money(epoch.judge_cost) : null],
    ["Tokens", `${number(epoch.tokens[0])} in, ${number(epoch.tokens[1])} out`], ["Model", epoch.model], ["Likeness", epoch.golden === null ? null : score(epoch.golden)],
    ["Answer is", epoch.quality === "good" ? null : epoch.quality]];
  return make("dl", { class: "facts" }, ...facts.filter(([, value]) => value).map(([label, value]) =>
    make("div", {}, make("dt", { text: label }), make("dd", { text: value }))));
}

function checkBox(check) {
  const word = check.broken ? "could not be done" : check.passed ? "holds" : "does not hold";
  return make("div", { class: `box ${check.broken ? "open-end" : check.passed ? "fine" : "bad"}` },
    make("div", { class: "between" }, make("strong", { text: check.name }), make("span", { class: "soft small", text: word })),
    check.expected ? make("p", { class: "small", text: `looks for: ${check.expected}` }) : null,
    check.why ? make("p", { class: "small", text: check.why }) : null);
}

function itemBox(item, row) {
  const unjudged = item.score === null;
  const kind = unjudged ? "open-end" : item.score >= row.threshold ? "fine" : "bad";
  const value = unjudged ? "nobody judged it" : score(item.score);
  const samples = item.samples.length > 1 ? ` · samples ${item.samples.map(score).join(", ")}` : "";
  const doubt = item.quoted === false ? make("p", { class: "small", text: "This quotation does not stand in the answer." }) : null;
  return make("div", { class: `box ${kind}` },
    make("div", { class: "between" }, make("strong", { text: item.id }), make("span", {},
      unjudged ? null : make("meter", { min: 0, max: 1, low: row.threshold, high: row.threshold, optimum: 1, value: item.score, "aria-label": `score of ${item.id}` }), ` ${value}`)),
    make("div", { class: "soft small", text: [`weight ${item.weight}`, item.critical ? "critical" : "", item.by].filter(Boolean).join(" · ") + samples }),
    item.description ? make("p", { class: "small soft", text: item.description }) : null,
    item.rationale ? make("p", { class: "small", text: item.rationale }) : null,
    item.evidence ? make("p", { class: "small quote", text: item.evidence }) : null, doubt);
}

function judgeBox(judge) {
  const agreement = judge.agreement === null ? "" : `${judge.members ? "members" : "samples"} agree ${percent(judge.agreement)}`;
  return make("div", { class: judge.failures.length ? "box open-end" : "box" },
    make("strong", { text: judge.by }), " ", make("span", { class: "soft small", text: [judge.model, judge.version, agreement].filter(Boolean).join(" · ") }),
    ...[...(judge.members || []), ...judge.failures.map((text) => `no judgement: ${text}`)].map((text) => make("p", { class: "small", text })));
}

function conversation(epoch) {
  if (!epoch.talk) return make("p", { class: "soft", text: "This conversation is not in this file: see the note above the cases." });
  if (!epoch.talk.length) return make("p", { class: "soft", text: "Nothing was said." });
  const quotes = epoch.items.filter((item) => item.evidence && item.quoted !== false).map((item) => item.evidence);
  const last = epoch.talk.reduce((found, message, place) => (message.role === "assistant" ? place : found), -1);
  return make("div", { class: "talk" }, ...epoch.talk.map((message, place) => messageBox(message, place === last ? quotes : [])));
}

function messageBox(message, quotes) {
  const text = make("div", { class: message.text.length > LONG ? "text long" : "text", tabindex: message.text.length > LONG ? "0" : null });
  text.append(...highlighted(message.text, quotes));
  return make("div", { class: `message ${message.role}` }, make("div", { class: "role", text: message.role === "failure" ? "failed" : message.role }),
    ...(message.files || []).map(([digest, label]) => (data.files?.[digest] ? make("img", { class: "shown", src: data.files[digest], alt: label }) : make("p", { class: "soft small", text: `(${label})` }))), message.text ? text : null, ...(message.calls || []).map(callBox));
}

function callBox(call) {
  return make("div", { class: "call" }, make("div", {}, make("span", { class: "soft small", text: "tool call " }), make("code", { class: "name", text: call.name })),
    make("pre", { text: call.arguments }),
    call.result === null ? null : make("div", { class: "soft small", text: call.failed ? "failed with" : "gave" }),
    call.result === null ? null : make("pre", { text: call.result }));
}

/** The text in pieces, with what was quoted from it marked. */
function highlighted(text, quotes) {
  const places = quotes.map((quote) => [text.indexOf(quote), quote.length]).filter(([at, length]) => at >= 0 && length > 0);
  const pieces = [];
  let end = 0;
  for (const [at, length] of places.sort((one, other) => one[0] - other[0])) {
    if (at + length <= end) continue;
    const from = Math.max(at, end);
    pieces.push(text.slice(end, from), make("mark", { text: text.slice(from, at + length) }));
    end = at + length;
  }
  pieces.push(text.slice(end));
  return pieces;
}

panel.addEventListener("click", (event) => { if (event.target === panel) panel.close(); });
panel.addEventListener("keydown", (event) => {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (by && shown[current + by]) openCase(current + by);
});

drawTop();
drawSubjects();
drawCharts();
drawCases();
