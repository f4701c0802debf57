import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { disableEndpoint } from "../../../../src/endpoints/endpoint-state.ts"
import { consistentRounds, isClean } from "../../../kit/consistency.ts"
import { endpoint, history, nth, publish, worker } from "../../../kit/engine.ts"
import { receiver } from "../../../kit/receiver.ts"
import { installations, parse } from "../../command-line.ts"
import { run } from "../../in-process.ts"

const install = installations()

describe("sending one thing again", () => {
  it.live("sends a delivery that succeeded once more, each time in a round of its own", () => {
    const place = install()
    const resend = (...args: ReadonlyArray<string>) =>
      run("delivery", "resend", ...args, ...place.flags)
    return place.run(
      Effect.gen(function* () {
        const hook = yield* receiver()
        yield* endpoint({ url: hook.url })
        const facts = yield* history
        yield* worker()
        yield* publish("invoice.paid", '{"n":1}', { "Nats-Msg-Id": "acme.invoice-1" })
        yield* facts.count("delivered", 1)
        const again = yield* resend("acme.invoice-1.hook", "--by", "ana")
        assert.match(
          nth(again.out, 0),
          /^acme\.invoice-1\.hook is sent again \(replay resend-\w+\): /
        )
        yield* facts.count("delivered", 2)
        const json = parse(nth((yield* resend("acme.invoice-1.hook", "--json")).out, 0))
        assert.deepInclude(json, { delivery: "acme.invoice-1.hook", tenant: "acme" })
        yield* facts.count("delivered", 3)
        const rounds = facts.of("delivered").map(({ attempt, round }) => [attempt, round])
        assert.strictEqual(new Set(rounds.map(([, round]) => round)).size, 3)
        assert.isTrue(rounds.every(([attempt]) => attempt === 1))
        assert.strictEqual(nth(facts.of("replayed"), 0).by, "ana")
        const ids = hook.requests.map(({ body, headers }) => [headers["webhook-id"], String(body)])
        assert.deepStrictEqual(
          ids,
          Array.from({ length: 3 }, () => ["acme.invoice-1", '{"n":1}'])
        )
        const shown = yield* run("delivery", "show", "acme.invoice-1.hook", ...place.flags)
        const headings = shown.out.filter((line) => /^(first round|replay )/.test(line))
        assert.deepStrictEqual(headings, [
          "first round",
          `replay ${/resend-\w+/.exec(nth(again.out, 0))}`,
          `replay ${json.replay}`
        ])
        yield* consistentRounds
        yield* isClean
      })
    )
  })

  it.live("says in one sentence why it cannot, and sends nothing then", () => {
    const place = install()
    const resend = (id: string) =>
      Effect.map(run("delivery", "resend", id, ...place.flags), ({ code, err }) => ({
        code,
        says: nth(err, 0)
      }))
    return place.run(
      Effect.gen(function* () {
        const hook = yield* receiver()
        yield* endpoint({ url: hook.url })
        const facts = yield* history
        yield* worker()
        yield* publish("a", "{}", { "Nats-Msg-Id": "acme.one" })
        yield* facts.count("delivered", 1)
        assert.match((yield* resend("acme.none.hook")).says, /the history has no delivery/)
        assert.match((yield* resend("none")).says, /must be <event id>\.<endpoint id>/)
        yield* disableEndpoint({ tenant: "acme", endpoint: "hook" }, "by hand", "cli")
        const disabled = yield* resend("acme.one.hook")
        assert.strictEqual(disabled.code, 1)
        assert.match(disabled.says, /acme\/hook is disabled and takes nothing/)
        assert.lengthOf(hook.requests, 1)
        assert.lengthOf(facts.of("replayed"), 0)
      })
    )
  })

  it.live("replays one event to an endpoint that never wanted its type", () => {
    const place = install()
    const replay = (...args: ReadonlyArray<string>) =>
      run("replay", "--to", "acme/late", ...args, ...place.flags)
    return place.run(
      Effect.gen(function* () {
        const late = yield* receiver()
        yield* endpoint({ id: "late", url: late.url, types: ["other"] })
        const facts = yield* history
        yield* worker()
        for (const n of [1, 2, 3]) yield* publish("a", `{"n":${n}}`, { "Nats-Msg-Id": `acme.${n}` })
        yield* facts.planned(3)
        const both = yield* replay("--event", "acme.2", "--skipped")
        assert.strictEqual(
          nth(both.err, 0),
          "petrel: --event names one event: leave out --skipped and --only-missing, which choose among many"
        )
        const preview = yield* replay("--event", "acme.2", "--dry-run")
        assert.match(nth(preview.out, 0), /^would send 1 event to acme\/late$/)
        yield* replay("--event", "acme.2")
        yield* late.received(1)
        assert.strictEqual(nth(late.requests, 0).headers["webhook-id"], "acme.2")
        const again = yield* replay("--event", "acme.2")
        assert.match(nth(again.err, 0), /this was replayed already: .*give it a name with --id$/)
        const none = yield* replay("--event", "acme.9")
        assert.match(
          nth(none.err, 0),
          /^petrel: there is no event acme\.9 of acme, or it is no longer kept/
        )
        assert.lengthOf(late.requests, 1)
      })
    )
  })
})
