// What a program in TypeScript does with the API: every path, parameter and field is checked by the compiler.
import createClient from "openapi-fetch";
import type { paths } from "./api.js";

const [baseUrl, token] = process.argv.slice(2);
if (!baseUrl || !token) throw new Error("Give the address of a server and its token.");
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });

const search = await client.GET("/api/v1/search", { params: { query: { q: "有給休暇", tool: ["notes"], top_k: 1 } } });
if (search.error) throw new Error(search.error.detail);
const [first] = search.data.results;
if (!first) throw new Error("Nothing was found.");

const document = await client.GET("/api/v1/documents/{tool}/{path}", {
  params: { path: { tool: first.tool, path: first.file_path }, query: { lines: "1-1" } },
});
if (document.error) throw new Error(document.error.detail);

const wrong = await client.GET("/api/v1/search", { params: { query: { q: "x", top_k: 0 } } });

let job = (await client.POST("/api/v1/tools/{name}/import", { params: { path: { name: first.tool } } })).data?.job;
while (job?.status === "running") {
  job = (await client.GET("/api/v1/jobs/{id}", { params: { path: { id: job.id } } })).data;
}

console.log(
  JSON.stringify({
    path: first.file_path,
    text: document.data.text,
    parameter: wrong.error?.parameter,
    job: job?.status,
  }),
);
