import { spawnSync } from "node:child_process"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../../src/broker/broker.ts"
import { natsClients } from "../../../src/broker/clients.ts"
import { nth } from "../../kit/engine.ts"
import { installations, parse, program } from "../command-line.ts"
import { run, runWith } from "../in-process.ts"

const place = installations()

describe("petrel publish", () => {
  it.live("stores the bytes it is given under an id of the tenant's, once", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        const bytes = Buffer.from([0, 255, 10, 13, 128, 10])
        const { status, stdout } = spawnSync(
          process.execPath,
          [program, "publish", "acme", "report.ready", "-", "--id", "7", "--json", ...flags],
          { input: bytes, encoding: "utf8" }
        )
        assert.strictEqual(status, 0)
        assert.deepStrictEqual(parse(stdout), {
          id: "acme.7",
          tenant: "acme",
          type: "report.ready",
          seq: 1,
          duplicate: false
        })
        const { ask, jsm, names } = yield* natsClients
        const stored = yield* ask("get", () => jsm.streams.getMessage(names.events, { seq: 1 }))
        assert.deepStrictEqual(Buffer.from(stored?.data ?? []), bytes)

        const again = yield* run("publish", "acme", "report.ready", "x", "--id", "acme.7", ...flags)
        assert.deepStrictEqual(again.out, ["acme.7"])
        assert.match(nth(again.err, 0), /has an event of this id already, stored as 1/)

        const made = yield* run("publish", "acme", "report.ready", "grüße", ...flags)
        assert.match(nth(made.out, 0), /^acme\.evt_[0-9a-f]{24}$/)
        const next = yield* ask("get", () => jsm.streams.getMessage(names.events, { seq: 2 }))
        assert.strictEqual(Buffer.from(next?.data ?? []).toString(), "grüße")
      })
    )
  })

  it.live("explains what cannot be stored", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        const { names } = yield* Broker
        const { code, err } = yield* runWith(
          Buffer.alloc(1_000_000),
          ...["publish", "acme", "report.ready", "-", ...flags]
        )
        assert.strictEqual(code, 1)
        assert.include(
          nth(err, 0),
          `976.6 KiB and its headers are more than the 960 KiB that ${names.events}`
        )
        const wrong = yield* run("publish", "a.b", "invoice.*", "{}", "--id", "x y", ...flags)
        assert.match(
          nth(wrong.err, 0),
          /^petrel: TENANT "a\.b" .*; TYPE "invoice\.\*" .*; --id "x y" /
        )
        const event = ["publish", "acme", "invoice.paid", "{}"]
        const nowhere = yield* run(...event, ...place().flags)
        assert.match(
          nth(nowhere.err, 0),
          /^petrel: there is no installation named .*: run `petrel init`/
        )
        const elsewhere = yield* run(
          ...event,
          ...flags.map((flag, index) => (flags[index - 1] === "--events" ? "others" : flag))
        )
        assert.match(
          nth(elsewhere.err, 0),
          /^petrel: no stream on this broker takes others\.acme.*--prefix and --events/
        )
      })
    )
  })

  it.live.runIf(process.platform === "linux")("changes no byte of an argument", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        const published = (body: string) => {
          const own = [process.execPath, program, "publish", "acme", "a", ...flags]
          const script = `exec "$@" "$(printf '${body}')"`
          return spawnSync("sh", ["-c", script, "sh", ...own], { encoding: "utf8" })
        }
        const refused = published("a\\377b")
        assert.strictEqual(refused.status, 2)
        assert.strictEqual(
          refused.stderr,
          "petrel: BODY is no valid UTF-8, and its bytes would be changed: give it on standard input, with -\n"
        )
        assert.strictEqual(published("a\uFFFDb").status, 0)
        const { ask, jsm, names } = yield* natsClients
        const stored = yield* ask("get", () => jsm.streams.getMessage(names.events, { seq: 1 }))
        assert.strictEqual(Buffer.from(stored?.data ?? []).toString(), "a\uFFFDb")
      })
    )
  })
})
