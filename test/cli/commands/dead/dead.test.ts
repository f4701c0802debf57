import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { natsClients } from "../../../../src/broker/clients.ts"
import type { Fact } from "../../../../src/domain/fact.ts"
import { timeText } from "../../../../src/domain/timestamp.ts"
import { Facts } from "../../../../src/history/facts.ts"
import { endpoint, eventAt, history, nth, publish, worker } from "../../../kit/engine.ts"
import { receiver } from "../../../kit/receiver.ts"
import { installations, parse } from "../../command-line.ts"
import { run } from "../../in-process.ts"
import { buriedAt, bury } from "./dead-letters.ts"

const install = installations()

const idsIn = (out: ReadonlyArray<string>) => out.map((line) => parse(line).id)

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
            probes: 9,
            firstAttemptAt: buriedAt,
            lastAttemptAt: buriedAt + 5_000,
            lastErrorClass: "refused",
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

        const [table, json, none, status, newest, several] = yield* Effect.all(
          [
            list(),
            list("--endpoint", "acme/billing", "--reason", "attempts", "--json"),
            list("--tenant", "globex"),
            list("--status", "4xx", "--json"),
            list("--limit", "2", "--json"),
            list("--json", ...["deadline", "attempts"].flatMap((reason) => ["--reason", reason]))
          ],
          { concurrency: 3 }
        )
        assert.deepStrictEqual(table.out, [
          "id  dead since           endpoint      reason     tried                  sent again  event",
          "1   2026-03-04 10:32:12  acme/billing  attempts   16× refused, 9 probes  -           acme-invoice-42",
          "2   2026-03-04 10:32:12  acme/crm      deadline   never                  -           acme-1",
          "3   2026-03-04 10:32:12  acme/crm      permanent  1× 422                 -           acme-2"
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
              eventAt: timeText(buriedAt),
              type: "invoice.paid",
              round: "0",
              reason: "attempts",
              attempts: 16,
              probes: 9,
              firstAttemptAt: timeText(buriedAt),
              lastAttemptAt: timeText(buriedAt + 5_000),
              lastErrorClass: "refused",
              lastError: "connect ECONNREFUSED\u001b[2J",
              deadline: timeText(buriedAt + 60_000),
              deadAt: timeText(buriedAt + 5_000)
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
        assert.deepStrictEqual(idsIn(several.out), [1, 2])
      })
    )
  })
})

describe("a dead letter that was delivered late", () => {
  it.live("is shown as that, not sent again, and counts as taken", () => {
    const place = install()
    const dead = (...args: ReadonlyArray<string>) => run("dead", ...args, ...place.flags)
    return place.run(
      Effect.gen(function* () {
        yield* endpoint({ id: "crm" })
        const { seq: eventSeq } = yield* publish("invoice.paid", "{}", { "Nats-Msg-Id": "acme-1" })
        const identity = { eventSeq, eventAt: yield* eventAt(eventSeq) }
        yield* bury({ endpoint: "crm", event: "acme-1", ...identity, reason: "permanent" })
        const { append } = yield* Facts
        const at = buriedAt + 7_000
        const about = { tenant: "acme", endpoint: "crm", event: "acme-1", ...identity, round: "0" }
        const late: Fact = { ...about, v: 1, kind: "delivered-late", at, worker: "w1", attempt: 1 }
        yield* append(late, "late")

        const replay = ["replay", "--to", "acme/crm", "--only-missing", "--dry-run", "--json"]
        const [table, json, shown, planned, sent, replayed] = yield* Effect.all(
          [
            dead("list"),
            dead("list", "--json"),
            dead("show", "1"),
            dead("redeliver", "--all", "--dry-run", "--json"),
            dead("redeliver", "--all"),
            run(...replay, ...place.flags)
          ],
          { concurrency: 3 }
        )
        const open = yield* dead("list", "--open")
        assert.deepStrictEqual([open.out, open.err], [[], ["There are no such dead letters."]])
        const status = yield* run("status", "--json", ...place.flags)
        assert.deepInclude(parse(nth(status.out, 0)).deadLetters, { stored: 1, open: 0 })
        assert.match(
          nth(table.out, 1),
          /permanent +never +2026-03-04 10:32:14 delivered late +acme-1$/
        )
        assert.deepInclude(parse(nth(json.out, 0)), {
          deliveredLate: { at: timeText(at), worker: "w1" }
        })
        assert.match(
          shown.out.join("\n"),
          /late +delivered late 2026-03-04 10:32:14: w1 had sent it/
        )
        assert.match(shown.out.join("\n"), /sent again +no: it was delivered late/)
        assert.deepInclude(parse(nth(planned.out, 0)), { redeliver: 0, deliveredLate: 1 })
        assert.strictEqual(sent.code, 0)
        assert.deepStrictEqual(sent.out, [
          "nothing was sent",
          "1 left alone: delivered late, so the receiver has it"
        ])
        assert.deepInclude(parse(nth(replayed.out, 0)), { delivered: 1 })
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
          "first\\u001b[2J\\u0007 line",
          "second \\u202etxt"
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
        assert.match(nth(both.err, 0), /--raw and --json cannot be combined/)
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
        const { ask, js, names } = yield* natsClients
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
