// Lists of any length: only the rows that are seen are in the document, placed along the scroll of the page.
import { html, useEffect, useLayoutEffect, useNarrow, useRef, useState } from "./html.js";
import { get, useReturn } from "./http.js";
import { number } from "./format.js";
import { toRow, useKeys } from "./keys.js";
import { Failure, Loading } from "./parts.js";

const SPARE = 8; // rows above and below what is seen

/** A table of rows of one height, and of another on phones. `columns` are names, `cells(item)` the cells, `markOf(item)` a class; `onEnd` is called near the last row. */
export function Rows({ label, items, columns, cells, heights, total, onEnd, href, onOpen, keyOf, kind, markOf }) {
  const height = heights[Number(useNarrow())];
  const place = useRef(null);
  const [range, tell] = useState([0, 40]);
  const latest = useRef(null);
  const look = (latest.current = () => {
    const box = place.current?.getBoundingClientRect();
    if (!box) return;
    const first = Math.max(0, Math.floor(-box.top / height) - SPARE);
    // Some rows are there also while the list is out of sight: what is above it may still come, or go.
    const last = Math.min(items.length, Math.max(first + 2 * SPARE, Math.ceil((innerHeight - box.top) / height) + SPARE));
    tell((old) => (old[0] === first && old[1] === last ? old : [first, last]));
    if (onEnd && last >= items.length - 2 * SPARE) onEnd();
  });
  useLayoutEffect(look, [items.length, height]);
  useEffect(() => {
    let asked = 0;
    const soon = () => (asked ||= requestAnimationFrame(() => ((asked = 0), latest.current())));
    addEventListener("scroll", soon, { passive: true });
    addEventListener("resize", soon);
    const moved = new ResizeObserver(soon); // what is above the list moves it
    moved.observe(document.body);
    return () => {
      moved.disconnect();
      cancelAnimationFrame(asked);
      removeEventListener("scroll", soon);
      removeEventListener("resize", soon);
    };
  }, []);
  useKeys({ j: () => toRow(place.current, 1), k: () => toRow(place.current, -1) });
  const shown = items.slice(range[0], range[1]);
  return html`<div class=${`rows ${kind}`} role="table" aria-label=${label} aria-rowcount=${(total ?? items.length) + 1}>
    <div role="rowgroup"><div class="row head" role="row" aria-rowindex="1">
      ${columns.map(([name, mark], place) => html`<span key=${place} role="columnheader" class=${mark}>${name}</span>`)}
    </div></div>
    <div class="body" role="rowgroup" ref=${place} style=${{ height: `${items.length * height}px` }}>
      ${shown.map((item, number) => html`<${Row} key=${keyOf(item)} ...${{ item, cells, height, onOpen, columns }}
        index=${range[0] + number} href=${href?.(item)} mark=${markOf?.(item)} />`)}
    </div>
  </div>`;
}

/** Pages of a list as rows, with how many of `total` are loaded; `what` names them, `none` is shown where there are none, `items` in place of what was loaded. */
export function List({ pages, what, none, total, items = pages.items, ...rows }) {
  const many = pages.items.length;
  return html`${pages.error && html`<${Failure} error=${pages.error} />`}
    ${!pages.loaded && html`<${Loading} what=${what} />`}
    ${pages.loaded && !pages.error && many === 0 && none}
    ${many > 0 && html`<${Rows} items=${items} total=${total} onEnd=${pages.more} ...${rows} />
      <p class="foot soft small">${what} loaded: ${number(many)}${total === undefined ? "" : ` of ${number(Math.max(total, many))}`}${pages.next ? "; scroll for more" : ""}</p>`}`;
}

