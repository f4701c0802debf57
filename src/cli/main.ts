#!/usr/bin/env node
import { enableCompileCache } from "node:module"
import { fileURLToPath } from "node:url"

// Look-ups of host names run on libuv's threads, 4 by default: a few silent name servers would
// stop the attempts for everybody. Read by libuv when the first one is needed.
process.env.UV_THREADPOOL_SIZE ??= "64"
// Beside the code, so that whoever could write the cache could write the code as well.
enableCompileCache(fileURLToPath(new URL("../../node_modules/.cache/petrel", import.meta.url)))

const { run } = await import("./run.ts")
run()
