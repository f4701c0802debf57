import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { Broker } from "../../src/broker/connection.ts"
import { scanQueue } from "../../src/broker/scan.ts"
import { disableEndpoint, getEndpoint } from "../../src/delivery/endpoints/endpoint-store.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { allFacts } from "../books.ts"
import { deadLetters, endpoint, history, nth, worker } from "../engine.ts"
import { receiver } from "../receiver.ts"
import { installations, parse } from "./command-line.ts"
import { buriedAt, bury } from "./dead-letters.ts"
import { run, start } from "./running.ts"

const install = installations()

const idsIn = (out: ReadonlyArray<string>) => out.map((line) => parse(line).id)

/** Messages that wait in the queue of acme's endpoint. */
const waiting = (id: string) =>
  Effect.gen(function* () {
    const { names } = yield* Broker
    const partition = partitionOf("acme", id, 2)
    const subject = names.subjects.delivery(partition, "acme", id)
    return yield* Stream.runCollect(scanQueue(names.deliveries(partition), subject))
  })

describe("petrel dead list", () => {
  it.live("prints a table with what became of each, or an object a line", () => {
    const place = install()
    const list = (...args: ReadonlyArray<string>) => run("dead", "list", ...place.flags, ...args)
    return place.run(
      Effect.gen(function* () {
        yield* bury({
          endpoint: "billing",
          event: "acme-invoice-42",
          reason: "attempts",
          progress: {
            attempts: 16,
            firstAttemptAt: buriedAt,
            lastAttemptAt: buriedAt + 5_000,
            lastErrorClass: "connection",
            lastError: "connect ECONNREFUSED\u001b[2J"
          }
        })
        yield* bury({ endpoint: "crm", event: "acme-1", reason: "deadline" })
        yield* bury({
          endpoint: "crm",
          event: "acme-2",
          reason: "permanent",
          progress: { attempts: 1, lastStatus: 422 }
        })

        const [table, json, none, status, newest] = yield* Effect.all(
          [
            list(),
            list("--endpoint", "acme/billing", "--reason", "attempts", "--json"),
            list("--tenant", "globex"),
            list("--status", "4xx", "--json"),
            list("--limit", "2", "--json")
          ],
          { concurrency: 3 }
        )
        assert.deepStrictEqual(table.out, [
          "id  dead since           endpoint      reason     tried           sent again  event",
          "1   2026-03-04 10:32:12  acme/billing  attempts   16× connection  -           acme-invoice-42",
          "2   2026-03-04 10:32:12  acme/crm      deadline   never           -           acme-1",
          "3   2026-03-04 10:32:12  acme/crm      permanent  1× 422          -           acme-2"
        ])
        assert.deepStrictEqual(
          json.out.map((line) => JSON.parse(line)),
          [
            {
              id: 1,
              tenant: "acme",
              endpoint: "billing",
              event: "acme-invoice-42",
              eventSeq: 7,
              type: "invoice.paid",
              round: "0",
              reason: "attempts",
              attempts: 16,
              firstAttemptAt: buriedAt,
              lastAttemptAt: buriedAt + 5_000,
              lastErrorClass: "connection",
              lastError: "connect ECONNREFUSED\u001b[2J",
              deadline: buriedAt + 60_000,
              deadAt: buriedAt + 5_000
            }
          ]
        )
        assert.deepStrictEqual(none, {
          code: 0,
          out: [],
          err: ["There are no such dead letters."]
        })
        assert.deepStrictEqual(idsIn(status.out), [3])
        assert.deepStrictEqual(idsIn(newest.out), [2, 3])
      })
    )
  })
})

