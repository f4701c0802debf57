import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { nkeys } from "@nats-io/transport-node"
import { Effect } from "effect"
import { afterAll, beforeAll } from "vitest"
import type { TestServer } from "../kit/nats-server.ts"
import { startServer } from "../kit/nats-server.ts"
import { program } from "./command-line.ts"
import { run } from "./in-process.ts"

const user = nkeys.createUser()
const directory = mkdtempSync(join(tmpdir(), "petrel-nkey-"))
const seed = join(directory, "user.nk")
let server: TestServer

beforeAll(async () => {
  writeFileSync(seed, user.getSeed())
  const config = `authorization: { users: [ { nkey: ${user.getPublicKey()} } ] }`
  server = await startServer({ config })
})
afterAll(async () => {
  await server.stop()
  rmSync(directory, { recursive: true, force: true })
})

/** Runs a command in a process of its own, with variables that say where the broker is. */
const petrel = (args: ReadonlyArray<string>, variables: NodeJS.ProcessEnv) => {
  const { NATS_URL: _, NATS_NKEY: __, ...env } = process.env
  const { status, stderr } = spawnSync(
    process.execPath,
    [program, ...args, "--log-level", "error"],
    { encoding: "utf8", env: { ...env, NATS_URL: server.url, ...variables } }
  )
  return { code: status, err: stderr }
}

describe("a command on a broker that asks who it is", () => {
  it.live("takes an nkey from the file of a flag or a variable, and is refused without", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(petrel(["init"], { NATS_NKEY: seed }), { code: 0, err: "" })
      const there = ["--nats", server.url]
      for (const command of [["endpoint", "list"], ["workers"], ["dead", "list"], ["history"]]) {
        const { code } = yield* run(...command, "--nkey", seed, ...there)
        assert.strictEqual(code, 0, command.join(" "))
      }
      const refused = yield* run("workers", ...there)
      assert.strictEqual(refused.code, 1)
      assert.match(
        refused.err.join("\n"),
        /refuses this user or password: give others with --creds or --nkey/
      )
      assert.strictEqual(petrel(["workers", "--nkey", ""], { NATS_NKEY: seed }).code, 1)
    })
  )
})
