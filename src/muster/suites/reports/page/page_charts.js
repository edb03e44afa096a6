/** How many cases ended how, how scores are spread, and how long answers took. */
function drawCharts() {
  const place = document.getElementById("charts");
  place.append(chart("How cases ended", data.subjects.map(statusBar), legend()));
  place.append(chart("Scores", data.subjects.map(scoreBars)));
  place.append(chart("Seconds an answer took", data.subjects.map(latencyBars),
    data.subjects.length ? make("p", { class: "soft small", text: "solid line: p50, dashed line: p95" }) : null));
}

function chart(title, parts, end = null) {
  return make("div", { class: "card" }, make("h3", { text: title }), ...parts.slice(0, 8).flat(),
    parts.length > 8 ? make("p", { class: "soft small", text: `… and ${parts.length - 8} more subjects` }) : null, end);
}

const headline = (subject, words) =>
  make("div", { class: "bar-name" }, make("span", { text: data.subjects.length > 1 ? subject.label : "" }), make("span", { class: "soft", text: words }));

function statusBar(subject) {
  const total = Object.values(subject.statuses).reduce((sum, count) => sum + count, 0) || 1;
  const words = ORDER.filter((status) => subject.statuses[status]).map((status) => `${subject.statuses[status]} ${WORDS[status]}`).join(", ");
  const drawing = draw("svg", { viewBox: "0 0 300 22", role: "img", "aria-label": `${subject.label}: ${words}` });
  let left = 0;
  for (const status of [...ORDER].reverse()) {
    const width = (300 * (subject.statuses[status] || 0)) / total;
    if (width > 0) {
      const part = draw("rect", { class: `f-${status}`, x: left, y: 2, width, height: 18 });
      part.append(draw("title", { text: `${subject.statuses[status]} ${WORDS[status]}` }));
      drawing.append(part);
    }
    left += width;
  }
  return [headline(subject, `${number(total)} cases`), drawing];
}

function legend() {
  const seen = [...ORDER].reverse().filter((status) => data.counts[status]);
  return make("ul", { class: "legend" }, ...seen.map((status) =>
    make("li", {}, make("span", { class: `swatch c-${status}` }), `${WORDS[status]} ${number(data.counts[status])}`)));
}

/** Bars side by side; `ticks` are pairs of a place from 0 to 1 and a word. */
function bars(bins, ticks, words, lines = []) {
  const highest = Math.max(1, ...bins), width = 300 / bins.length;
  const drawing = draw("svg", { viewBox: "0 0 300 92", role: "img", "aria-label": words });
  bins.forEach((count, place) => {
    const height = count === 0 ? 0 : Math.max(2, (70 * count) / highest);
    const bar = draw("rect", { class: "bin", x: place * width + 1, y: 74 - height, width: width - 2, height, rx: 2 });
    bar.append(draw("title", { text: number(count) }));
    drawing.append(bar);
  });
  drawing.append(draw("line", { class: "axis", x1: 0, x2: 300, y1: 74.5, y2: 74.5 }));
  for (const [kind, place] of lines) drawing.append(draw("line", { class: kind, x1: 300 * place, x2: 300 * place, y1: 2, y2: 74 }));
  for (const [place, word] of ticks) {
    const anchor = place <= 0.02 ? "start" : place >= 0.98 ? "end" : "middle";
    drawing.append(draw("text", { x: 300 * place, y: 88, "text-anchor": anchor, text: word }));
  }
  return drawing;
}

function scoreBars(subject) {
  const scored = subject.scores.reduce((sum, count) => sum + count, 0);
  if (!scored) return [headline(subject, ""), make("p", { class: "soft small", text: "no case has a score" })];
  const ticks = [[0, "0"], [0.25, "0.25"], [0.5, "0.5"], [0.75, "0.75"], [1, "1"]];
  return [headline(subject, `${number(scored)} scored`), bars(subject.scores, ticks, `${subject.label}: scores of ${scored} cases`)];
}

function latencyBars(subject) {
  const timed = subject.latency.reduce((sum, count) => sum + count, 0);
  if (!timed) return [headline(subject, ""), make("p", { class: "soft small", text: "no answer was timed" })];
  const { least, most } = data.latency_axis, reach = Math.log(most / least);
  const place = (seconds) => Math.min(1, Math.max(0, Math.log(Math.max(seconds, least) / least) / reach));
  const ticks = data.latency_axis.ticks.map((seconds) => [place(seconds), seconds < 1 ? time(seconds) : `${seconds} s`]);
  const lines = [["line-p50", subject.p50], ["line-p95", subject.p95]].filter(([, at]) => at !== null).map(([kind, at]) => [kind, place(at)]);
  const words = `p50 ${time(subject.p50)}, p95 ${time(subject.p95)}`;
  return [headline(subject, words), bars(subject.latency, ticks, `${subject.label}: ${words}`, lines)];
}
