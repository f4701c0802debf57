import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { afterAll } from "vitest"
import { getEndpoint } from "../../../../src/endpoints/endpoint-store.ts"
import { endpoint, secret } from "../../../kit/engine.ts"
import { installations } from "../../command-line.ts"
import { run, runWith } from "../../in-process.ts"

const place = installations()
const directory = mkdtempSync(join(tmpdir(), "petrel-secrets-"))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const file = (name: string, content: string) => {
  const path = join(directory, name)
  writeFileSync(path, content)
  return path
}

const other = `whsec_${Buffer.alloc(32, 9).toString("base64")}`
const third = `whsec_${Buffer.alloc(32, 11).toString("base64")}`

describe("secrets of an endpoint", () => {
  it.live("come from files and standard input, and warn where they are arguments", () => {
    const { flags, run: inside } = place()
    const petrel = (input: string, ...args: ReadonlyArray<string>) =>
      Effect.map(runWith(input, "endpoint", ...args, ...flags), ({ code, err }) => ({ code, err }))
    const stored = Effect.map(getEndpoint("acme", "hook"), (found) => found.endpoint)
    return inside(
      Effect.gen(function* () {
        const headers = file("headers", "# for the gateway\nX-Key: one: two\r\n\nX-Other:three\n")
        const added = yield* petrel(
          "",
          ...["add", "acme/hook", "--url", "https://example.com/h"],
          ...["--secret-file", file("secret", `${secret}\n`), "--header-file", headers]
        )
        assert.deepStrictEqual(added, { code: 0, err: [] })
        const first = yield* stored
        assert.deepStrictEqual(first.headers, { "X-Key": "one: two", "X-Other": "three" })
        assert.deepStrictEqual(
          first.secrets.map(({ value }) => value),
          [secret]
        )

        assert.deepStrictEqual(
          yield* petrel(`${other}\n`, "rotate", "acme/hook", "--secret", "-"),
          {
            code: 0,
            err: []
          }
        )
        assert.deepStrictEqual(
          (yield* stored).secrets.map(({ value }) => value),
          [other, secret]
        )

        const open = yield* petrel(
          "",
          "set",
          "acme/hook",
          "--secret",
          third,
          "--header",
          "X-Key: four"
        )
        assert.strictEqual(open.code, 0)
        assert.lengthOf(open.err, 1)
        assert.include(
          open.err[0],
          "other users of this machine see what --secret and --header are given: use --secret-file FILE or --secret - for standard input, and --header-file FILE"
        )
        assert.notInclude(open.err[0], third)
        const last = yield* stored
        assert.strictEqual(last.headers["X-Key"], "four")
        assert.strictEqual(last.secrets[0]?.value, third)
      })
    )
  })

  it.live("that cannot be read are refused with a sentence that shows none", () => {
    const { flags, run: inside } = place()
    const missing = join(directory, "missing")
    const lines = file("lines", "X-Key: one\nhush-hush\nX-Key: two\nHost: x\n")
    const wrong: ReadonlyArray<readonly [args: ReadonlyArray<string>, said: string]> = [
      [
        ["--secret-file", missing],
        `--secret-file ${missing} cannot be read: there is no such file`
      ],
      [
        ["--header-file", directory],
        `--header-file ${directory} cannot be read: it is a directory`
      ],
      [["--secret", "-"], "there is no secret on standard input"],
      [["--secret-file", file("empty", "\n")], `there is no secret in ${join(directory, "empty")}`],
      [
        ["--secret", "-", "--secret-file", missing],
        "--secret and --secret-file cannot be combined"
      ],
      [
        ["--secret-file", lines],
        "the secret does not fit: a secret for standard signatures must be whsec_ followed by base64"
      ],
      [
        ["--header-file", lines],
        '--header-file must have lines such as \'name: value\', and one is not; --header-file "X-Key" was given twice; --header-file "Host" is a header that Petrel or HTTP sets itself'
      ]
    ]
    return inside(
      Effect.gen(function* () {
        yield* endpoint()
        for (const [args, said] of wrong) {
          const { code, err } = yield* run("endpoint", "set", "acme/hook", ...args, ...flags)
          assert.deepStrictEqual(err, [`petrel: ${said}`])
          assert.strictEqual(code, 2)
        }
      })
    )
  })
})