describe("petrel dead show", () => {
  it.live("shows the body without obeying it, and writes its bytes where that is wanted", () => {
    const place = install()
    const show = (...args: ReadonlyArray<string>) => run("dead", "show", ...place.flags, ...args)
    return place.run(
      Effect.gen(function* () {
        const hostile = "first\u001b[2J\u0007 line\nsecond \u202etxt"
        yield* bury({
          endpoint: "crm",
          event: "acme-1",
          reason: "permanent",
          progress: { attempts: 1, lastStatus: 422 },
          body: hostile,
          headers: { "content-type": "text/plain" }
        })
        yield* bury({
          endpoint: "crm",
          event: "acme-2",
          reason: "deadline",
          body: Uint8Array.of(0, 255, 254)
        })
        const [shown, raw, binary, missing, both] = yield* Effect.all(
          [
            show("1"),
            show("1", "--raw"),
            show("2", "--json"),
            show("9"),
            show("1", "--raw", "--json")
          ],
          { concurrency: 3 }
        )
        const text = shown.out.join("\n")
        assert.deepStrictEqual(shown.out.slice(-2), [
          "first\\x1b[2J\\x07 line",
          "second \\u{202e}txt"
        ])
        assert.match(text, /body +29 B; 3 control characters shown as/)
        assert.match(text, /content-type: text\/plain/)
        assert.match(text, /webhook-id: acme-1/)
        assert.match(text, /not yet: `petrel dead redeliver --id 1` does it/)
        assert.strictEqual(raw.out.join("\n"), hostile)
        assert.deepInclude(parse(nth(binary.out, 0)), {
          bytes: 3,
          bodyBase64: Buffer.of(0, 255, 254).toString("base64")
        })
        assert.match(nth(missing.err, 0), /^petrel: there is no dead letter 9: /)
        assert.match(nth(both.err, 0), /--raw and --json exclude each other/)
      })
    )
  })

  it.live("tells how each attempt went, and what came of sending it again", () => {
    const place = install()
    return place.run(
      Effect.gen(function* () {
        const hook = yield* receiver({ answer: { status: 422, body: "no\u0007 total" } })
        yield* endpoint({ url: hook.url })
        const facts = yield* history
        yield* worker()
        const { ask, js, names } = yield* Broker
        yield* ask("publish", () => js.publish(`${names.eventRoot}.acme.invoice.paid`, "{}"))
        yield* facts.count("dead-lettered", 1)
        hook.answer({})
        const sent = yield* run("dead", "redeliver", "--id", "1", "--by", "ana", ...place.flags)
        assert.strictEqual(sent.code, 0)
        yield* facts.count("delivered", 1)
        const { out } = yield* run("dead", "show", "1", ...place.flags)
        const text = out.join("\n")
        assert.match(text, /#1 {2}.* 422 {2}.* ms {2}no {2}total/)
        assert.match(text, /sent again .* by ana: delivered/)
        const listed = yield* run("dead", "list", "--json", ...place.flags)
        assert.deepInclude(parse(nth(listed.out, 0)).redelivered, {
          by: "ana",
          round: "d1",
          outcome: "delivered"
        })
      })
    )
  })
})

describe("petrel dead redeliver", () => {
  it.live("says what is wrong in one sentence, and does nothing then", () => {
    const place = install()
    const redeliver = (...args: ReadonlyArray<string>) =>
      Effect.map(run("dead", "redeliver", ...place.flags, ...args), ({ code, err, out }) => ({
        code,
        said: [...out, ...err].join("\n")
      }))
    return place.run(
      Effect.gen(function* () {
        yield* endpoint()
        yield* bury({ endpoint: "hook", event: "acme-1", reason: "permanent" })
        const answers = yield* Effect.all(
          [
            redeliver(),
            redeliver("--all", "--reason", "permanent"),
            redeliver("--id", "7"),
            redeliver("--id", "x"),
            redeliver("--status", "999"),
            redeliver("--all", "--by", "")
          ],
          { concurrency: 3 }
        )
        for (const [index, pattern] of [
          /say which dead letters to send again: .*nothing was done$/,
          /--all and flags that narrow it exclude each other$/,
          /there is no dead letter 7: /,
          /--id "x" must be the number of a dead letter/,
          /--status "999" must be an HTTP status/,
          /--by needs a value/
        ].entries()) {
          assert.strictEqual(nth(answers, index).code, 1)
          assert.match(nth(answers, index).said, pattern)
        }
        assert.deepStrictEqual(yield* allFacts, [])
        assert.deepStrictEqual(yield* waiting("hook"), [])
      })
    )
  })

  it.live(
    "counts by reason before, sends once, and leaves alone what its endpoint would not take",
    () => {
      const place = install()
      const redeliver = (...args: ReadonlyArray<string>) =>
        run("dead", "redeliver", ...place.flags, ...args)
      return place.run(
        Effect.gen(function* () {
          yield* endpoint()
          yield* endpoint({ id: "off" })
          yield* disableEndpoint({ tenant: "acme", endpoint: "off" }, "by hand", "cli")
          for (const [index, reason] of ["permanent", "attempts", "permanent"].entries())
            yield* bury({ endpoint: "hook", event: `acme-${index}`, eventSeq: index + 1, reason })
          yield* bury({ endpoint: "off", event: "acme-off", reason: "permanent" })
          yield* bury({ endpoint: "gone", event: "acme-gone", reason: "permanent" })

          const planned = yield* redeliver("--all", "--dry-run")
          assert.deepStrictEqual(planned.out, [
            "would send 3 dead letters again",
            "  permanent                   2",
            "  attempts                    1",
            "1 left alone: acme/off is disabled: put it back to work with `petrel endpoint enable`",
            "1 left alone: acme/gone is removed"
          ])
          assert.deepStrictEqual(yield* waiting("hook"), [])

          const sent = yield* redeliver("--all", "--by", "ana", "--json")
          const left = [
            { endpoint: "acme/off", why: "endpoint-disabled", count: 1 },
            { endpoint: "acme/gone", why: "endpoint-removed", count: 1 }
          ]
          assert.deepStrictEqual(parse(nth(sent.out, 0)), {
            event: "done",
            selected: 5,
            redelivered: 3,
            gone: 0,
            before: 0,
            skipped: left
          })
          const { revision } = yield* getEndpoint("acme", "hook")
          const messages = yield* waiting("hook")
          assert.deepStrictEqual(
            messages.map(({ header }) => [
              header.get("petrel-event"),
              header.get("petrel-round"),
              header.get("petrel-revision"),
              header.get("petrel-progress")
            ]),
            [
              ["acme-0", "d1", String(revision), ""],
              ["acme-1", "d2", String(revision), ""],
              ["acme-2", "d3", String(revision), ""]
            ]
          )
          assert.deepStrictEqual(
            (yield* allFacts)
              .filter(({ kind }) => kind === "redelivered")
              .map(({ by, dead }) => [dead, by]),
            [
              [1, "ana"],
              [2, "ana"],
              [3, "ana"]
            ]
          )
          const again = yield* redeliver("--endpoint", "acme/hook")
          assert.deepStrictEqual(again, {
            code: 0,
            out: ["nothing was sent", "3 left alone: sent again before"],
            err: []
          })
          const off = yield* redeliver("--endpoint", "acme/off")
          assert.strictEqual(off.code, 1)
          assert.match(off.err.join("\n"), /nothing was sent: acme\/off takes nothing/)
          assert.lengthOf(yield* waiting("hook"), 3)
        })
      )
    }
  )

  for (const [signal, code] of [
    ["SIGKILL", 128],
    ["SIGINT", 130]
  ] as const)
    it.live(`sends all, each once, where it is run again after ${signal}`, () => {
      const place = install()
      return place.run(
        Effect.gen(function* () {
          const count = 400
          const hook = yield* receiver()
          yield* endpoint({ url: hook.url })
          const facts = yield* history
          yield* Effect.forEach(
            Array.from({ length: count }, (_, n) => n),
            (n) =>
              bury({
                endpoint: "hook",
                event: `acme-${n}`,
                eventSeq: n + 1,
                reason: "attempts",
                body: `body ${n}`
              }),
            { concurrency: 32, discard: true }
          )
          yield* worker()
          const args = ["dead", "redeliver", "--all", ...place.flags]
          const first = yield* start(...args)
          yield* facts.count("redelivered", 20)
          yield* first.signal(signal)
          assert.strictEqual(yield* first.ended, code)
          const begun = (yield* allFacts).filter(({ kind }) => kind === "redelivered").length
          assert.isBelow(begun, count)
          if (signal === "SIGINT")
            assert.match(
              first.err.join("\n"),
              new RegExp(
                `stopped after ${begun} of ${count}: run the same command with --until \\d{4}-.*Z to send the rest`
              )
            )
          const second = yield* run(...args)
          assert.strictEqual(second.code, 0)
          yield* facts.count("delivered", count)
          const came = hook.requests.map(({ body, headers }) => `${headers["webhook-id"]} ${body}`)
          const wanted = Array.from({ length: count }, (_, n) => `acme-${n} body ${n}`)
          assert.deepStrictEqual(came.toSorted(), wanted.toSorted())
          assert.lengthOf(facts.of("redelivered"), count)
        })
      )
    })
})

describe("petrel dead discard", () => {
  it.live("tells the history who did it, then removes them, where that was agreed to", () => {
    const place = install()
    const discard = (...args: ReadonlyArray<string>) =>
      run("dead", "discard", ...place.flags, ...args)
    return place.run(
      Effect.gen(function* () {
        yield* endpoint()
        for (const n of [1, 2, 3])
          yield* bury({ endpoint: "hook", event: `acme-${n}`, eventSeq: n, reason: "permanent" })
        yield* run("dead", "redeliver", "--id", "2", ...place.flags)

        const unasked = yield* discard("--all")
        assert.strictEqual(unasked.code, 1)
        assert.match(unasked.err.join("\n"), /say --yes where nobody can be asked/)
        assert.lengthOf(yield* deadLetters, 3)

        const done = yield* discard("--all", "--yes", "--by", "ana")
        assert.deepStrictEqual(done.out, [
          "2 dead letters discarded",
          "1 left alone: sent again, and on the way still"
        ])
        assert.deepStrictEqual(
          (yield* deadLetters).map(({ seq }) => seq),
          [2]
        )
        assert.deepStrictEqual(
          (yield* allFacts)
            .filter(({ kind }) => kind === "discarded")
            .map(({ by, dead, eventSeq, round }) => [dead, eventSeq, round, by]),
          [
            [1, 1, "0", "ana"],
            [3, 3, "0", "ana"]
          ]
        )
        const gone = yield* run("dead", "redeliver", "--id", "1", ...place.flags)
        assert.match(gone.err.join("\n"), /there is no dead letter 1: it was discarded/)
      })
    )
  })
})
