import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { serveProjection } from "../../../src/projection/remote-log.ts"
import { caughtUp, directory } from "../../kit/delivery-log.ts"
import { endpoint, history, nth, publish, worker } from "../../kit/engine.ts"
import { receiver } from "../../kit/receiver.ts"
import { installations, parse } from "../command-line.ts"
import { run } from "../in-process.ts"

const install = installations()

describe("lists of the delivery log", () => {
  it.live("show attempts and events by filters, and as JSON with times as texts", () => {
    const place = install()
    const list = (...args: ReadonlyArray<string>) => run(...args, ...place.flags)
    return place.run(
      Effect.gen(function* () {
        const hook = yield* receiver({ answer: { status: 422 } })
        yield* endpoint({ url: hook.url })
        const facts = yield* history
        yield* worker()
        yield* publish("invoice.paid", "{}", { "Nats-Msg-Id": "acme.one" })
        yield* facts.count("attempt-failed", 1)
        const none = yield* list("attempts")
        assert.match(nth(none.err, 0), /no projection runs, or the broker does not let its user/)
        const log = yield* serveProjection({
          broker: { url: place.url, prefix: place.prefix, eventRoot: place.eventRoot },
          ...{ data: yield* directory, keepMs: 1e12, maxBytes: 1e9 }
        })
        yield* caughtUp(log.status)
        const attempts = yield* list("attempts", "--status", "4xx", "--endpoint", "acme/hook")
        assert.match(attempts.out.join("\n"), /acme\.one\.hook +#1 +failure +422/)
        const json = yield* list("attempts", "--json", "--since", "1h")
        const row = parse(nth(json.out, 0))
        assert.deepInclude(row, { event: "acme.one", status: 422, outcome: "failure" })
        assert.match(String(row.at), /^\d{4}-\d\d-\d\dT[\d:.]{12}Z$/)
        const events = yield* list("events", "--type", "invoice.*", "--channel", "nats")
        assert.match(events.out.join("\n"), /acme\.one +acme +invoice\.paid +nats/)
        assert.isEmpty((yield* list("events", "--json", "--channel", "http")).out)
        const stats = yield* list("stats", "acme/hook")
        assert.deepStrictEqual([stats.code, stats.err], [0, []])
        const unknown = yield* list("stats", "acme/hok")
        assert.match(unknown.err.join("\n"), /no attempt at acme\/hok .*petrel endpoint list acme/)
        const wrong = yield* list("attempts", "--status", "600")
        assert.strictEqual(wrong.code, 2)
        assert.include(nth(wrong.err, 0), "--status")
      }).pipe(Effect.scoped)
    )
  })
})
