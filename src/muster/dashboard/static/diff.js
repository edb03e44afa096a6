// A diff, file by file: what each is called, how much of it changed, and its lines when it is opened.
import { html, useMemo } from "./html.js";
import { count, number } from "./format.js";

const OF_HUNK = { "+": "in", "-": "out" };
const HUNK = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/;
const OPEN_LINES = 400; // up to which all files are open from the start

/** What each line of a diff is. A hunk says how many lines it has: within them "---" is a line that was taken out. */
export function kindsOf(lines) {
  let [before, after] = [0, 0]; // lines of the hunk that are still to come
  return lines.map((line) => {
    if (before > 0 || after > 0) {
      const sign = line.charAt(0);
      before -= sign === "-" || sign === " " || sign === "" ? 1 : 0;
      after -= sign === "+" || sign === " " || sign === "" ? 1 : 0;
      return OF_HUNK[sign] ?? "";
    }
    const found = line.match(HUNK);
    if (found === null) return line.startsWith("diff ") ? "file" : "meta";
    [before, after] = [Number(found[1] ?? 1), Number(found[2] ?? 1)];
    return "hunk";
  });
}

const unquoted = (name) => name.replace(/^"(.*)"$/, "$1").replace(/\t$/, "");

/** The name of a file, from the lines before its first hunk: the new one, with the old one where it was another. */
function nameOf(head) {
  const after = (start) => head.find((line) => line.startsWith(start))?.slice(start.length);
  const [from, to] = [after("rename from "), after("rename to ")];
  if (from && to) return `${unquoted(from)} → ${unquoted(to)}`;
  const [old, made] = [after("--- "), after("+++ ")].map((name) => name && unquoted(name));
  if (made && made !== "/dev/null") return made.replace(/^b\//, "");
  if (old && old !== "/dev/null") return old.replace(/^a\//, "");
  return head[0]?.match(/ "?b\/(.+?)"?$/)?.[1] ?? "changes";
}

const NOTES = [["new file", "new"], ["deleted file", "deleted"], ["rename from", "renamed"], ["Binary files", "binary"], ["GIT binary", "binary"]];

/** The files of a diff: `{name, note, added, removed, lines: [[kind, text]]}`. */
export function filesOf(diff) {
  const lines = diff.trimEnd().split("\n");
  const kinds = kindsOf(lines);
  const starts = lines.flatMap((_, place) => (kinds[place] === "file" ? [place] : []));
  const from = starts[0] === 0 ? starts : [0, ...starts];
  return from.map((start, number) => {
    const end = from[number + 1] ?? lines.length;
    const own = kinds.slice(start, end).map((kind, place) => [kind, lines[start + place]]);
    const head = own.filter(([kind]) => kind === "file" || kind === "meta").map(([, line]) => line);
    const many = (kind) => own.filter(([one]) => one === kind).length;
    return { name: nameOf(head), note: NOTES.find(([sign]) => head.some((line) => line.startsWith(sign)))?.[1] ?? "", added: many("in"), removed: many("out"), lines: own };
  });
}

const TOLD = /^(?:diff |index |--- |\+\+\+ )/; // by the name of the file and its counts

/** The files of a diff, each of which opens; small ones are open from the start. */
export function DiffFiles({ diff }) {
  const files = useMemo(() => filesOf(diff), [diff]);
  const total = (name) => files.reduce((sum, file) => sum + file[name], 0);
  const open = files.reduce((sum, file) => sum + file.lines.length, 0) <= OPEN_LINES;
  return html`<p class="small files"><strong>${count(files.length, "file")} changed</strong> <${Counts} added=${total("added")} removed=${total("removed")} /></p>
    ${files.map((file) => html`<details key=${file.name} class="diff-file" open=${open || files.length === 1}>
      <summary><span class="mono">${file.name}</span> ${file.note && html`<span class="tag">${file.note}</span>`} <${Counts} ...${file} /></summary>
      <pre tabindex="0"><code>${file.lines.filter(([kind, line]) => !((kind === "file" || kind === "meta") && TOLD.test(line))).map(([kind, line], place) => html`<span key=${place} class=${`line d-${kind}`}>${line}</span>`)}</code></pre>
    </details>`)}`;
}

const Counts = ({ added, removed }) => html`<span class="counts"><span class="plus">+${number(added)}</span> <span class="minus">−${number(removed)}</span><span class="hidden"> lines added and removed</span></span>`;
