/** The verdict, the facts of the run, and what must be known besides. */
function drawTop() {
  const title = data.run.name || `Run ${data.run.id}`;
  document.title = `${data.ok ? "✓" : data.pending ? "…" : "✗"} ${title} – suite report`;
  const facts = make("dl", { class: "facts" });
  for (const [label, value] of data.run.facts) {
    facts.append(make("div", {}, make("dt", { text: label }), make("dd", { text: value })));
  }
  document.getElementById("top").append(
    make("div", { class: `card verdict ${data.ok ? "ok" : data.pending ? "pending" : ""}` },
      make("div", { class: "word", text: data.ok ? "passed" : data.pending ? "waiting" : "did not pass" }),
      make("h1", { text: title }), make("p", { id: "verdict", text: data.verdict }), facts),
  );
  if (data.warnings.length) {
    const section = document.getElementById("warnings");
    section.hidden = false;
    section.append(make("ul", { class: "card" }, ...data.warnings.map((text) => make("li", { text }))));
  }
  document.getElementById("bottom").textContent = data.footer;
}

/** A share between 0 and 1 with its interval, as a small drawing. */
function interval(share, low, high, words) {
  const width = 150, at = (value) => 6 + value * (width - 12);
  const drawing = draw("svg", { class: "interval", width, height: 16, viewBox: `0 0 ${width} 16`, role: "img", "aria-label": words });
  drawing.append(draw("line", { class: "axis", x1: at(0), x2: at(1), y1: 8, y2: 8 }));
  for (const tick of [0, 0.5, 1]) drawing.append(draw("line", { class: "axis", x1: at(tick), x2: at(tick), y1: 4, y2: 12 }));
  if (low !== null) drawing.append(draw("line", { class: "whisker", x1: at(low), x2: at(high), y1: 8, y2: 8 }));
  if (share !== null) drawing.append(draw("circle", { class: "dot", cx: at(share), cy: 8, r: 4.5 }));
  return drawing;
}

function drawSubjects() {
  const heads = [["", "place"], ["Subject", ""], ["Passed", ""], ["Interval", "wide"], ["Score", "number"], ["p50", "number wide"],
    ["p95", "number wide"], ...(data.thinks ? [["Thinking", "number wide"]] : []), ["Per case", "number wide"], ["Cost", "number"]];
  if (data.subjects.length < 2) heads.shift();
  const head = make("tr", {}, ...heads.map(([text, kind]) => make("th", { class: kind, scope: "col", text })));
  const body = make("tbody");
  for (const subject of data.subjects) body.append(subjectRow(subject));
  document.getElementById("subjects").append(
    make("div", { class: "card scroll" }, make("table", {}, make("thead", {}, head), body)),
    ...data.subjects.filter((subject) => subject.steadiness).map((subject) => make("p", { class: "soft small", text: `${subject.label}: ${subject.steadiness}` })),
    data.subjects.every((subject) => subject.told_apart) ? "" : make("p", { class: "soft small", text: "intervals overlap: with that of the subject above, so the order may be chance; see muster compare RUN:A RUN:B" }),
  );
}

function subjectRow(subject) {
  const range = subject.low === null ? "" : `${percent(subject.low)} to ${percent(subject.high)}`;
  const words = `${percent(subject.rate, 1)} passed, interval ${range}`;
  const spread = subject.score_low === null ? "" : `${score(subject.score_low)}–${score(subject.score_high)}`;
  const cells = [
    make("td", {}, make("div", { class: "name", text: subject.label }), make("div", { class: "soft small", text: subject.model === subject.label ? "" : subject.model }),
      make("div", { class: "soft small", text: subject.rank === null || subject.told_apart ? "" : "intervals overlap" })),
    make("td", {}, make("div", { class: "name whole", text: percent(subject.rate, 1) }),
      make("div", { class: "soft small", text: `${number(subject.passed)} of ${number(subject.cases)}` }),
      make("div", { class: "soft small thin", text: range })),
    make("td", { class: "wide" }, interval(subject.rate, subject.low, subject.high, words), make("div", { class: "soft small", text: range })),
    make("td", { class: "number" }, make("div", { text: score(subject.score) }), make("div", { class: "soft small", text: spread })),
    make("td", { class: "number wide", text: time(subject.p50) }), make("td", { class: "number wide", text: time(subject.p95) }), ...(data.thinks ? [make("td", { class: "number wide", text: number(subject.thinking) })] : []),
    make("td", { class: "number wide", text: money(subject.cost_per_case) }), make("td", { class: "number", text: money(subject.cost) }),
  ];
  if (data.subjects.length > 1) cells.unshift(make("td", { class: "soft number place", text: `${subject.rank}.` }));
  return make("tr", {}, ...cells);
}
