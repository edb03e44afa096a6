// The report of a run whose kind has no tab of its own, as Markdown.
import { html, useEffect, useState } from "./html.js";
import { getText } from "./http.js";
import { Failure, Loading } from "./parts.js";
import { ModelText } from "./text.js";

export function ReportTab({ run }) {
  const [{ text, error }, tell] = useState({});
  useEffect(() => {
    getText(`/api/runs/${run.id}/report?format=markdown`).then((found) => tell({ text: found }), (failure) => tell({ error: failure }));
  }, [run.id, run.state]);
  if (error) return html`<${Failure} error=${error} />`;
  return text === undefined ? html`<${Loading} what="the report" />` : html`<section class="card padded"><${ModelText} text=${text} /></section>`;
}
