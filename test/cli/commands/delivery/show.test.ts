import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { pauseEndpoint } from "../../../../src/endpoints/endpoint-state.ts"
import { endpoint, history, nth, publish, quickRetry, worker } from "../../../kit/engine.ts"
import { patientRetry } from "../../../kit/outcomes.ts"
import { receiver } from "../../../kit/receiver.ts"
import { installations, parse } from "../../command-line.ts"
import { run } from "../../in-process.ts"

const place = installations()

const reasonsFor = (rounds: unknown): ReadonlyArray<string> => {
  const [round] = Array.isArray(rounds) ? rounds : []
  return round.holds.map(({ by }: { readonly by: string }) => by)
}

describe("petrel delivery show", () => {
  it.live("tells the life of a delivery, and what one that has not ended waits for", () => {
    const { flags, run: inside } = place()
    return inside(
      Effect.gen(function* () {
        const hook = yield* receiver({
          answer: ({ headers, path }) => ({
            status: path === "/late" || headers["petrel-attempt"] === "1" ? 503 : 200
          })
        })
        const told = yield* history
        yield* endpoint({ id: "flaky", url: `${hook.url}/flaky`, retry: quickRetry() })
        yield* endpoint({
          id: "late",
          url: `${hook.url}/late`,
          retry: patientRetry,
          circuit: { failures: 1, rate: "none" }
        })
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* worker()
            yield* publish("invoice.paid", "{}", { "Nats-Msg-Id": "acme.42" })
            yield* told.count("delivered", 1)
            yield* told.count("circuit-opened", 1)
            yield* pauseEndpoint({ tenant: "acme", endpoint: "late" }, undefined, "test")
            const show = (id: string) => run("delivery", "show", id, "--json", ...flags)
            const [flaky, late, people] = yield* Effect.all(
              [
                show("acme.42.flaky"),
                show("acme.42.late"),
                run("delivery", "show", "acme.42.late", ...flags)
              ],
              { concurrency: 3 }
            )
            assert.strictEqual(flaky.code, 0, flaky.err.join("\n"))
            const ended = parse(nth(flaky.out, 0))
            assert.deepInclude(ended, { tenant: "acme", endpoint: "flaky", eventSeq: 1 })
            const [round] = Array.isArray(ended.rounds) ? ended.rounds : []
            assert.strictEqual(round.state, "delivered")
            assert.deepStrictEqual(
              round.attempts.map(({ status }: { readonly status: number }) => status),
              [503, 200]
            )
            assert.deepStrictEqual(reasonsFor(parse(nth(late.out, 0)).rounds), [
              "time",
              "paused",
              "circuit"
            ])
            const text = people.out.join("\n")
            assert.match(text, /^acme\.42 → acme\/late\n {2}\S+ {2}routed\n/)
            assert.match(text, /waits +for its next attempt, in (30|29) min.*attempt 1 failed: 503/)
            assert.match(text, /petrel endpoint resume acme\/late/)
            assert.match(text, /in +message \d+ of \S+DELIVERIES_\d/)
          })
        )
        const alone = yield* run("delivery", "show", "acme.42.late", "--json", ...flags)
        assert.strictEqual(nth(reasonsFor(parse(nth(alone.out, 0)).rounds), 0), "no-worker")
        const unknown = yield* run("delivery", "show", "acme.43.late", ...flags)
        assert.strictEqual(unknown.code, 1)
        assert.match(nth(unknown.err, 0), /has no delivery acme\.43\.late/)
        yield* publish("invoice.paid", "{}", { "Nats-Msg-Id": "acme.43" })
        const stored = yield* run("delivery", "show", "acme.43.late", ...flags)
        assert.strictEqual(stored.code, 1)
        assert.match(
          nth(stored.err, 0),
          /nothing is recorded of the delivery acme\.43\.late yet: its event is stored, /
        )
      })
    )
  })

  it.live("shows with every attempt what the receiver answered, and by which redirects", () => {
    const { flags, run: inside } = place()
    return inside(
      Effect.gen(function* () {
        const hook = yield* receiver({
          answer: ({ headers, path }) => {
            if (!path.startsWith("/login"))
              return { status: 307, headers: { location: "/login?a=secret" } }
            return headers["petrel-attempt"] === "1"
              ? { status: 503, headers: { server: "gate" }, body: `down ${"x".repeat(1_200)}` }
              : { status: 200, body: "log in \u001b[2Jfirst" }
          }
        })
        const told = yield* history
        yield* endpoint({ url: hook.url, redirects: 3, retry: quickRetry() })
        yield* worker()
        const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        yield* publish("a", "{}", { "Nats-Msg-Id": "acme.42", traceparent })
        yield* told.count("delivered", 1)
        const show = (...more: ReadonlyArray<string>) =>
          run("delivery", "show", "acme.42.hook", ...more, ...flags)
        const [json, short, whole] = yield* Effect.all([show("--json"), show(), show("--answers")])
        const { rounds, trace } = parse(nth(json.out, 0))
        assert.strictEqual(trace, traceparent)
        const [round] = Array.isArray(rounds) ? rounds : []
        const redirects = [{ status: 307, to: `${hook.url}/login` }]
        const [failed, delivered] = round.attempts
        assert.deepInclude(failed, { status: 503, redirects })
        assert.include(failed.response, { bytes: 1_205 })
        assert.match(failed.response.body, /^down x+$/)
        assert.strictEqual(failed.response.headers.server, "gate")
        assert.deepInclude(delivered, { status: 200, redirects })
        assert.strictEqual(delivered.response.body, "log in \u001b[2Jfirst")

        const text = short.out.join("\n")
        assert.include(text, `acme/hook\n  trace    ${traceparent}\n`)
        assert.include(text, `\n    status 307, redirected to ${hook.url}/login\n    down xx`)
        assert.include(text, "\n    log in \\u001b[2Jfirst")
        assert.notInclude(text, "server: gate")
        assert.match(short.err.join("\n"), /With --answers/)
        const all = whole.out.join("\n")
        assert.include(all, "\n    server: gate\n")
        assert.match(all, /\n {4}down x+\n {4}\(of 1\.2 KiB\)\n/)
        assert.notInclude(`${text}${all}${json.out[0]}`, "secret")
      })
    )
  })

  it.live("tells what its owner is doing with one that it has in memory", () => {
    const { flags, run: inside } = place()
    return inside(
      Effect.gen(function* () {
        let answer = () => {}
        const hook = yield* receiver({
          answer: (_, response) => {
            answer = () => response.end()
            return undefined
          }
        })
        const told = yield* history
        yield* endpoint({ url: hook.url })
        yield* worker()
        yield* publish("a", "{}", { "Nats-Msg-Id": "acme.42" })
        yield* hook.received(1)
        // Its plan is stored at once where it waits in the queue, else because its answer takes long.
        yield* told.count("routed", 1)
        const show = (...more: ReadonlyArray<string>) =>
          run("delivery", "show", "acme.42.hook", ...more, ...flags)
        const json = yield* show("--json")
        const { rounds } = parse(nth(json.out, 0))
        const [round] = Array.isArray(rounds) ? rounds : []
        assert.strictEqual(round.inMemory.mode, "sending")
        assert.isNumber(round.inMemory.forMs)
        assert.deepStrictEqual(reasonsFor(rounds), ["answer"])
        const text = (yield* show()).out.join("\n")
        assert.match(text, /\n {2}memory {3}sending in worker \S+, [\d.]+ m?s\n/)
        assert.match(text, /waits +for the receiver's answer: the attempt began [\d.]+ m?s ago/)
        answer()
        yield* told.count("delivered", 1)
        const after = parse(nth((yield* show("--json")).out, 0)).rounds
        assert.notProperty(Array.isArray(after) ? after[0] : {}, "inMemory")
      })
    )
  })
})
