import { join } from "node:path"
import { Schema } from "effect"
import { afterAll, assert, beforeAll, inject } from "vitest"
import type { TopologyOptions } from "../../src/broker/topology.ts"
import { installation } from "../kit/engine.ts"
import type { TestServer, TestServerOptions } from "../kit/nats-server.ts"
import { startServer } from "../kit/nats-server.ts"
import { timesAsNumbers } from "./times-as-numbers.ts"

/** What a `petrel` command is started from, where a test starts it in a way of its own. */
export const program = join(inject("programs"), "petrel.js")

const decode = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown))
)

/** Reads a line that a command prints with `--json`, which has no time as a number. */
export const parse = (line: string) => {
  const read = decode(line)
  assert.deepStrictEqual(timesAsNumbers(read), [])
  return read
}

/**
 * A broker for the tests of the file that calls this. Each call of what it gives names another
 * installation on that broker, and the flags for it.
 */
export const installations = (options: TestServerOptions = {}) => {
  let server: TestServer
  beforeAll(async () => {
    server = await startServer(options)
  })
  afterAll(() => server.stop())

  return (topology: Partial<TopologyOptions> = {}) => {
    const there = installation(server, topology)
    const { eventRoot, prefix, url } = there
    return { ...there, flags: ["--nats", url, "--prefix", prefix, "--events", eventRoot] }
  }
}
