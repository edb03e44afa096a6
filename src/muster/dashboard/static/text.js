// Texts of strangers. They stay text; Markdown is made from it only by way of a sanitiser, ANSI sequences become colours.
import { Boundary, html, unstacked, useEffect, useMemo, useState } from "./html.js";

const SAFE_LINK = /^(https?:|mailto:)/i;
const ALLOWED = {
  ALLOWED_TAGS: ["p", "br", "strong", "em", "del", "code", "pre", "ul", "ol", "li", "blockquote", "a", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "table", "thead", "tbody", "tr", "th", "td"],
  ALLOWED_ATTR: ["href", "target", "rel", "start"],
};
const IS_MARKED = /<(?!\/?p>|br>)/; // there is more than paragraphs, so it was written otherwise
const MOST = 60_000; // characters that are laid out at once
const DEEPEST = 12; // quotations and lists inside one another
const DEEP_LINE = new RegExp(`^(?:[ \\t]*(?:>|[-+*](?=[ \\t])|\\d{1,9}[.)](?=[ \\t]))){${DEEPEST + 1}}`, "m");
const NESTING = /<(\/?)(?:blockquote|ul|ol)\b/g;
const escaped = (text) => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

// Markup in the text is shown as it is written; pictures are not fetched; links go to the web or stay text.
const RENDERER = {
  html: ({ raw }) => escaped(raw),
  image: ({ raw }) => escaped(raw),
  link({ href, raw, tokens }) {
    if (!SAFE_LINK.test(href)) return escaped(raw);
    return `<a href="${escaped(href)}" target="_blank" rel="noopener noreferrer nofollow">${this.parser.parseInline(tokens)}</a>`;
  },
  checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
};

let toHtml = null; // from Markdown to HTML that is safe, once it is loaded
let loading = null;

/** Load the reader of Markdown and the sanitiser: lists of calls do without. */
function loadMarkdown() {
  loading ??= Promise.all([import("./lib/marked.mjs"), import("./lib/purify.min.js")]).then(([{ Marked }]) => {
    const markdown = new Marked({ gfm: true, breaks: true, renderer: RENDERER });
    toHtml = (text) => laidOut(markdown, text);
  });
  return loading;
}

/** Markdown as HTML that is safe; null for what is nested more deeply than can be read, or laid out. */
function laidOut(markdown, text) {
  if (DEEP_LINE.test(text)) return null;
  try {
    const made = markdown.parse(text);
    return depthOf(made) > DEEPEST ? null : globalThis.DOMPurify.sanitize(made, ALLOWED);
  } catch (error) {
    if (error instanceof RangeError) return null; // the reader calls itself for each level
    throw error;
  }
}

function depthOf(made) {
  let [depth, deepest] = [0, 0];
  for (const [, closes] of made.matchAll(NESTING)) {
    depth += closes ? -1 : 1;
    deepest = Math.max(deepest, depth);
  }
  return deepest;
}

/** A text of a model: Markdown, and with one press as it was written. */
export const ModelText = ({ text }) => html`<${Boundary} what="This text"><${MarkedText} text=${text} /><//>`;

function MarkedText({ text }) {
  const [ready, loaded] = useState(toHtml !== null);
  const [raw, tell] = useState(false);
  const [whole, all] = useState(false);
  useEffect(() => {
    if (!ready) loadMarkdown().then(() => loaded(true), () => {});
  }, []);
  const shown = whole ? text : text.slice(0, MOST);
  const made = useMemo(() => (raw || !ready ? null : toHtml(unstacked(withoutAnsi(shown)))), [raw, ready, shown]);
  return html`<div class="said">
    ${made === null ? html`<${AnsiText} text=${shown} />` : html`<div class="markdown" dangerouslySetInnerHTML=${{ __html: made }}></div>`}
    ${shown.length < text.length && html`<button type="button" class="plain small" onClick=${() => all(true)}>Show all ${text.length.toLocaleString("en")} characters</button>`}
    ${(raw || (made !== null && IS_MARKED.test(made))) && html`<button type="button" class="switch" aria-pressed=${String(raw)} onClick=${() => tell(!raw)}>as written</button>`}
  </div>`;
}

const SEQUENCE = /(?:\x1b\[|\x9b)([0-9;:]*)m/g;
const OTHER = /(?:\x1b\[|\x9b)[0-9;:?<=>!]*[ -/]*[@-ln-~]|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)|\x1b(?:[ -/]+[0-~]|[0-Z\\^-~])/g;
const withoutAnsi = (text) => text.replace(OTHER, "").replace(SEQUENCE, "");
const COLORS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/** Cut a text at its ANSI sequences: pieces with the classes that they had; what is no colour is left out. */
export function ansiPieces(text) {
  const pieces = [];
  let style = { color: null, bold: false };
  let from = 0;
  const clean = text.replace(OTHER, "");
  const push = (to) => to > from && pieces.push([clean.slice(from, to), [style.color && `ansi-${style.color}`, style.bold && "ansi-bold"].filter(Boolean).join(" ")]);
  for (const found of clean.matchAll(SEQUENCE)) {
    push(found.index);
    from = found.index + found[0].length;
    style = plainCodes(found[1] || "0").reduce(styled, style);
  }
  push(clean.length);
  return pieces;
}

/** The codes of a sequence without colours of a larger palette, whose numbers mean something else. */
function plainCodes(text) {
  return text.replace(/(?:^|;)[34]8(?:[;:]5[;:]\d*|[;:]2(?:[;:]\d*){3,4})/g, "").split(/[;:]/).filter(Boolean).map(Number);
}

function styled(style, code) {
  if (code === 0) return { color: null, bold: false };
  if (code === 1) return { ...style, bold: true };
  if (code === 22) return { ...style, bold: false };
  if (code === 39) return { ...style, color: null };
  if (code >= 30 && code <= 37) return { ...style, color: COLORS[code - 30] };
  return code >= 90 && code <= 97 ? { ...style, color: COLORS[code - 90] } : style;
}

/** A text as it is, with the colours that its ANSI sequences mean. */
export function AnsiText({ text }) {
  const pieces = useMemo(() => ansiPieces(text), [text]);
  return html`<pre class="text" tabindex="0">${pieces.map(([piece, kind], place) => (kind ? html`<span key=${place} class=${kind}>${piece}</span>` : piece))}</pre>`;
}

export const Json = ({ value }) => html`<pre class="text mono" tabindex="0">${JSON.stringify(value, null, 2)}</pre>`;
