// A list of texts in, how many tokens each has in both vocabularies out; the ranks are the real ones.
const { getEncoding } = require("js-tiktoken");
const texts = JSON.parse(require("fs").readFileSync(0, "utf8"));
const count = (name) => {
  const encoding = getEncoding(name);
  return texts.map((text) => encoding.encode(text, [], []).length);
};
console.log(JSON.stringify({ o200k: count("o200k_base"), cl100k: count("cl100k_base") }));