function Row({ item, cells, height, index, href, onOpen, columns, mark = "" }) {
  const open = (event) => {
    if (event.target.closest("a, button")) return;
    event.currentTarget.querySelector("a, button")?.click();
  };
  const [first, ...others] = cells(item);
  const name = href
    ? html`<a class="open" href=${href}>${first}</a>`
    : onOpen ? html`<button type="button" class="open" onClick=${() => onOpen(item)}>${first}</button>` : first;
  return html`<div class=${`row ${mark}`} role="row" aria-rowindex=${index + 2} style=${{ top: `${index * height}px`, height: `${height}px` }} onClick=${open}>
    <span role="cell" class=${columns[0][1]}>${name}</span>
    ${others.map((cell, place) => html`<span key=${place} role="cell" class=${columns[place + 1][1]}>${cell}</span>`)}
  </div>`;
}

/** Pages of a list that are loaded when they are needed: `path` asks for the first, `field` names its rows; `page` is the last. */
export function usePages(path, field, inputs) {
  const [state, tell] = useState({ items: [], next: null, page: null, error: null, loaded: false });
  const now = useRef(state);
  const held = useRef(null); // what is asked for one after the other, until the inputs change

  const ask = (after, change) => {
    const { signal, last } = held.current;
    held.current.last = last.then(async () => {
      if (signal.aborted) return 0;
      try {
        const page = await get(after === null ? path : `${path}&after=${encodeURIComponent(after)}`, signal);
        now.current = { ...change(now.current, page[field], page.next), page, error: null, loaded: true };
        tell(now.current);
        return page[field].length;
      } catch (error) {
        if (error.name !== "AbortError") tell((now.current = { ...now.current, error, loaded: true }));
        return 0;
      }
    });
    return held.current.last;
  };
  /** Do something unless it is being done; with `again` it is then done once more. */
  const once = async (name, act, again = false) => {
    const mine = held.current;
    if (mine.busy[name]) {
      mine.repeat[name] = again;
      return;
    }
    mine.busy[name] = true;
    do {
      mine.repeat[name] = false;
      await act();
    } while (mine.repeat[name] && !mine.signal.aborted);
    mine.busy[name] = false;
  };

  useEffect(() => {
    const stop = new AbortController();
    held.current = { signal: stop.signal, last: Promise.resolve(), busy: {}, repeat: {} };
    ask(null, (_, items, next) => ({ items, next }));
    return () => stop.abort();
  }, inputs);
  useReturn(() => {
    if (now.current.error?.status === 0) ask(null, (old, items, next) => (old.items.length > 0 ? old : { items, next }));
  });

  return {
    ...state,
    more() {
      if (now.current.loaded && now.current.next) {
        once("more", () => ask(now.current.next, (old, found, next) => ({ items: [...old.items, ...found], next })));
      }
    },
    /** Ask for the first page again; what is new is put in front, what is known is replaced. */
    refresh: (idOf) => once("refresh", () => ask(null, (old, found, next) => merged(old, found, next, idOf))),
    /** Ask again for all rows that may have changed, and for what follows the last; the order of rows stays. */
    again(mayChange, keyOf) {
      return once("again", async () => {
        for (let start = 0, last = false; !last; ) {
          const { items } = now.current;
          const found = items.findIndex((item, place) => place >= start && mayChange(item));
          last = found === -1;
          const from = last ? items.length : found;
          if (last && now.current.next) return; // what follows is loaded when it is scrolled to
          const many = await ask(from === 0 ? null : keyOf(items[from - 1]), (old, page, next) => replaced(old, from, page, next));
          if (many === 0) return;
          start = from + many;
        }
      }, true);
    },
  };
}

function replaced(old, from, page, next) {
  const rest = old.items.slice(from + page.length);
  return { items: [...old.items.slice(0, from), ...page, ...rest], next: rest.length ? old.next : next };
}

function merged(old, found, next, idOf) {
  const known = new Set(found.map(idOf));
  const rest = old.items.filter((item) => !known.has(idOf(item)));
  const oldest = found.at(-1);
  if (old.items.length <= found.length || !oldest) return { items: found, next };
  const place = old.items.findIndex((item) => idOf(item) === idOf(oldest));
  if (place === -1) return { items: found, next }; // more came than one page holds
  return { items: [...found, ...old.items.slice(place + 1)], next: rest.length ? old.next : next };
}
