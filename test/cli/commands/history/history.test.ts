import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { afterAll, beforeAll } from "vitest"
import { parseWhen } from "../../../../src/cli/flags/shared.ts"
import type { Fact } from "../../../../src/domain/fact.ts"
import { answeredFact } from "../../../../src/history/fact-record.ts"
import { Facts } from "../../../../src/history/facts.ts"
import { installation } from "../../../kit/engine.ts"
import type { TestServer } from "../../../kit/nats-server.ts"
import { startServer } from "../../../kit/nats-server.ts"
import { run } from "../../in-process.ts"
import { start } from "../../running.ts"

let server: TestServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server.stop())

const append = (changes: Partial<Fact>) =>
  Effect.gen(function* () {
    const facts = yield* Facts
    const fact: Fact = {
      v: 1,
      kind: "delivered",
      at: yield* Clock.currentTimeMillis,
      tenant: "acme",
      endpoint: "billing",
      event: "acme-1",
      ...changes
    }
    yield* facts.append(fact, crypto.randomUUID())
    return fact
  })

describe("petrel history", () => {
  it.live("prints a line for each fact that was asked for, or the records as they are", () => {
    const installed = installation(server)
    const history = (...args: ReadonlyArray<string>) =>
      run("history", "--nats", installed.url, "--prefix", installed.prefix, ...args)
    return installed.run(
      Effect.gen(function* () {
        const failed = yield* append({ kind: "attempt-failed", attempt: 1, status: 503 })
        const delivered = yield* append({ attempt: 2, status: 200, durationMs: 7 })
        yield* append({ tenant: "globex", event: "globex-1" })

        const [lines, json, none] = yield* Effect.all(
          [
            history("--endpoint", "acme/billing", "--since", "1 hour"),
            history(
              ...["--event", "acme-1", "--kind", "delivered", "--kind", "attempt-failed", "--json"]
            ),
            history("--event", "another")
          ],
          { concurrency: 2 }
        )
        assert.strictEqual(lines.code, 0)
        assert.strictEqual(lines.out.length, 2)
        assert.match(
          lines.out.join("\n"),
          /^\d\d:\d\d:\d\d {2}acme-1 → acme\/billing +#1 {2}503 {2}no further attempt\n.* #2 {2}200 +7 ms {2}delivered$/
        )
        assert.deepStrictEqual(
          json.out.map((line) => JSON.parse(line)),
          [
            { seq: 1, ...answeredFact(failed) },
            { seq: 2, ...answeredFact(delivered) }
          ]
        )
        assert.deepStrictEqual(none, {
          code: 0,
          out: [],
          err: [
            "Nothing in the history matches. An event appears there once it is routed: `petrel status` says whether some still wait."
          ]
        })
      })
    )
  })

  it.live("follows until it is stopped, which is how it ends well", () => {
    const installed = installation(server)
    return installed.run(
      Effect.gen(function* () {
        yield* append({ event: "before" })
        const command = yield* start(
          ...["history", "--follow", "--json"],
          ...["--nats", installed.url, "--prefix", installed.prefix]
        )
        yield* command.until((out) => out.length === 1)
        yield* append({ event: "after" })
        yield* command.until((out) => out.length === 2)
        assert.deepStrictEqual(
          command.out.map((line) => JSON.parse(line).event),
          ["before", "after"]
        )
        yield* command.signal("SIGINT")
        assert.strictEqual(yield* command.ended, 0)
      })
    )
  })

  it.live("prints only the newest so many, the newest one last, and goes on from there", () => {
    const installed = installation(server)
    const flags = ["--nats", installed.url, "--prefix", installed.prefix, "--json"]
    const events = (out: ReadonlyArray<string>) => out.map((line) => JSON.parse(line).event)
    return installed.run(
      Effect.gen(function* () {
        for (const event of ["1", "2", "3", "4"]) yield* append({ event })
        const [two, all, wrong] = yield* Effect.all(
          [
            run("history", "--limit", "2", ...flags),
            run("history", "--limit", "9", ...flags),
            run("history", "--limit", "0", ...flags)
          ],
          { concurrency: 3 }
        )
        assert.deepStrictEqual(events(two.out), ["3", "4"])
        assert.deepStrictEqual(events(all.out), ["1", "2", "3", "4"])
        assert.match(wrong.err.join("\n"), /--limit "0" must be a whole number from 1 on/)

        const command = yield* start("history", "--limit", "1", "--follow", ...flags)
        yield* command.until((out) => out.length === 1)
        yield* append({ event: "5" })
        yield* command.until((out) => out.length === 2)
        assert.deepStrictEqual(events(command.out), ["4", "5"])
        yield* command.signal("SIGINT")
        assert.strictEqual(yield* command.ended, 0)
      })
    )
  })

  it.live("suggests the kind that was probably meant", () =>
    Effect.gen(function* () {
      const { code, err } = yield* run("history", "--kind", "dead-letered")
      assert.strictEqual(code, 2)
      assert.match(err.join("\n"), /--kind "dead-letered" must be .* did you mean dead-lettered\?/)
    })
  )
})

describe("a time on the command line", () => {
  const now = Date.parse("2026-03-04T12:00:00Z")
  for (const [text, expected] of [
    ["1 hour", "2026-03-04T11:00:00Z"],
    ["15 minutes", "2026-03-04T11:45:00Z"],
    ["15m", "2026-03-04T11:45:00Z"],
    ["2d", "2026-03-02T12:00:00Z"],
    ["2026-03-04T10:30:00Z", "2026-03-04T10:30:00Z"],
    ["2026-03-04T10:30:07.120+02:00", "2026-03-04T08:30:07.120Z"]
  ] as const)
    it(`${text} is ${expected} at 2026-03-04T12:00:00Z`, () => {
      assert.strictEqual(parseWhen(text, now), Date.parse(expected))
    })

  it("without a zone is local, and a date alone is its midnight", () => {
    assert.strictEqual(parseWhen("2026-03-04 10:30", now), new Date(2026, 2, 4, 10, 30).getTime())
    assert.strictEqual(parseWhen("2026-03-04", now), new Date(2026, 2, 4).getTime())
  })

  for (const text of ["", "yesterday", "2026-13-04", "10:30", "-5m", "1", "Infinity"])
    it(`${JSON.stringify(text)} is none`, () => {
      assert.isUndefined(parseWhen(text, now))
    })
})
