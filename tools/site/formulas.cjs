// Reads [[TeX, on its own line], …] from stdin; writes the HTML of each to stdout.
const katex = require("katex");
const formulas = JSON.parse(require("fs").readFileSync(0, "utf8"));
const html = formulas.map(([tex, displayMode]) => {
  try {
    return katex.renderToString(tex, {displayMode, strict: "ignore"});
  } catch (error) {
    console.error(`${tex}: ${error.message}`.replace(/\s+/g, " "));
    process.exit(1);
  }
});
process.stdout.write(JSON.stringify(html));
