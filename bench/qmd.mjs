// Search an index of qmd by words and print what bench.peer_engines prints.
// node qmd.mjs PACKAGE FOLDER query|words WARMING_SHARE TOP JUDGED_HITS
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [packageFolder, folder, kind, ...numbers] = process.argv.slice(2);
const [warmingShare, top, judgedHits] = numbers.map(Number);
const MOST_SEARCHES = 10; // that qmd takes at once
const queries = JSON.parse(readFileSync(`${folder}/${kind === "words" ? "words" : "queries"}.json`, "utf8"));
const { createStore } = await import(pathToFileURL(`${packageFolder}/dist/index.js`));
const store = await createStore({ dbPath: `${folder}/qmd/index.sqlite` });

async function search(query, limit) {
  const searches = kind === "words" ? query.slice(0, MOST_SEARCHES).map((word) => ({ type: "lex", query: word })) : [];
  const hits = searches.length
    ? await store.search({ queries: searches, rerank: false, limit })
    : await store.searchLex(String(query), { limit });
  return hits.map((hit) => hit.displayPath.split("/").pop());
}

function seconds(start) {
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1e6;
}

await search(queries[0], top);
const first = seconds(); // with the start of Node
for (let i = 0; i < queries.length; i += warmingShare) await search(queries[i], top);
const measured = queries.filter((_, i) => i % warmingShare);
const start = process.cpuUsage();
for (const query of measured) await search(query, top);
const search_seconds = seconds(start) / measured.length;
const rss = process.memoryUsage.rss();
const hits = [];
for (const query of queries) hits.push(await search(query, judgedHits));
console.log(JSON.stringify({ first, search: search_seconds, rss, hits }));
await store.close();
