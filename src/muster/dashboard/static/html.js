// Templates and hooks in one place. Whatever is put into a template becomes text, never markup.
import { createContext, Fragment, h, render } from "./lib/preact.mjs";
import { useCallback, useContext, useEffect, useErrorBoundary, useLayoutEffect, useMemo, useRef, useState } from "./lib/hooks.mjs";
import htm from "./lib/htm.mjs";

const STACKED = /(\p{M}{4})\p{M}+/gu; // marks above and below one letter, which would cover the lines around it

/** A text with at most four marks on a letter. */
export const unstacked = (text) => text.replace(STACKED, "$1");

const drawn = (one) => (typeof one === "string" ? unstacked(one) : Array.isArray(one) ? one.map(drawn) : one);
const made = (type, props, ...children) => h(type, props, ...children.map(drawn));
export const html = htm.bind(made);

/** What is shown in place of a part of the page that cannot be shown; all other parts go on. */
export function Boundary({ what, children }) {
  const [error, again] = useErrorBoundary();
  if (!error) return children;
  return html`<div class="notice bad" role="alert"><p><strong>${what} could not be shown: ${String(error.message ?? error)}</strong></p>
    <p><button type="button" class="plain small" onClick=${again}>Try again</button></p></div>`;
}

export { createContext, Fragment, render, useCallback, useContext, useEffect, useLayoutEffect, useMemo, useRef, useState };

/** Hand over what is typed or chosen in a field. */
export const into = (take) => (event) => take(event.target.value);

/** A value that components follow: `get`, `set`, and `use` inside a component. */
export function observable(value) {
  const listeners = new Set();
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const listener of [...listeners]) listener(value);
    },
    use() {
      const [seen, see] = useState(value);
      useEffect(() => {
        see(value);
        listeners.add(see);
        return () => listeners.delete(see);
      }, []);
      return seen;
    },
  };
}

/** Call an effect every so many milliseconds while the tab is seen; it is called at once when the tab is seen again. */
export function useTicks(milliseconds, act, inputs = []) {
  useEffect(() => {
    if (!milliseconds) return undefined;
    let over = false;
    let timer = null;
    const go = async () => {
      clearTimeout(timer);
      if (!document.hidden) await act();
      if (!over) timer = setTimeout(go, milliseconds);
    };
    const seen = () => !document.hidden && go();
    timer = setTimeout(go, milliseconds);
    document.addEventListener("visibilitychange", seen);
    return () => {
      over = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [milliseconds, ...inputs]);
}

/** Act when something has changed since the component was made; not at first. */
export function useChange(inputs, act) {
  const first = useRef(true);
  useEffect(() => {
    if (!first.current) act();
    first.current = false;
  }, inputs);
}

/** The time, told anew every second while `moving`. */
export function useNow(moving = true) {
  const [now, tell] = useState(Date.now());
  useTicks(moving ? 1000 : 0, () => tell(Date.now()), [moving]);
  return moving ? now : Date.now();
}

/** Whether the page is as narrow as a phone. */
export function useNarrow() {
  const query = useMemo(() => matchMedia("(max-width: 720px)"), []);
  const [narrow, tell] = useState(query.matches);
  useEffect(() => {
    const change = () => tell(query.matches);
    query.addEventListener("change", change);
    return () => query.removeEventListener("change", change);
  }, []);
  return narrow;
}

const queryOf = () => new URLSearchParams(location.hash.split("?")[1]);

/** A choice that is kept in the address under a name, so that Back and reload find it; what is as usual is left out. */
export function useAddressed(name, usual = "") {
  const [value, tell] = useState(queryOf().get(name) ?? usual);
  const choose = (next) => {
    const asked = queryOf();
    if (next === usual) asked.delete(name);
    else asked.set(name, next);
    history.replaceState(history.state, "", `${location.hash.split("?")[0] || "#/runs"}${asked.size ? `?${asked}` : ""}`);
    tell(next);
  };
  return [value, choose];
}

/** The value, once it has not changed for a moment. */
export function useSettled(value) {
  const [settled, tell] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => tell(value), 200);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
