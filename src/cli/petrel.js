#!/usr/bin/env node
/* Runs the sources in a clone. Node does not run TypeScript that is installed in node_modules. */
if (import.meta.url.includes("/node_modules/")) {
  process.stderr.write(
    "petrel: this package was made from the sources of Petrel and does not run: make one by `npm run build && npm pack ./dist` in the repository\n"
  )
  process.exitCode = 1
} else await import("./main.ts")
