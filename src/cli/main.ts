#!/usr/bin/env node
import { enableCompileCache } from "node:module"
import { fileURLToPath } from "node:url"

// Host names are looked up on libuv's threads, 4 by default: a few unresponsive name servers would
// stop all attempts. libuv reads this when the first thread is needed.
process.env.UV_THREADPOOL_SIZE ??= "64"
// Next to the code, so that only users who can write the code can write its cache.
enableCompileCache(fileURLToPath(new URL("../../node_modules/.cache/petrel", import.meta.url)))

const { run } = await import("./run.ts")
run()
