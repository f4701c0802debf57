import { execFile } from "node:child_process"
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { afterEach, beforeEach } from "vitest"
import { readDevToken } from "../../../../src/cli/commands/dev/console.ts"

const exec = promisify(execFile)

let directory = ""
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'petrel-it\'s a "test"-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const problem = () => Effect.runPromise(Effect.flip(readDevToken(directory)))

describe("the token of petrel dev", () => {
  it("is made once, and a shell finds it wherever it is", async () => {
    const made = await Effect.runPromise(readDevToken(directory))
    assert.match(made.token, /^[A-Za-z0-9_-]{32}$/)
    assert.strictEqual((await Effect.runPromise(readDevToken(directory))).token, made.token)
    const words = made.shellUrl("nats://127.0.0.1:4222")
    const { stdout } = await exec("sh", ["-c", `printf %s ${words}`])
    assert.strictEqual(stdout, `nats://${made.token}@127.0.0.1:4222`)
  })

  it("may be one's own, and is refused where it is too short or others may read it", async () => {
    const file = join(directory, "token")
    await writeFile(file, "my-own-token-of-24-signs\n", { mode: 0o600 })
    const { token } = await Effect.runPromise(readDevToken(directory))
    assert.strictEqual(token, "my-own-token-of-24-signs")
    await chmod(file, 0o640)
    assert.include((await problem()).message, "(others on this machine may read it): remove the")
    await writeFile(file, "short")
    assert.include((await problem()).message, "(it must be 16 to 128 letters, digits, - or _)")
  })
})
